/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Typed structs of bounded size for all messages of wire.proto except Batch (codec.h). Packing
 * writes the payload of a frame. Unpacking checks counts, CPU numbers and enums and copies into
 * the caller's struct, so the callers handle no length and no pointer from a peer. The bounds are
 * in the catalogue (message_fields.h); docs/hacking/message.md says how to add a message.
 *
 * Unpacked texts are NUL-terminated, valid UTF-8 (invalid bytes become U+FFFD) and cut between
 * characters at the size of their field. They may contain control characters: escape them for
 * display.
 *
 * Packing appends to `out` and returns 0, -E2BIG (a count exceeds its array) or
 * -ENOMEM. Texts must be NUL-terminated. Unpacking returns 0, -EBADMSG (not this
 * message, or an invalid value), -E2BIG (a limit of this header exceeded) or -ENOMEM. After an
 * error the content of the struct is undefined and needs no cleanup. No function keeps a reference
 * to `payload`.
 */
#ifndef PROTO_MESSAGE_H
#define PROTO_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buffer.h"
#include "proto/exit_bucket.h"
#include "proto/message_config.h"
#include "proto/message_fields.h"
#include "proto/user_event_kind.h"
#include "proto/vm_protection.h"

enum {
	VS_PROTOCOL_MIN = 1,
	VS_PROTOCOL_MAX = 1,
	VS_CPUS_MAX = 1024,
	VS_THREADS_MAX = 2048,
	VS_TASK_ORIGINS_MAX = 64,
	VS_CGROUP_MAX = 256, /* a path, with its NUL */
	VS_STACK_FRAMES_MAX = 128,
	VS_LOG_TEXT_MAX = 512, /* a line of the kernel's log; longer ones are cut */
	VS_LOG_LINES_MAX = 64,
	VS_CHECKPOINTS_MAX = 65536,
	VS_EXIT_CELLS_MAX = 4096,
};

/* Bits of message_hello.features. */
enum protocol_feature {
	FEATURE_CONFIG = 1, /* agent: accepts a Config; host: understands a ConfigReply */
	/* agent: accepts Config.events; host: understands UserEvents of guests. */
	FEATURE_EVENTS = 2,
	FEATURE_LOOK = 4, /* agent: accepts Config.look_period_ns and Config.look_when */
};

enum stream_role { STREAM_ROLE_HOST = 1, STREAM_ROLE_GUEST = 2 };

/* The clock that stamps a stream. */
enum stream_clock {
	STREAM_CLOCK_HOST_TSC = 1,
	STREAM_CLOCK_GUEST_TSC = 2,
	STREAM_CLOCK_KVMCLOCK_NS = 3,
};

enum note_kind {
	NOTE_CHANNEL_UP = 1,
	NOTE_CHANNEL_DOWN = 2,
	NOTE_VM_GONE = 3,
	NOTE_PROTOCOL = 4,  /* a malformed frame or an unknown version; details in the text */
	NOTE_THREADS = 5,   /* the vCPU threads changed */
	NOTE_SIMULATED = 6, /* the simulator made this recording */
	NOTE_VM_PAUSED = 7, /* QEMU stopped the VM (QMP STOP) */
	NOTE_VM_RESUMED = 8,
	NOTE_IMPORTED = 9,        /* made from another tracer's recording; the text names it */
	NOTE_MIGRATION = 10,      /* QEMU migrates the VM (QMP MIGRATION) */
	NOTE_MIGRATION_OVER = 11, /* the migration completed, failed or was cancelled */
	NOTE_VM_EVENT = 12,       /* another QMP event of the VM; details in the text */
	NOTE_LEVEL = 13,          /* the level changed; the text names the new one */
	NOTE_GUEST_CONFIG = 14,   /* the agent's configuration in force, as text */
};
enum { NOTE_KIND_LAST = NOTE_GUEST_CONFIG }; /* unpacking refuses a note of a later kind */

struct message_clock_sample {
	uint64_t tsc;
	uint64_t tsc_width;
	uint64_t monotonic_ns;
	uint64_t raw_ns;
	uint64_t realtime_ns;
};

/* A point of the guest's printk clock: it read `ns` at stream time `time`, +- `err` ticks. */
struct message_dmesg_point {
	bool known;
	uint64_t time;
	uint64_t ns;
	uint64_t err;
};

