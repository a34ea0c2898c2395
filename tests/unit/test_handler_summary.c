/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests which handlers are aggregated, with stories of one CPU: each event is one letter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "bpf/capture/handler_summary.h"

enum { OVER_NS = 10, EVENTS_MAX = 64 };

/* Small letters end what the capital one began: I interrupt of a device, J of another, S softirq,
 * N another softirq, T timer, R reschedule, C function call; W a wake-up; - a number that is
 * missing; a digit: time passes, OVER_NS for 9, else as many ns. Each event takes no time. */
static size_t story_read(const char *story, struct vs_event *out)
{
	static const struct {
		char letter;
		uint16_t entry, exit;
		uint64_t arg0;
	} kinds[] = {
		{'I', VS_EVENT_IRQ_ENTRY, VS_EVENT_IRQ_EXIT, 24},
		{'J', VS_EVENT_IRQ_ENTRY, VS_EVENT_IRQ_EXIT, 25},
		{'S', VS_EVENT_SOFTIRQ_ENTRY, VS_EVENT_SOFTIRQ_EXIT, 3},
		{'N', VS_EVENT_SOFTIRQ_ENTRY, VS_EVENT_SOFTIRQ_EXIT, 7},
		{'T', VS_EVENT_VECTOR_ENTRY, VS_EVENT_VECTOR_EXIT, VS_VECTOR_LOCAL_TIMER},
		{'R', VS_EVENT_VECTOR_ENTRY, VS_EVENT_VECTOR_EXIT, VS_VECTOR_RESCHEDULE},
		{'C', VS_EVENT_VECTOR_ENTRY, VS_EVENT_VECTOR_EXIT, VS_VECTOR_CALL_FUNCTION},
		{'W', VS_EVENT_SCHED_WAKEUP, 0, 0},
	};
	struct vs_event next = {.time = 1000, .seq = UINT32_MAX - 2};
	size_t n = 0;

	for (; *story; story++) {
		if (*story == ' ')
			continue;
		if (*story >= '0' && *story <= '9') {
			next.time += *story == '9' ? OVER_NS : *story - '0';
			continue;
		}
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
			if ((*story & ~0x20) != kinds[k].letter)
				continue;
			out[n] = next;
			out[n].type = *story & 0x20 ? kinds[k].exit : kinds[k].entry;
			out[n++].arg0 = kinds[k].arg0;
		}
		next.seq++;
	}
	return n;
}

/* told: the letters that are, without digits and dashes. */
static void check(const char *story, const char *reported)
{
	struct handler_summary s = {.over_ns = OVER_NS};
	struct vs_event events[EVENTS_MAX];
	const size_t n = story_read(story, events);
	char left[EVENTS_MAX + 1] = "";
	uint64_t counted = 0;
	size_t at = 0, i = 0;

	handler_summary_mark(&s, events, n);
	for (const char *c = story; *c; c++) {
		if (*c == ' ' || *c == '-' || (*c >= '0' && *c <= '9'))
			continue;
		if (events[i++].type != VS_EVENT_NONE)
			left[at++] = *c;
	}
	assert_string_equal(left, reported);
	for (size_t k = 0; k < EVENT_CLASSES; k++)
		counted += s.aggregated[k].count;
	assert_int_equal(2 * counted, n - at);
}

static void short_ones_are_counted(void **state)
{
	(void)state;
	check("I1i S2s R8r", "");
	check("W I1i W S5s W", "WWW");
	check("I9i S91s R9r", "IiSsRr"); /* from the threshold on */
	check("I5i I95i I5i", "Ii");
}

static void what_happens_inside_is_told_with_its_handler(void **state)
{
	(void)state;
	check("I1W1i", "IWi");
	check("S1 I1i 1s", ""); /* both short */
	check("S1 I1W1i 1s", "SIWis");
	check("S1 I9i 1s", "SIis"); /* the inner one is long */
	check("S5 I1i 5s", "Ss");   /* the outer one is, with a short one in it */
	check("S1 I1i W I1i 1s", "SWs");
	check("S1s N1W1n I1i", "NWn");
}

static void what_verdicts_rest_on_is_always_told(void **state)
{
	(void)state;
	check("T1t C1c", "TtCc");
	check("S1 T1t 1s", "STts");
	check("T1 S1s t", "Tt");
}

static void halves_and_strangers_are_told(void **state)
{
	(void)state;
	check("i I1i s", "is");
	check("I1", "I"); /* under way when the events end */
	check("I1 S1", "IS");
	check("I1j", "Ij"); /* another's end */
	check("I1s1i", "Isi");
	check("I1-1i I1i", "Ii"); /* what is missing may have been anything */
	check("IIIIIIIIIIIIIIIIIIIII", "IIIIIIIIIIIIIIIIIIIII");
}

static void totals_are_by_class(void **state)
{
	struct handler_summary s = {.over_ns = OVER_NS};
	struct vs_event events[EVENTS_MAX];
	const struct message_aggregated irqs = {3, 9, 6}, softirqs = {2, 12, 8},
					vectors = {1, 4, 4};

	(void)state;
	handler_summary_mark(&s, events, story_read("I1i J2j S8s R4r N4n J6j W", events));
	assert_memory_equal(&s.aggregated[EVENT_CLASS_IRQS], &irqs, sizeof(irqs));
	assert_memory_equal(&s.aggregated[EVENT_CLASS_SOFTIRQS], &softirqs, sizeof(softirqs));
	assert_memory_equal(&s.aggregated[EVENT_CLASS_VECTORS], &vectors, sizeof(vectors));
	/* A clock that goes back is no time at all. */
	events[0] = (struct vs_event){.type = VS_EVENT_IRQ_ENTRY, .time = 50};
	events[1] = (struct vs_event){.type = VS_EVENT_IRQ_EXIT, .time = 40, .seq = 1};
	handler_summary_mark(&s, events, 2);
	assert_int_equal(s.aggregated[EVENT_CLASS_IRQS].count, 4);
	assert_int_equal(s.aggregated[EVENT_CLASS_IRQS].total_ns, 9);
	/* At detail nothing is looked at. */
	s.over_ns = 0;
	handler_summary_mark(&s, events, story_read("I1i S1s", events));
	assert_int_equal(events[0].type, VS_EVENT_IRQ_ENTRY);
	assert_int_equal(s.aggregated[EVENT_CLASS_IRQS].count, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_ones_are_counted),
		cmocka_unit_test(what_happens_inside_is_told_with_its_handler),
		cmocka_unit_test(what_verdicts_rest_on_is_always_told),
		cmocka_unit_test(halves_and_strangers_are_told),
		cmocka_unit_test(totals_are_by_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
