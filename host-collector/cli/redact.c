/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/redact.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/array.h"
#include "proto/codec.h"
#include "proto/event_fields.h"
#include "proto/message.h"

/* Distinct names of a kind that get a name each; the others share one. */
enum { NAMES_MAX = 4096, NAME_BYTES = 256 };

struct names {
	const char *prefix;
	char (*known)[NAME_BYTES];
	size_t n, capacity;
};

struct redactor {
	struct names tasks, vms, groups, boots, probes;
	struct frame_unpacker *unpacker;
	struct frame_writer *frames;
	struct batch_decoder *decoder;
	struct batch_encoder *encoder;
	struct byte_buffer payload, frame;
	void *message;
	size_t message_bytes;
};

struct redactor *redactor_new(void)
{
	struct redactor *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->tasks.prefix = "task";
	r->vms.prefix = "vm";
	r->groups.prefix = "/cgroup";
	r->boots.prefix = "boot";
	r->probes.prefix = "probe";
	r->unpacker = frame_unpacker_new();
	r->frames = frame_writer_new(0);
	r->decoder = batch_decoder_new();
	r->encoder = batch_encoder_new();
	if (!r->unpacker || !r->frames || !r->decoder || !r->encoder) {
		redactor_free(r);
		return NULL;
	}
	batch_encoder_relay(r->encoder);
	return r;
}

void redactor_free(struct redactor *r)
{
	if (!r)
		return;
	free(r->tasks.known);
	free(r->vms.known);
	free(r->groups.known);
	free(r->boots.known);
	free(r->probes.known);
	frame_unpacker_free(r->unpacker);
	frame_writer_free(r->frames);
	batch_decoder_free(r->decoder);
	batch_encoder_free(r->encoder);
	byte_buffer_fini(&r->payload);
	byte_buffer_fini(&r->frame);
	free(r->message);
	free(r);
}

/* ---- names ---- */

/* The number of a name from 1 on; 0: there is no room for it. */
static size_t name_number(struct names *names, const char *name)
{
	size_t i = 0;

	while (i < names->n && strncmp(names->known[i], name, NAME_BYTES - 1) != 0)
		i++;
	if (i < names->n)
		return i + 1;
	if (names->n == NAMES_MAX)
		return 0;
	if (ARRAY_RESERVE(&names->known, names->n, &names->capacity, 64))
		return 0;
	snprintf(names->known[names->n++], NAME_BYTES, "%s", name);
	return names->n;
}

/* Letters, because reports sum up tasks whose names differ only in their digits. */
static void name_replace(struct names *names, char *name, size_t bytes)
{
	char letters[8];
	size_t at = sizeof(letters) - 1, number;

	if (!*name)
		return;
	letters[at] = 0;
	for (number = name_number(names, name); number && at; number = (number - 1) / 26)
		letters[--at] = (char)('a' + (number - 1) % 26);
	snprintf(name, bytes, "%s%s%s", names->prefix, letters[at] ? "-" : "", &letters[at]);
}

/* Threads of the kernel, of QEMU and of vcpuscope: what their names begin with, and the characters
 * of the rest. Readers of verdicts need them, and they say nothing of the user's work. */
static bool task_is_public(const char *comm)
{
	static const struct {
		const char *begin, *rest;
	} tasks[] = {
		{"swapper/", "0123456789"},
		{"kworker/", "0123456789:uH"},
		{"ksoftirqd/", "0123456789"},
		{"migration/", "0123456789"},
		{"cpuhp/", "0123456789"},
		{"ktimers/", "0123456789"},
		{"rcuc/", "0123456789"},
		{"rcuop/", "0123456789"},
		{"rcuos/", "0123456789"},
		{"rcuog/", "0123456789"},
		{"rcu_sched", ""},
		{"rcu_preempt", ""},
		{"rcu_gp", ""},
		{"kthreadd", ""},
		{"khugepaged", ""},
		{"ksmd", ""},
		{"watchdogd", ""},
		{"kswapd", "0123456789"},
		{"kcompactd", "0123456789"},
		{"irq/", "0123456789"},
		{"vhost-", "0123456789"},
		{"kvm-pit/", "0123456789"},
		{"kvm-nx-lpage-re", ""},
		{"kvm", ""},
		{"qemu-kvm", ""},
		{"qemu-system-x86", ""},
		{"qemu-system-aar", ""},
		{"CPU ", "0123456789/KVMTCG"},
		{"IO mon_iothread", ""},
		{"vcpuscope", ""},
		{"vcpuscope-agent", ""},
	};

	for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
		const size_t len = strlen(tasks[i].begin);

		if (!strncmp(comm, tasks[i].begin, len) &&
		    !comm[len + strspn(comm + len, tasks[i].rest)])
			return true;
	}
	return false;
}