/* A kvmclock line, see clock/pvclock.h. mul is not 0, shift is within -31..31. */
struct message_vm_clock_pvclock {
	bool known;
	int8_t shift;
	uint8_t flags;
	uint32_t mul;
	uint32_t version;
	uint64_t tsc_timestamp;
	uint64_t system_time;
};

struct message_cpu {
	uint32_t cpu;
	uint32_t apic_id;
};

struct message_hello {
	uint32_t protocol_min, protocol_max;
	enum stream_role role;
	enum stream_clock clock;
	uint64_t clock_hz;
	char program_version[VS_TEXT_MAX];
	char kernel_release[VS_TEXT_MAX];
	char boot_id[VS_TEXT_MAX];
	struct message_dmesg_point dmesg;
	uint32_t tick_hz;
	uint64_t suspended_ns; /* total time that the machine was suspended since its boot */
	uint32_t watchdog_s;   /* the guest's threshold of a soft lockup; 0 unknown or off */
	uint64_t features;     /* bits of enum protocol_feature; a newer peer may set others */
	/* Host stream: period of the looks at its threads, 0: none, and their condition. */
	uint64_t look_period_ns;
	char look_when[VS_LOOK_WHEN_MAX];
	size_t n_cpus;
	struct message_cpu cpus[VS_CPUS_MAX];
};

/* Aggregated handlers of one class: counted, not sent as events. max_ns: longest one since the
 * threshold was last changed. */
struct message_aggregated {
	uint64_t count, total_ns, max_ns;
};

struct message_cpu_steal {
	uint32_t cpu;
	uint64_t steal_ns;
};

/* Steal of each CPU since the guest's boot, as its kernel counts it, in multiples of unit_ns. */
struct message_steal {
	bool known;
	bool clock; /* the hypervisor reports steal; if false, the values are meaningless */
	uint64_t time, err, unit_ns; /* stream time of the reading, and its bound */
	size_t n_cpus;
	struct message_cpu_steal cpus[VS_CPUS_MAX];
};

struct message_heartbeat {
	uint64_t time;
	uint64_t cpu_time_ns;
	uint64_t rss_bytes;
	uint64_t emitted, delivered, dropped_kernel, dropped_user;
	uint64_t missed; /* events lost without a number, not part of the totals above */
	struct message_aggregated aggregated[EVENT_CLASSES]; /* at level summary */
	struct message_clock_sample sample;
	struct message_dmesg_point dmesg;
	struct message_vm_clock_pvclock pvclock; /* the guest's pvclock page, if it has one */
	uint32_t watchdog; /* 1 + the current value of message_hello.watchdog_s; 0 if not sent */
	/* Unknown if the agent did not read it for this heartbeat. The last member: a record
	 * (decode/record.h) ends after the used CPUs. */
	struct message_steal steal;
};

struct message_echo_request {
	uint32_t id;
};

struct message_echo_reply {
	uint32_t id;
	uint64_t received, sent;
};

struct message_log_line {
	uint64_t dmesg_us;
	uint32_t level;
	char text[VS_LOG_TEXT_MAX];
};

struct message_kernel_log {
	size_t n_lines;
	struct message_log_line lines[VS_LOG_LINES_MAX];
};

struct message_vm_thread {
	int32_t tid;
	char comm[16];
	bool is_vcpu;
	uint32_t vcpu;
	bool apic_id_known;
	uint32_t apic_id;
};

struct message_vm_info {
	uint32_t vm;
	char name[VS_TEXT_MAX];
	int32_t qemu_pid;
	char accelerator[8];
	uint32_t protection; /* enum vm_protection; a newer collector may know others */
	size_t n_threads;
	struct message_vm_thread threads[VS_THREADS_MAX];
};

struct message_echo_observation {
	uint32_t vm;
	uint64_t host_sent, guest_received, guest_sent, host_received;
};

struct message_stack_frame {
	char symbol[VS_TEXT_MAX];
	char module[VS_TEXT_MAX];
	uint64_t offset;
	bool kernel;
};

struct message_stack {
	uint32_t id;
	int32_t pid;
	size_t n_frames;
	struct message_stack_frame frames[VS_STACK_FRAMES_MAX]; /* leaf first */
};

