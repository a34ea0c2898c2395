/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that recordings follow each other within their budget, however much of the past each
 * begins with. This program stands for the VMs: it implements the functions of watched_vm.h that
 * spool.c calls. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/daemon/flight_ring.h"
#include "host-collector/daemon/spool.h"
#include "proto/frame.h"
#include "proto/recording.h"

enum { FRAME_BYTES = 64 << 10, MIB = 1 << 20, STEP_US = 20000 };

struct watched_vm {
	struct vm_config config;
	struct frame_tap *tap;
	uint64_t past_bytes; /* what the next file begins with */
	uint64_t fed, given; /* bytes of frames; of the past, over all files */
};

const struct vm_config *watched_vm_config(const struct watched_vm *vm)
{
	return &vm->config;
}

void watched_vm_tap(struct watched_vm *vm, struct frame_tap *tap)
{
	vm->tap = tap;
}

void watched_vm_untap(struct watched_vm *vm, struct frame_tap *tap)
{
	assert_ptr_equal(vm->tap, tap);
	vm->tap = NULL;
}

void watched_vm_status_get(const struct watched_vm *vm, struct watched_vm_status *out)
{
	(void)vm;
	*out = (struct watched_vm_status){.state = WATCHED_RUNNING};
}

void watched_vm_restart(struct watched_vm *vm)
{
	(void)vm;
	fail_msg("there is always a past");
}

/* Of noise, as nobody looks into it. */
static struct byte_buffer frame;

static void frame_make(void)
{
	static uint8_t noise[FRAME_BYTES];
	struct frame_writer *w = frame_writer_new(1);

	assert_non_null(w);
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)random();
	assert_int_equal(frame_write(w, FRAME_BATCH, noise, sizeof(noise), &frame), 0);
	frame_writer_free(w);
}

static int on_go_on(void *context, const struct watched_vm *vm, size_t max_bytes,
		    struct recording_writer *out, struct flight_places **places)
{
	struct watched_vm *mine = (struct watched_vm *)vm;
	const uint64_t bytes = vm->past_bytes < max_bytes ? vm->past_bytes : max_bytes;

	(void)context;
	*places = NULL;
	for (uint64_t n = 0; n < bytes; n += FRAME_BYTES, mine->given += FRAME_BYTES)
		assert_int_equal(recording_writer_append(out, 0, 1, frame.data, frame.len), 0);
	return 0;
}

static size_t on_past_bytes(void *context, const struct watched_vm *vm)
{
	(void)context;
	return vm->past_bytes;
}

static bool on_watches(void *context, const char *vm)
{
	(void)context, (void)vm;
	return true;
}

static void on_say(void *context, const char *vm, const char *line)
{
	(void)context, (void)vm;
	assert_null(strstr(line, "recording stops"));
}

struct stage {
	struct daemon_config config;
	struct spool *spool;
	char folder[64];
	struct watched_vm flood, honest;
};

static int setup(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));
	const struct spool_options options = {.config = s ? &s->config : NULL,
					      .go_on = on_go_on,
					      .past_bytes = on_past_bytes,
					      .watches = on_watches,
					      .say = on_say};

	assert_non_null(s);
	daemon_config_default(&s->config);
	s->config.disk_reserve_bytes = 0;
	snprintf(s->folder, sizeof(s->folder), "/tmp/test_spool.XXXXXX");
	assert_non_null(mkdtemp(s->folder));
	snprintf(s->config.directory, sizeof(s->config.directory), "%s", s->folder);
	snprintf(s->flood.config.name, sizeof(s->flood.config.name), "flood");
	snprintf(s->honest.config.name, sizeof(s->honest.config.name), "honest");
	s->spool = spool_new(&options);
	assert_non_null(s->spool);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct stage *s = *state;
	char command[128];

	spool_free(s->spool);
	snprintf(command, sizeof(command), "rm -r %s", s->folder);
	assert_int_equal(system(command), 0);
	free(s);
	return 0;
}

static void feed(struct watched_vm *vm, uint64_t bytes)
{
	struct frame_view view;
	struct frame_item item;

	assert_int_equal(frame_parse(frame.data, frame.len, &view), 0);
	item = frame_item_of(&view);
	for (uint64_t n = 0; n < bytes; n += FRAME_BYTES, vm->fed += FRAME_BYTES)
		vm->tap->frame(vm->tap->context, 0, 1, &item);
}

static uint64_t held(const struct stage *s, const char *vm)
{
	char path[128];
	struct dirent *entry;
	uint64_t sum = 0;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", s->folder, vm);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (!fstatat(dirfd(dir), entry->d_name, &st, 0) && S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	}
	if (dir)
		closedir(dir);
	return sum;
}

/* A file_size that the past alone exceeds: the configuration may change under a VM. */
static void a_small_file_size_is_no_storm_of_writes(void **state)
{
	struct stage *s = *state;
	struct spool_status status;

	s->config.file_bytes = MIB;
	s->config.disk_budget_bytes = 1000ull * MIB;
	s->flood.past_bytes = 8 * MIB;
	assert_int_equal(spool_begin(s->spool, &s->flood), 0);
	for (int i = 0; i < 50; i++) {
		feed(&s->flood, MIB / 4);
		spool_tick(s->spool);
	}
	spool_status_get(s->spool, &s->flood, &status);
	assert_true(status.files > 5);
	assert_true(s->flood.given < 2 * s->flood.fed);
}

static void a_flood_stays_in_its_share(void **state)
{
	struct stage *s = *state;
	uint64_t honest, most = 0;

	s->config.file_bytes = 16 * MIB;
	s->config.disk_budget_bytes = 32 * MIB;
	s->flood.past_bytes = 4 * MIB;
	assert_int_equal(spool_begin(s->spool, &s->honest), 0);
	assert_int_equal(spool_begin(s->spool, &s->flood), 0);
	feed(&s->honest, 10 * MIB);
	spool_tick(s->spool);
	spool_tick(s->spool);
	honest = s->honest.fed;
	for (int i = 0; i < 150; i++) { /* 3 s, of 25 MiB each */
		uint64_t now;

		feed(&s->flood, MIB / 2);
		usleep(STEP_US);
		spool_tick(s->spool);
		now = held(s, "flood") + held(s, "honest");
		most = now > most ? now : most;
	}
	assert_true(held(s, "honest") >= honest);
	/* What comes between two looks at the disk, once and as the past of what follows. */
	if (most > (32 + 50 + 10) * MIB)
		fail_msg("%llu MiB", (unsigned long long)most / MIB);
	feed(&s->honest, MIB);
	usleep(1100000);
	spool_tick(s->spool);
	assert_true(held(s, "flood") + held(s, "honest") <= 33 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_small_file_size_is_no_storm_of_writes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_flood_stays_in_its_share, setup, teardown),
	};

	int failed;

	frame_make();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	byte_buffer_fini(&frame);
	return failed;
}