static void task_replace(struct redactor *r, char comm[16])
{
	if (!task_is_public(comm))
		name_replace(&r->tasks, comm, 16);
}

const char *redactor_vm(struct redactor *r, const char *name, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s", name);
	name_replace(&r->vms, out, out_bytes);
	return out;
}

/* ---- messages ---- */

enum text_kind { TEXT_PRIVATE, TEXT_PUBLIC, TEXT_TASK, TEXT_VM, TEXT_GROUP, TEXT_BOOT };

/* What a text is, by its field's name in message_fields.c. A field that is not listed is private.
 */
static enum text_kind text_kind(const char *field)
{
	static const struct {
		const char *name;
		enum text_kind kind;
	} texts[] = {
		{"hello.program_version", TEXT_PUBLIC},
		{"hello.kernel_release", TEXT_PUBLIC},
		{"hello.boot_id", TEXT_BOOT},
		{"vm_info.accelerator", TEXT_PUBLIC},
		{"stack_frame.symbol", TEXT_PUBLIC},
		{"stack_frame.module", TEXT_PUBLIC},
		{"user_event.system", TEXT_PUBLIC},
		{"user_event.name", TEXT_PUBLIC},
		{"user_field.name", TEXT_PUBLIC},
		{"note.text", TEXT_PUBLIC}, /* see note_replace() */
		{"vm_thread.comm", TEXT_TASK},
		{"vm_info.name", TEXT_VM},
		{"task_origin.vm", TEXT_VM},
		{"cpu_quota.cgroup", TEXT_GROUP},
		{"task_origin.cgroup", TEXT_GROUP},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!strcmp(texts[i].name, field))
			return texts[i].kind;
	}
	return TEXT_PRIVATE;
}

static void text_replace(struct redactor *r, const struct message_field *f, char *text)
{
	switch (text_kind(f->name)) {
	case TEXT_PUBLIC:
		break;
	case TEXT_TASK:
		task_replace(r, text);
		break;
	case TEXT_VM:
		name_replace(&r->vms, text, f->bytes);
		break;
	case TEXT_GROUP:
		name_replace(&r->groups, text, f->bytes);
		break;
	case TEXT_BOOT:
		name_replace(&r->boots, text, f->bytes);
		break;
	default:
		memset(text, 0, f->bytes);
		break;
	}
}

static void texts_replace(struct redactor *r, const struct message_layout *layout, char *m)
{
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct message_field *f = &layout->fields[i];
		char *at = m + f->at;
		size_t n = 1;

		if (f->form == FIELD_TEXTS || f->form == FIELD_LIST)
			memcpy(&n, m + f->count_at, sizeof(n));
		if (f->form == FIELD_NUMBERED)
			n = f->limit;
		if (f->flags & FIELD_ALLOCATED)
			memcpy(&at, m + f->at, sizeof(at));
		for (size_t k = 0; k < n; k++, at += f->bytes) {
			if (f->form == FIELD_TEXT || f->form == FIELD_TEXTS)
				text_replace(r, f, at);
			else if (f->part)
				texts_replace(r, f->part, at);
		}
	}
}

/* Functions of programs other than QEMU; verdicts need those of the kernel and of QEMU. */
static void frames_replace(struct message_stack *stack)
{
	for (size_t i = 0; i < stack->n_frames; i++) {
		struct message_stack_frame *f = &stack->frames[i];

		if (f->kernel || !strncmp(f->module, "qemu-system-", 12) ||
		    !strcmp(f->module, "qemu-kvm") || !strcmp(f->module, "libc.so.6"))
			continue;
		memset(f->symbol, 0, sizeof(f->symbol));
		memset(f->module, 0, sizeof(f->module));
	}
}

