// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes every unpack function (the first byte chooses it): counts are bounded, texts end with
 * NUL, and the struct is the same after packing and unpacking it again. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "proto/message.h"

/* Zeroed before: unpacking leaves padding and unused array members alone. */
#define TARGET(name, check)                                                                        \
	static void fuzz_##name(const uint8_t *data, size_t len)                                   \
	{                                                                                          \
		struct message_##name *m = calloc(1, sizeof(*m)), *again = calloc(1, sizeof(*m));  \
		struct byte_buffer packed = {0};                                                   \
                                                                                                   \
		FUZZ_CHECK(m &&again);                                                             \
		if (!message_##name##_unpack(data, len, m)) {                                      \
			FUZZ_CHECK(check);                                                         \
			FUZZ_CHECK(!message_##name##_pack(m, &packed));                            \
			FUZZ_CHECK(!message_##name##_unpack(packed.data, packed.len, again));      \
			FUZZ_CHECK(same_##name(m, again));                                         \
		}                                                                                  \
		release_##name(m);                                                                 \
		release_##name(again);                                                             \
		byte_buffer_fini(&packed);                                                         \
		free(m);                                                                           \
		free(again);                                                                       \
	}
/* For structs without pointers; text_copy leaves rests of fields as calloc made them. */
#define PLAIN(name, check)                                                                         \
	static int same_##name(const struct message_##name *a, const struct message_##name *b)     \
	{                                                                                          \
		return !memcmp(a, b, sizeof(*a));                                                  \
	}                                                                                          \
	static void release_##name(struct message_##name *m)                                       \
	{                                                                                          \
		(void)m;                                                                           \
	}                                                                                          \
	TARGET(name, check)

PLAIN(hello, m->n_cpus <= VS_CPUS_MAX && strlen(m->boot_id) < VS_TEXT_MAX)
PLAIN(heartbeat, 1)
PLAIN(echo_request, 1)
PLAIN(echo_reply, 1)
PLAIN(clock_sample, 1)
PLAIN(kernel_log, m->n_lines <= VS_LOG_LINES_MAX)
PLAIN(vm_info, m->n_threads <= VS_THREADS_MAX && strlen(m->accelerator) < sizeof(m->accelerator))
PLAIN(echo_observation, 1)
PLAIN(stack, m->n_frames <= VS_STACK_FRAMES_MAX)
PLAIN(note, m->kind >= NOTE_CHANNEL_UP && m->kind <= (int)NOTE_KIND_LAST)

PLAIN(vm_clock, m->source >= VM_CLOCK_PVCLOCK_UPDATE && m->source <= (int)VM_CLOCK_SOURCE_LAST &&
			m->from_min <= m->from_max && m->tsc.frac_bits < 64 &&
			(!m->pvclock.known || m->pvclock.mul))

PLAIN(cpu_quota, m->n_vcpus <= VS_CPUS_MAX && m->from <= m->until)

PLAIN(task_origins, m->n <= VS_TASK_ORIGINS_MAX)

PLAIN(user_events, m->n <= VS_USER_EVENTS_MAX &&
			   (!m->n || user_event_n_values(&m->events[0]) <= VS_USER_VALUES_MAX))

PLAIN(config, m->n_tasks <= VS_CONFIG_TASKS_MAX)
PLAIN(config_reply,
      m->n_limits <= VS_CONFIG_LIMITS_MAX && m->in_force.n_tasks <= VS_CONFIG_TASKS_MAX)

static int same_recording_end(const struct message_recording_end *a,
			      const struct message_recording_end *b)
{
	return a->entries == b->entries && a->n_checkpoints == b->n_checkpoints &&
	       (!a->n_checkpoints || !memcmp(a->checkpoints, b->checkpoints,
					     a->n_checkpoints * sizeof(*a->checkpoints)));
}
static void release_recording_end(struct message_recording_end *m)
{
	free(m->checkpoints);
}
TARGET(recording_end, m->n_checkpoints <= VS_CHECKPOINTS_MAX)

static int same_exit_summary(const struct message_exit_summary *a,
			     const struct message_exit_summary *b)
{
	return a->vm == b->vm && a->host_tsc == b->host_tsc && a->n_cells == b->n_cells &&
	       (!a->n_cells || !memcmp(a->cells, b->cells, a->n_cells * sizeof(*a->cells)));
}
static void release_exit_summary(struct message_exit_summary *m)
{
	free(m->cells);
}
TARGET(exit_summary, m->n_cells <= VS_EXIT_CELLS_MAX)

static void (*const targets[])(const uint8_t *data, size_t len) = {
	fuzz_hello,        fuzz_heartbeat,   fuzz_echo_request,  fuzz_echo_reply,
	fuzz_clock_sample, fuzz_kernel_log,  fuzz_vm_info,       fuzz_echo_observation,
	fuzz_stack,        fuzz_note,        fuzz_recording_end, fuzz_vm_clock,
	fuzz_cpu_quota,    fuzz_config,      fuzz_config_reply,  fuzz_exit_summary,
	fuzz_task_origins, fuzz_user_events,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len)
		targets[data[0] % (sizeof(targets) / sizeof(*targets))](data + 1, len - 1);
	return 0;
}
