/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/symbols/kernel_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/buffer.h"
#include "proto/text.h"

struct symbol {
	uint64_t address;
	uint32_t name, module; /* offsets into names */
};

/* Addresses of the entries of interrupts: two blocks of neighbours, if not one. */
enum { ENTRIES_MAX = 4 };

struct kallsyms {
	struct {
		uint64_t begin, end;
	} entries[ENTRIES_MAX];
	size_t n_entries;
	struct byte_buffer symbols; /* of struct symbol, sorted by address */
	struct byte_buffer names;   /* NUL-terminated; the first is "" */
	uint64_t modules;           /* modules_read() when it was loaded */
};

static size_t count(const struct kallsyms *k)
{
	return k->symbols.len / sizeof(struct symbol);
}

static const struct symbol *symbols(const struct kallsyms *k)
{
	return (const struct symbol *)(const void *)k->symbols.data;
}

size_t kallsyms_count(const struct kallsyms *k)
{
	return count(k);
}

static int name_add(struct kallsyms *k, const char *name, uint32_t *offset)
{
	*offset = (uint32_t)k->names.len;
	return byte_buffer_append(&k->names, name, strlen(name) + 1);
}

/* "ffffffff81000000 T _stext" or "ffffffffc0000000 t foo\t[kvm]". 0, 1 if added, -ENOMEM. */
static int line_add(struct kallsyms *k, const char *line, uint32_t *last_module)
{
	char name[256], module[64] = "";
	unsigned long long address;
	struct symbol symbol = {0};
	char type;
	int err;

	if (sscanf(line, "%llx %c %255s [%63[^]]]", &address, &type, name, module) < 3)
		return 0;
	if (!strchr("tTwW", type) || !address)
		return 0;
	symbol.address = address;
	err = name_add(k, name, &symbol.name);
	/* A module's symbols come together: its name is stored once per run. */
	if (!err && *module) {
		if (strcmp((const char *)k->names.data + *last_module, module))
			err = name_add(k, module, last_module);
		symbol.module = *last_module;
	}
	if (!err)
		err = byte_buffer_append(&k->symbols, &symbol, sizeof(symbol));
	return err ? err : 1;
}

static int symbol_compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* A number that changes when a module is loaded or unloaded: of names and addresses only, for the
 * use counts in the same lines change with every VM that starts. */
static uint64_t modules_read(void)
{
	FILE *f = fopen("/proc/modules", "re");
	uint64_t hash = TEXT_HASH_BEGIN;
	char line[1024], name[64], address[32];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		/* "kvm 1146880 1 kvm_intel, Live 0xffffffffc0000000" */
		if (sscanf(line, "%63s %*s %*s %*s %*s %31s", name, address) == 2)
			hash = text_hash_add(text_hash_add(hash, name), address);
	}
	fclose(f);
	return hash;
}

static bool is_interrupt_entry(const char *name)
{
	return !strncmp(name, "asm_sysvec_", 11) || !strcmp(name, "asm_common_interrupt");
}

static void entries_find(struct kallsyms *k)
{
	const struct symbol *all = symbols(k);

	for (size_t i = 0; i + 1 < count(k); i++) {
		const uint64_t begin = all[i].address, end = all[i + 1].address;

		if (!is_interrupt_entry((const char *)k->names.data + all[i].name))
			continue;
		if (k->n_entries && k->entries[k->n_entries - 1].end == begin) {
			k->entries[k->n_entries - 1].end = end;
		} else if (k->n_entries < ENTRIES_MAX) {
			k->entries[k->n_entries].begin = begin;
			k->entries[k->n_entries++].end = end;
		}
	}
}

int kallsyms_load(const char *path, struct kallsyms **out)
{
	FILE *f = fopen(path ? path : "/proc/kallsyms", "re");
	struct kallsyms *k = NULL;
	uint32_t last_module = 0;
	size_t lines = 0;
	char line[512];
	int err = 0;

	if (!f)
		return -errno;
	k = calloc(1, sizeof(*k));
	if (!k || byte_buffer_append(&k->names, "", 1))
		err = -ENOMEM;
	while (err >= 0 && fgets(line, sizeof(line), f)) {
		err = line_add(k, line, &last_module);
		lines++;
	}
	if (err >= 0) {
		err = 0;
		if (!count(k)) /* restricted: every address reads 0 */
			err = lines ? -EACCES : -ENODATA;
	}
	fclose(f);
	if (err) {
		kallsyms_free(k);
		return err;
	}
	qsort(k->symbols.data, count(k), sizeof(struct symbol), symbol_compare);
	entries_find(k);
	*out = k;
	return 0;
}

int kallsyms_refresh(struct kallsyms **k)
{
	const uint64_t modules = modules_read();
	int err;

	if (*k && (*k)->modules == modules)
		return 0;
	kallsyms_free(*k);
	*k = NULL;
	err = kallsyms_load(NULL, k);
	if (!err)
		(*k)->modules = modules;
	return err;
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	byte_buffer_fini(&k->symbols);
	byte_buffer_fini(&k->names);
	free(k);
}

bool kallsyms_lookup(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out)
{
	const struct symbol *all = symbols(k);
	size_t low = 0, high = count(k);

	/* the first symbol beyond the address */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (all[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	/* of several names for one address, the first in the file */
	while (low > 1 && all[low - 2].address == all[low - 1].address)
		low--;
	out->name = (const char *)k->names.data + all[low - 1].name;
	out->module = (const char *)k->names.data + all[low - 1].module;
	out->offset = address - all[low - 1].address;
	return true;
}

size_t kallsyms_interrupt_frames(const struct kallsyms *k, const uint64_t *frames, size_t n)
{
	size_t own = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t e = 0; e < k->n_entries; e++) {
			if (frames[i] > k->entries[e].begin && frames[i] <= k->entries[e].end)
				own = i + 1;
		}
	}
	return own;
}
