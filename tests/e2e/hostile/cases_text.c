/* SPDX-License-Identifier: GPL-2.0-only */
/* Texts that a guest chooses and that a user may see, in every place where they can occur. */
#include <stdio.h>
#include <string.h>

#include "tests/e2e/hostile/attack.h"
#include "wire.pb-c.h"

static const struct {
	const char *name, *text;
} texts[] = {
	{"a terminal's title", "\x1b]0;owned\x07"},
	{"clears the screen", "\x1b[2J\x1b[H"},
	{"asks the terminal", "\x1b[6n\x1b[c"},
	{"8-bit escapes", "\xc2\x9b"
			  "31m\xc2\x9d"
			  "0;x\xc2\x9c"},
	{"ends a script", "</script><script>alert(1)</script>"},
	{"ends an attribute", "\" onload=\"alert(1)\" x='"},
	{"ends a string", "\\\",\"x\":{\"\n"},
	{"new lines", "a\nb\r\nc\x0b\x0c"},
	{"no UTF-8", "\xff\xfe\x80\xc3(\xf0\x9f"},
	{"overlong UTF-8", "\xc0\xaf\xe0\x80\xaf\xf8\x80\x80\x80\xaf"},
	{"surrogates", "\xed\xa0\x80\xed\xbf\xbf"},
	{"right to left", "\xe2\x80\xae"
			  "gnp.exe\xe2\x81\xa6"},
	{"format letters", "%s%s%n%p%1000000d"},
	{"looks like our lines", "web1  vcpu_not_scheduled 12.3 s"},
	{"10000 letters", NULL},
};
enum { N_TEXTS = sizeof(texts) / sizeof(texts[0]) };

static char *text_of(unsigned int t)
{
	static char letters[10001];

	if (texts[t].text)
		return (char *)texts[t].text;
	memset(letters, 'A', 10000);
	return letters;
}

static void in_task_name(struct attack *a, char *text)
{
	struct vs_event events[2];

	events_make(events, 2, 0, 1000000, 0);
	events[0].type = VS_EVENT_TASK_NAME;
	events[0].pid = events[0].pid2 = 4242;
	memcpy(&events[0].arg0, text, strnlen(text, 8));
	if (strlen(text) > 8)
		memcpy(&events[0].arg1, text + 8, strnlen(text + 8, 8));
	events[1].type = VS_EVENT_SCHED_SWITCH;
	events[1].pid2 = 4242;
	attack_batch(a, events, 2, 0);
}

static void in_log(struct attack *a, char *text)
{
	Vcpuscope__Wire__KernelLog m = VCPUSCOPE__WIRE__KERNEL_LOG__INIT;
	Vcpuscope__Wire__KernelLogLine line = VCPUSCOPE__WIRE__KERNEL_LOG_LINE__INIT,
				       *lines = &line;

	line.text = text;
	line.dmesg_us = 1000000;
	m.lines = &lines;
	m.n_lines = 1;
	a->payload.len = 0;
	byte_buffer_reserve(&a->payload, vcpuscope__wire__kernel_log__get_packed_size(&m));
	a->payload.len = vcpuscope__wire__kernel_log__pack(&m, a->payload.data);
	attack_frame(a, FRAME_KERNEL_LOG);
}

/* All three texts of a HELLO: they stand in the collector's own lines. */
static void in_hello(struct attack *a, char *text)
{
	Vcpuscope__Wire__Hello m = VCPUSCOPE__WIRE__HELLO__INIT;

	m.protocol_min = m.protocol_max = 1;
	m.role = STREAM_ROLE_GUEST;
	m.clock = STREAM_CLOCK_GUEST_TSC;
	m.clock_hz = 1000000000;
	m.program_version = m.kernel_release = m.boot_id = text;
	a->payload.len = 0;
	byte_buffer_reserve(&a->payload, vcpuscope__wire__hello__get_packed_size(&m));
	a->payload.len = vcpuscope__wire__hello__pack(&m, a->payload.data);
	attack_frame(a, FRAME_HELLO);
}

static void in_stack(struct attack *a, char *text)
{
	Vcpuscope__Wire__Stack m = VCPUSCOPE__WIRE__STACK__INIT;
	Vcpuscope__Wire__StackFrame frame = VCPUSCOPE__WIRE__STACK_FRAME__INIT, *frames = &frame;

	frame.symbol = frame.module = text;
	m.id = 5;
	m.frames = &frames;
	m.n_frames = 1;
	a->payload.len = 0;
	byte_buffer_reserve(&a->payload, vcpuscope__wire__stack__get_packed_size(&m));
	a->payload.len = vcpuscope__wire__stack__pack(&m, a->payload.data);
	attack_frame(a, FRAME_GUEST_STACK);
}

static const struct {
	const char *name;
	void (*place)(struct attack *a, char *text);
} places[] = {{"task name", in_task_name},
	      {"log line", in_log},
	      {"hello", in_hello},
	      {"symbol", in_stack}};
enum { N_PLACES = sizeof(places) / sizeof(places[0]) };

static void play_text(struct attack *a, unsigned int variant)
{
	/* A HELLO must come first, and a second one of the session introduces nobody. */
	if (places[variant % N_PLACES].place != in_hello)
		attack_hello(a);
	places[variant % N_PLACES].place(a, text_of(variant / N_PLACES));
	attack_sign_of_life(a);
	attack_sleep_ms(20);
}

bool text_case(size_t i, struct attack_case *out)
{
	static char names[N_PLACES * N_TEXTS][64];

	if (i >= (size_t)N_PLACES * N_TEXTS)
		return false;
	snprintf(names[i], sizeof(names[i]), "%s: %s", places[i % N_PLACES].name,
		 texts[i / N_PLACES].name);
	*out = (struct attack_case){"text", names[i], play_text, (unsigned int)i, EXPECT_ACCEPTED};
	return true;
}