struct message_note {
	uint32_t vm;
	enum note_kind kind;
	uint64_t host_tsc;
	char text[VS_TEXT_MAX];
};

enum vm_clock_source {
	VM_CLOCK_PVCLOCK_UPDATE = 1,   /* tracepoint kvm_pvclock_update */
	VM_CLOCK_WRITE_TSC_OFFSET = 2, /* tracepoint kvm_write_tsc_offset: a request of KVM */
	VM_CLOCK_MASTER_CLOCK = 3,     /* tracepoint kvm_update_master_clock or kvm_track_tsc */
	VM_CLOCK_VCPU = 4,             /* struct kvm_vcpu, by a BPF iterator */
	VM_CLOCK_DEBUGFS = 5,          /* kvm/PID-FD/vcpuN/tsc-* */
	VM_CLOCK_GUEST_PAGE = 6,       /* the guest's pvclock page, read from the host */
};
enum { VM_CLOCK_SOURCE_LAST = VM_CLOCK_GUEST_PAGE }; /* unpacking refuses a later source */

/* guest TSC = ((host TSC * ratio) >> frac_bits) + offset, mod 2^64; see clock/tsc_scaling.h. */
struct message_vm_clock_tsc {
	bool known;
	bool scaling_known; /* if false, only the offset is known */
	uint32_t frac_bits; /* 0: no scaling, ratio has no meaning */
	uint64_t offset;    /* two's complement if negative */
	uint64_t ratio;
};

struct message_vm_clock_master {
	bool known;
	bool used; /* one kvmclock line for all vCPUs */
	bool offsets_matched;
};

/*
 * Clock parameters of a vCPU from one source. They came into force at a host TSC within [from_min,
 * from_max]. from_min is 0 if it is unknown, for example because the collector attached later.
 *
 * The messages of a recording are not sorted by from_max: sort them before use. An offset from
 * VM_CLOCK_WRITE_TSC_OFFSET is a request. VM_CLOCK_VCPU and VM_CLOCK_DEBUGFS show the offset in
 * force, with the same from_min and from_max if KVM granted the request.
 *
 * The collector writes one part (tsc, pvclock or master) per message, because each came into force
 * at its own time. The master part belongs to the VM: vcpu is 0 then and has no meaning.
 */
struct message_vm_clock {
	uint32_t vm;
	uint32_t vcpu; /* KVM's vcpu_id, usually the APIC id; not QEMU's index */
	enum vm_clock_source source;
	uint64_t from_min, from_max;
	struct message_vm_clock_tsc tsc;
	struct message_vm_clock_pvclock pvclock;
	struct message_vm_clock_master master;
};

/*
 * Effect of a CPU quota on some vCPUs of a VM between two readings of cpu.stat of their cgroup, at
 * host TSC `from` and `until`. The kernel counts a throttling at its end, so throttled_ns may
 * exceed the time between the readings. The collector writes the message while the cgroup has a
 * quota, even if nothing was throttled.
 */
struct message_cpu_quota {
	uint32_t vm;
	size_t n_vcpus;
	uint32_t vcpus[VS_CPUS_MAX]; /* vCPUs whose threads are in the cgroup or below it */
	uint64_t from, until;
	uint64_t throttled_ns; /* increase of the throttled time, summed over the host's CPUs */
	uint64_t periods;      /* increase of the number of throttled periods */
	uint64_t quota_us, period_us;
	char cgroup[VS_TEXT_MAX]; /* path below the mount point; a long path is cut at its front */
};

/* Origin of a host task that ran while a vCPU waited for the pCPU (vm/task_files.h). */
struct message_task_origin {
	int32_t tid, tgid;
	uint64_t seen, began; /* host TSC: an event of the task; its start (up to 1 tick early) */
	char cgroup[VS_CGROUP_MAX]; /* path; a long path is cut at its front; "" if unknown */
	char vm[VS_TEXT_MAX];       /* the VM whose VMM the thread belongs to; "" if none */
	bool vcpu_known;
	uint32_t vcpu;
	bool claimed; /* the VM's identity is a claim of user `uid` only */
	uint32_t uid;
};