/* Only the name of QEMU's event remains, which readers look for (engine/reboots.h). */
static void note_replace(struct message_note *note)
{
	static const char mark[] = "(QMP ", letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	const char *event = strstr(note->text, mark);
	size_t len = event ? strspn(event + sizeof(mark) - 1, letters) : 0;
	char text[sizeof(note->text)] = "";

	if (len)
		snprintf(text, sizeof(text), "%s%.*s)", mark, (int)len, event + sizeof(mark) - 1);
	memcpy(note->text, text, sizeof(text));
}

/* Replaces the functions and probes of programs that the user chose. Those of the kernel remain. */
static void probes_replace(struct redactor *r, struct message_user_events *m)
{
	for (size_t i = 0; i < m->n; i++) {
		struct message_user_event *e = &m->events[i];

		if (e->kind == USER_TRACEPOINT || e->kind == USER_KPROBE ||
		    e->kind == USER_KRETPROBE)
			continue;
		name_replace(&r->probes, e->system, sizeof(e->system));
		name_replace(&r->probes, e->name, sizeof(e->name));
		for (size_t k = 0; k < e->n_fields; k++)
			name_replace(&r->probes, e->fields[k].name, sizeof(e->fields[k].name));
	}
}

static int message_redact(struct redactor *r, const struct message_layout *layout, uint8_t kind,
			  const uint8_t *payload, size_t len)
{
	int err;

	if (r->message_bytes < layout->bytes) {
		void *message = realloc(r->message, layout->bytes);

		if (!message)
			return -ENOMEM;
		r->message = message;
		r->message_bytes = layout->bytes;
	}
	err = message_unpack(layout, payload, len, r->message);
	if (err)
		return err == -ENOMEM ? err : -ENODATA;
	texts_replace(r, layout, r->message);
	if (layout == &message_stack_layout)
		frames_replace(r->message);
	else if (layout == &message_note_layout)
		note_replace(r->message);
	else if (layout == &message_user_events_layout)
		probes_replace(r, r->message);
	err = message_pack(layout, r->message, &r->payload);
	if (kind == FRAME_EXIT_SUMMARY)
		free(((struct message_exit_summary *)r->message)->cells);
	return err;
}

/* ---- events ---- */

static void event_redact(struct redactor *r, struct vs_event *e)
{
	char comm[16];

	if (e->type == VS_EVENT_TASK_NAME) {
		ev_task_comm(e, comm);
		task_replace(r, comm);
		ev_set_task_comm(e, comm);
	} else if (e->type == VS_EVENT_USER || e->type == VS_EVENT_USER_MORE) {
		ev_set_user_values(e, 0, 0);
	} else if (e->type >= VS_EVENT_TYPE_LIMIT) {
		e->pid = e->pid2 = 0;
		e->arg0 = e->arg1 = 0;
	}
}

static int batch_redact(struct redactor *r, const uint8_t *payload, size_t len)
{
	struct batch batch;
	int err = batch_decode(r->decoder, payload, len, &batch);

	if (err)
		return err == -ENOMEM ? err : -ENODATA;
	for (size_t i = 0; i < batch.n_events; i++)
		event_redact(r, &batch.events[i]);
	return batch_encode(r->encoder, &batch, &r->payload);
}

int redactor_frame(struct redactor *r, const struct frame_view *frame, struct frame_view *out)
{
	const uint8_t kind = frame->header.kind;
	const struct message_layout *layout = frame_kind_row(kind)->message;
	const uint8_t *payload;
	size_t len;
	int err = layout ? frame_unpack(r->unpacker, frame, &payload, &len) : -ENODATA;

	if (err)
		return err == -ENOMEM ? err : -ENODATA;
	r->payload.len = r->frame.len = 0;
	err = kind == FRAME_BATCH ? batch_redact(r, payload, len)
				  : message_redact(r, layout, kind, payload, len);
	if (!err)
		err = frame_write(r->frames, kind, r->payload.data, r->payload.len, &r->frame);
	if (err)
		return err;
	frame_restamp(r->frame.data, frame->header.session_id, frame->header.frame_seq);
	return frame_parse(r->frame.data, r->frame.len, out);
}
