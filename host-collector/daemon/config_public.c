/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/config_public.h"

#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/daemon/config.h"
#include "host-collector/daemon/config_keys.h"

struct writing {
	FILE *out;
	config_vm_name vm_name;
	void *context;
	char section[256];
	enum config_section kind; /* of the section that is written */
	bool known, begun;        /* whether the section is known, and has begun */
	size_t n_pairs;
	/* Values are parsed into these, to check them. */
	struct vm_config *vm;
	struct daemon_config *daemon;
	struct pair_definition pair;
};

/* Returns true if the text is a word of this program, not one that the user chose. */
static bool text_is_public(const char *name, const char *value)
{
	static const char *const words[][6] = {
		{"libvirt", "auto", "no"},
		{"libvirt_attach", "no", "all", "labelled"},
		{"discover", "libvirt", "kvm", "libvirt,kvm", "kvm,libvirt"},
		{"key", "vcpu", "cpu"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		for (size_t k = 1; !strcmp(words[i][0], name) && words[i][k]; k++) {
			if (!strcmp(words[i][k], value))
				return true;
		}
	}
	return false;
}

/* Returns the kind of an address (link/address.h): its beginning. */
static const char *address_kind(const char *name, const char *value)
{
	static const char *const kinds[] = {
		"listen:tls:", "listen:tcp:", "listen:unix:", "hybrid-connect:",
		"hybrid:",     "daemon:",     "vsock:",       "unix:",
		"tcp:",        "vmm:"};

	if (strcmp(name, "channel") != 0 && strcmp(name, "metrics") != 0 &&
	    strcmp(name, "page") != 0)
		return "";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strncmp(value, kinds[i], strlen(kinds[i])))
			return kinds[i];
	}
	return "";
}

static void section_begin(struct writing *w, const char *section)
{
	const bool vm = !strncmp(section, "vm ", 3), pair = !strncmp(section, "pair ", 5);
	char name[256];

	snprintf(w->section, sizeof(w->section), "%s", section);
	w->begun = true;
	w->known = vm || pair || !strcmp(section, "daemon");
	w->kind = vm ? CONFIG_VM : pair ? CONFIG_PAIR : CONFIG_DAEMON;
	w->n_pairs += pair;
	if (!w->known)
		fputs("[(unknown section)]\n", w->out);
	else if (vm && w->vm_name)
		fprintf(w->out, "[vm %s]\n",
			w->vm_name(w->context, section + 3, name, sizeof(name)));
	else if (pair && w->vm_name)
		fprintf(w->out, "[pair pair-%zu]\n", w->n_pairs);
	else
		fprintf(w->out, "[%s]\n", section);
}

static void value_write(struct writing *w, const char *name, const char *value)
{
	void *const into[] = {
		[CONFIG_DAEMON] = w->daemon, [CONFIG_VM] = w->vm, [CONFIG_PAIR] = &w->pair};
	char why[512];

	switch (config_key_value(w->kind, name)) {
	case CONFIG_VALUE_UNKNOWN:
		fputs("; (unknown key)\n", w->out);
		break;
	case CONFIG_VALUE_PLAIN:
		if (config_key_set(w->kind, into[w->kind], name, value, why, sizeof(why)))
			fprintf(w->out, "%s = (removed: not valid)\n", name);
		else
			fprintf(w->out, "%s = %s\n", name, value);
		break;
	default:
		if (!*value || text_is_public(name, value))
			fprintf(w->out, "%s = %s\n", name, value);
		else
			fprintf(w->out, "%s = %s(removed)\n", name, address_kind(name, value));
		break;
	}
}

static int on_key(void *context, const char *section, const char *name, const char *value)
{
	struct writing *w = context;

	if (!w->begun || strcmp(w->section, section) != 0)
		section_begin(w, section);
	if (w->known)
		value_write(w, name, value);
	return 1;
}

int config_public_write(const char *text, config_vm_name vm_name, void *context, FILE *out)
{
	struct writing w = {
		.out = out, .vm_name = vm_name, .context = context, .vm = malloc(sizeof(*w.vm))};
	int line, err = -ENOMEM;

	w.daemon = malloc(sizeof(*w.daemon));
	if (!w.vm || !w.daemon)
		goto out;
	vm_config_default(w.vm);
	daemon_config_default(w.daemon);
	line = ini_parse_string(text, on_key, &w);
	if (line > 0)
		fprintf(out, "; line %d: neither [section] nor KEY = VALUE\n", line);
	err = line == -2 ? -ENOMEM : 0;
out:
	free(w.vm);
	free(w.daemon);
	return err;
}