struct message_task_origins {
	size_t n;
	struct message_task_origin tasks[VS_TASK_ORIGINS_MAX];
};

/* A field of an event. It has one value of 64 bits; a text has one value for each 8 characters. */
struct message_user_field {
	char name[32];
	enum user_field_type type;
	uint32_t bytes; /* in the kernel: 1 to 8, a text up to VS_USER_TEXT_MAX */
};

/* The description of an event that the user chose. USER events refer to it by id. */
struct message_user_event {
	uint32_t id; /* unique in the stream, also among events that are no longer captured */
	enum user_event_kind kind;
	uint32_t flags;        /* bits of enum user_event_flag */
	char system[48];       /* "sched"; "kprobe" and so on; of a usdt the provider */
	char name[64];         /* of the tracepoint, function or probe */
	char path[128];        /* uprobe, usdt: the file; a long path is cut */
	char spec[256];        /* as the user wrote it; a long text is cut */
	uint64_t limited;      /* total of hits that became no event because of the rate limit */
	char why[VS_TEXT_MAX]; /* USER_FAILED, USER_DETACHED: the reason, for people; may be "" */
	size_t n_fields;
	struct message_user_field fields[VS_USER_FIELDS_MAX]; /* in the order of the values */
};

struct message_user_events {
	size_t n;
	struct message_user_event events[VS_USER_EVENTS_MAX];
};

/* Return the number of values of a field, and of an event. */
static inline size_t user_field_n_values(const struct message_user_field *f)
{
	return f->type == USER_TEXT ? (f->bytes + 7u) / 8 : 1;
}

static inline size_t user_event_n_values(const struct message_user_event *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n_fields && i < VS_USER_FIELDS_MAX; i++)
		n += user_field_n_values(&e->fields[i]);
	return n;
}

/* Aggregated VM-exits of one vCPU for one reason: the kernel counted them and emitted no events,
 * because the vCPU did not leave its pCPU. Totals since the capture began. */
struct message_exit_cell {
	uint32_t vcpu; /* index of the vCPU */
	uint32_t isa, reason;
	uint64_t count;
	uint64_t kernel_ns, vmm_ns;
	uint64_t max_ns; /* longest exit, kernel and VMM time together */
	uint64_t buckets[VS_EXIT_BUCKETS];
};

struct message_exit_summary {
	uint32_t vm;
	uint64_t host_tsc;
	size_t n_cells;
	struct message_exit_cell *cells; /* unpack: allocated, caller frees; pack: borrowed */
};

struct message_recording_end {
	uint64_t entries;
	uint64_t host_dropped;
	size_t n_checkpoints;
	uint64_t *checkpoints; /* unpack: allocated, caller frees; pack: borrowed */
};

/* Appends the message to `out`. */
int message_pack(const struct message_layout *layout, const void *m, struct byte_buffer *out);
/* Fills the struct of this layout. */
int message_unpack(const struct message_layout *layout, const uint8_t *payload, size_t len,
		   void *m);

/* message_<message>_pack() and message_<message>_unpack() are the same for one struct. */
#define X(message)                                                                                 \
	static inline int message_##message##_pack(const struct message_##message *m,              \
						   struct byte_buffer *out)                        \
	{                                                                                          \
		return message_pack(&message_##message##_layout, m, out);                          \
	}                                                                                          \
	static inline int message_##message##_unpack(const uint8_t *payload, size_t len,           \
						     struct message_##message *m)                  \
	{                                                                                          \
		return message_unpack(&message_##message##_layout, payload, len, m);               \
	}
VS_MESSAGES(X)
#undef X

/* Makes a struct that another process wrote safe to use: counts are within their arrays, texts end
 * with NUL, booleans are 0 or 1. Other values are not checked: pack and unpack the struct for that.
 * Returns 0, or -EPROTO (a count exceeds its array; a struct with pointers). */
int message_clean(const struct message_layout *layout, void *m);

/* The array at the end of a struct, of which the first members are used. */
struct message_tail {
	size_t at, bytes; /* offset in the struct; size of a member. bytes 0: there is no such
			   * array, and `at` is the size of the struct */
	size_t limit;     /* members */
	size_t count_at;  /* offset of a size_t: the number of used members */
};
struct message_tail message_tail(const struct message_layout *layout);

#endif
