/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hostile guest (attack.h).
 *
 *   hostile list                lists the cases, one per line: number, family, name and
 *                               expectation, separated by tabs
 *   hostile play SOCKET N       plays case N against a collector that listens on SOCKET
 *   hostile victim SOCKET N MS  a well-behaved agent beside it: sends N batches, one every MS ms,
 *                               always the same bytes; N 0: until its standard input ends
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/hostile/attack.h"

static bool (*const families[])(size_t i, struct attack_case *out) = {
	header_case, message_case, batch_case, text_case, flow_case, value_case};

static bool case_get(size_t n, struct attack_case *out)
{
	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		size_t i = 0;

		while (families[f](i, out)) {
			if (!n--)
				return true;
			i++;
		}
	}
	return false;
}

static void attack_init(struct attack *a, const char *path, uint64_t seed)
{
	*a = (struct attack){.path = path, .fd = -1, .random = seed * 77777 + 1};
	a->encoder = batch_encoder_new();
	a->until_ms = attack_now_ms() + 4000;
	attack_connect(a);
}

static int play(const char *path, size_t n)
{
	struct attack_case c;
	struct attack a;

	if (!case_get(n, &c))
		return 2;
	attack_init(&a, path, n + 1);
	c.play(&a, c.variant);
	attack_close(&a);
	return 0;
}

static bool input_ended(void)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};
	char byte;

	return poll(&p, 1, 0) > 0 && read(0, &byte, 1) <= 0;
}

static int victim(const char *path, unsigned long n, unsigned int ms)
{
	static struct vs_event events[200];
	struct attack a;

	attack_init(&a, path, 0);
	attack_hello(&a);
	for (unsigned long i = 0; n ? i < n : !input_ended(); i++) {
		const struct message_heartbeat beat = {.time = (i + 1) * 1000000,
						       .emitted = i * 200};

		a.until_ms = attack_now_ms() + 60000;
		events_make(events, 200, (uint16_t)(i % 4), (i + 1) * 1000000,
			    (uint32_t)(i / 4 * 200));
		if (!attack_batch(&a, events, 200, (uint16_t)(i % 4)))
			return 1;
		a.payload.len = 0;
		message_heartbeat_pack(&beat, &a.payload);
		if (i % 10 == 0 && !attack_frame(&a, FRAME_HEARTBEAT))
			return 1;
		attack_sleep_ms(ms);
	}
	attack_sleep_ms(300); /* what is on its way arrives */
	attack_close(&a);
	return 0;
}

int main(int argc, char **argv)
{
	struct attack_case c;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (size_t i = 0; case_get(i, &c); i++)
			printf("%zu\t%s\t%s\t%u\n", i, c.family, c.name, c.expect);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "play"))
		return play(argv[2], strtoul(argv[3], NULL, 10));
	if (argc == 5 && !strcmp(argv[1], "victim"))
		return victim(argv[2], strtoul(argv[3], NULL, 10),
			      (unsigned int)strtoul(argv[4], NULL, 10));
	fprintf(stderr, "usage: hostile list | play SOCKET N | victim SOCKET N MS\n");
	return 2;
}
