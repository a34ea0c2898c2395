/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests TLS from the agent's channel to the collector's link, over a real socket and with real
 * relay and decoder processes: a peer with the key is accepted, all others are refused with one
 * line. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <gnutls/gnutls.h>

#include "guest-agent/channel.h"
#include "guest-agent/tls_relay.h"
#include "host-collector/decode/worker.h"
#include "host-collector/link/link.h"
#include "proto/sibling.h"
#include "tests/unit/loop_run.h"
#include "tests/unit/strangers.h"

#define KEY       "00112233445566778899aabbccddeeff"
#define OTHER_KEY "ff112233445566778899aabbccddeeff"

enum { PATIENCE_MS = 15000 };

struct rig {
	uv_loop_t loop;
	uv_timer_t limit;
	struct guest_link *link;
	struct channel *channel;
	char folder[64], host_file[96], guest_file[96];
	uint16_t port;
	struct frame_writer *agent;
	struct byte_buffer wire, payload;
	size_t frames, hellos, notes, ups, downs, agent_received;
	char said[4096]; /* all notes */
};

/* ---- host ---- */

static void on_frame(void *context, struct frame_item *frame, uint64_t arrival_tsc)
{
	(void)frame, (void)arrival_tsc;
	((struct rig *)context)->frames++;
}

static void on_observation(void *context, const struct message_echo_observation *o)
{
	(void)context, (void)o;
}

static void on_hello(void *context, const struct message_hello *hello)
{
	(void)hello;
	((struct rig *)context)->hellos++;
}

static void on_heartbeat(void *context, const struct message_heartbeat *heartbeat)
{
	(void)context, (void)heartbeat;
}

static void on_note(void *context, enum note_kind kind, const char *text)
{
	struct rig *r = context;
	size_t used = strlen(r->said);

	(void)kind;
	assert_null(strchr(text, '\n'));
	r->notes++;
	snprintf(r->said + used, sizeof(r->said) - used, "%s\n", text);
}

static uint16_t port_free(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	close(fd);
	return ntohs(in.sin_port);
}

static void file_put(const char *path, const char *content)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	close(fd);
}

static void host_listen(struct rig *r, const char *carrier, const char *secrets,
			const char *identity)
{
	static const struct message_hello ours = {.protocol_min = 1,
						  .protocol_max = 1,
						  .role = STREAM_ROLE_HOST,
						  .clock = STREAM_CLOCK_HOST_TSC,
						  .clock_hz = 1000000000};
	const struct link_events events = {on_frame,     on_observation, on_hello,
					   on_heartbeat, on_note,        r};
	const struct link_security security = {.psk_path = secrets ? r->host_file : NULL,
					       .psk_identity = identity};
	struct link_address address;
	char text[64], why[256] = "";

	if (secrets)
		file_put(r->host_file, secrets);
	snprintf(text, sizeof(text), "listen:%s:127.0.0.1:%u", carrier, r->port);
	assert_int_equal(link_address_parse(text, &address, why, sizeof(why)), 0);
	if (link_address_secure(&address, &security, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(guest_link_open(&r->loop, &address, &ours, NULL, &events, &r->link), 0);
}

/* ---- guest ---- */

static void agent_say(struct rig *r, enum frame_kind kind)
{
	size_t at = r->wire.len;

	assert_int_equal(frame_write(r->agent, kind, r->payload.data, r->payload.len, &r->wire), 0);
	r->payload.len = 0;
	assert_true(r->wire.len > at);
}

static void on_writable(void *context)
{
	struct rig *r = context;
	size_t n = channel_write(r->channel, r->wire.data, r->wire.len);

	memmove(r->wire.data, r->wire.data + n, r->wire.len - n);
	r->wire.len -= n;
}

static void on_up(void *context)
{
	static const struct message_hello hello = {.protocol_min = 1,
						   .protocol_max = 1,
						   .role = STREAM_ROLE_GUEST,
						   .clock = STREAM_CLOCK_GUEST_TSC,
						   .clock_hz = 2000000000,
						   .program_version = "9.9",
						   .kernel_release = "6.1"};
	struct rig *r = context;

	r->ups++;
	r->wire.len = 0;
	assert_int_equal(message_hello_pack(&hello, &r->payload), 0);
	agent_say(r, FRAME_HELLO);
	on_writable(r);
}

static void on_down(void *context)
{
	((struct rig *)context)->downs++;
}

static void on_received(void *context, const uint8_t *data, size_t len)
{
	(void)data;
	((struct rig *)context)->agent_received += len;
}

static void guest_dial(struct rig *r, const char *secret)
{
	const struct channel_events events = {on_up, on_down, on_received, on_writable, r};
	struct channel_address address;
	char text[64], why[256] = "";

	file_put(r->guest_file, secret);
	snprintf(text, sizeof(text), "tls:127.0.0.1:%u", r->port);
	if (channel_address_parse(text, &address, why, sizeof(why)) ||
	    channel_tls_check(why, sizeof(why)))
		fail_msg("%s", why);
	address.psk_path = r->guest_file;
	address.relay_said = EACCES; /* its line is for people */
	assert_int_equal(channel_open(&r->loop, &address, &events, &r->channel), 0);
}

/* A client of no relay of ours, connected. */
static int stranger_dial(struct rig *r)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons(r->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

/* ---- rig ---- */

/* The channel looks for the relay beside its own program. */
static int relay_link(void **state)
{
	char path[PATH_MAX];
	const int err = sibling_path(RELAY_NAME, path, sizeof(path));

	(void)state;
	return err && (err != -ENOENT || symlink(RELAY_PROGRAM, path)) ? -1 : 0;
}

static int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	uv_loop_init(&r->loop);
	uv_timer_init(&r->loop, &r->limit);
	snprintf(r->folder, sizeof(r->folder), "/tmp/test_tls.XXXXXX");
	if (!mkdtemp(r->folder))
		return -1;
	snprintf(r->host_file, sizeof(r->host_file), "%s/host", r->folder);
	snprintf(r->guest_file, sizeof(r->guest_file), "%s/guest", r->folder);
	r->port = port_free();
	r->agent = frame_writer_new(0x1111);
	*state = r;
	return 0;
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	channel_close(r->channel);
	guest_link_close(r->link);
	uv_close((uv_handle_t *)&r->limit, NULL);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&r->loop), 0);
	unlink(r->host_file);
	unlink(r->guest_file);
	rmdir(r->folder);
	frame_writer_free(r->agent);
	byte_buffer_fini(&r->wire);
	byte_buffer_fini(&r->payload);
	free(r);
	return 0;
}

static void run_ms(struct rig *r, uint64_t ms)
{
	loop_run_ms(&r->loop, &r->limit, ms);
}

static void run_until(struct rig *r, const size_t *value, size_t want)
{
	for (int ms = 0; ms < PATIENCE_MS && *value < want; ms += 10)
		run_ms(r, 10);
	if (*value < want)
		fail_msg("%zu of %zu; the host said: %s", *value, want, r->said);
}

static void run_until_said(struct rig *r, const char *text)
{
	for (int ms = 0; ms < PATIENCE_MS && !strstr(r->said, text); ms += 10)
		run_ms(r, 10);
	if (!strstr(r->said, text))
		fail_msg("'%s' was not said, but: %s", text, r->said);
}

static void expect_refused(struct rig *r, const char *line)
{
	run_until_said(r, line);
	run_ms(r, 100);
	assert_int_equal(r->frames, 0);
	assert_int_equal(r->hellos, 0);
	assert_int_equal(r->ups, 0);
}

/* ---- properties ---- */

static void the_right_key_is_heard(void **state)
{
	enum { LINES = 3000 };
	static struct message_kernel_log log;
	struct rig *r = *state;

	host_listen(r, "tls", "# two VMs\nvm0:" OTHER_KEY "\nvm1:" KEY "\n", "vm1");
	guest_dial(r, "vm1:" KEY "\n");
	run_until(r, &r->hellos, 1);
	assert_true(r->ups == 1);
	run_until(r, &r->agent_received, 1); /* the host's HELLO */
	log.n_lines = 1;
	memset(log.lines[0].text, 'x', sizeof(log.lines[0].text) - 1);
	for (int i = 0; i < LINES; i++) {
		assert_int_equal(message_kernel_log_pack(&log, &r->payload), 0);
		agent_say(r, FRAME_KERNEL_LOG);
	}
	on_writable(r);
	run_until(r, &r->frames, 1 + LINES);
	assert_int_equal(r->downs, 0);
}

static void it_comes_back_after_a_break(void **state)
{
	struct rig *r = *state;
	struct guest_link_stats stats;

	host_listen(r, "tls", "vm1:" KEY "\n", NULL);
	guest_dial(r, "vm1:" KEY "\n");
	run_until(r, &r->hellos, 1);
	guest_link_stats_get(r->link, &stats);
	kill(stats.decoder_pid, SIGKILL);
	run_until(r, &r->downs, 1);
	run_until(r, &r->ups, 2);
	run_until(r, &r->hellos, 2);
}

static void a_wrong_key_is_refused(void **state)
{
	struct rig *r = *state;

	host_listen(r, "tls", "vm1:" KEY "\n", NULL);
	guest_dial(r, "vm1:" OTHER_KEY "\n");
	expect_refused(r, "refused: wrong TLS key for identity 'vm1'\n");
}

static void an_unknown_identity_is_refused(void **state)
{
	struct rig *r = *state;

	host_listen(r, "tls", "vm1:" KEY "\n", NULL);
	guest_dial(r, "vm2:" KEY "\n");
	expect_refused(r, "refused: unknown TLS identity 'vm2'\n");
}

static void plain_text_is_refused(void **state)
{
	struct rig *r = *state;
	struct message_heartbeat heartbeat = {.time = 1};
	int fd;

	host_listen(r, "tls", "vm1:" KEY "\n", NULL);
	fd = stranger_dial(r);
	assert_int_equal(message_heartbeat_pack(&heartbeat, &r->payload), 0);
	agent_say(r, FRAME_HEARTBEAT);
	assert_true(write(fd, r->wire.data, r->wire.len) > 0);
	expect_refused(r, "refused: who connects does not speak TLS\n");
	close(fd);
}

/* Whoever reaches the port may knock as often as he likes; the log is not his. */
static void many_strangers_are_few_lines(void **state)
{
	enum { KNOCKS = 40, SHOWN_MAX = 20 };
	struct guest_link_stats stats = {0};
	struct rig *r = *state;
	uint64_t begin_ms;

	host_listen(r, "tls", "vm1:" KEY "\n", NULL);
	begin_ms = uv_now(&r->loop);
	for (uint64_t i = 1; i <= KNOCKS; i++) {
		int fd = stranger_dial(r);

		assert_int_equal(write(fd, "GET /", 5), 5);
		for (int ms = 0; ms < PATIENCE_MS && stats.connections < i; ms += 10) {
			run_ms(r, 10);
			guest_link_stats_get(r->link, &stats);
		}
		close(fd);
	}
	assert_true(stats.connections >= KNOCKS);
	assert_true(r->notes >= 1);
	/* In each 10 s so many, and one line about the others. */
	assert_true(r->notes <=
		    SHOWN_MAX + (SHOWN_MAX + 1) * (uv_now(&r->loop) - begin_ms) / 10000);
	expect_refused(r, "refused: who connects does not speak TLS\n");
}

static void an_older_tls_is_refused(void **state)
{
	const gnutls_datum_t key = {(unsigned char *)(char[]){KEY}, sizeof(KEY) - 1};
	gnutls_psk_client_credentials_t credentials;
	struct rig *r = *state;
	gnutls_session_t session;
	int fd, err = GNUTLS_E_AGAIN;

	host_listen(r, "tls", "vm1:" KEY "\n", NULL);
	fd = stranger_dial(r);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK);
	gnutls_priority_set_direct(
		session, "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ECDHE-PSK:+DHE-PSK:+PSK", NULL);
	gnutls_psk_allocate_client_credentials(&credentials);
	gnutls_psk_set_client_credentials(credentials, "vm1", &key, GNUTLS_PSK_KEY_HEX);
	gnutls_credentials_set(session, GNUTLS_CRD_PSK, credentials);
	gnutls_transport_set_int(session, fd);
	for (int ms = 0; ms < PATIENCE_MS && err == GNUTLS_E_AGAIN; ms += 10) {
		run_ms(r, 10);
		err = gnutls_handshake(session);
	}
	assert_true(err < 0 && err != GNUTLS_E_AGAIN);
	expect_refused(r, "refused: who connects offers no TLS 1.3 with a key\n");
	gnutls_deinit(session);
	gnutls_psk_free_client_credentials(credentials);
	close(fd);
}

/* A client without a relay of ours. */
struct client {
	int fd;
	gnutls_session_t session;
	gnutls_psk_client_credentials_t credentials;
};

static void client_dial(struct rig *r, struct client *c, const char *identity, const char *key_text)
{
	const gnutls_datum_t key = {(unsigned char *)key_text, (unsigned int)strlen(key_text)};

	c->fd = stranger_dial(r);
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	gnutls_init(&c->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK);
	gnutls_priority_set_direct(c->session, "NORMAL:-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+ECDHE-PSK",
				   NULL);
	gnutls_psk_allocate_client_credentials(&c->credentials);
	gnutls_psk_set_client_credentials(c->credentials, identity, &key, GNUTLS_PSK_KEY_HEX);
	gnutls_credentials_set(c->session, GNUTLS_CRD_PSK, c->credentials);
	gnutls_transport_set_int(c->session, c->fd);
}

static void client_end(struct client *c)
{
	gnutls_deinit(c->session);
	gnutls_psk_free_client_credentials(c->credentials);
	close(c->fd);
}

/* The alert with which a handshake with this secret ends. */
static int alert_for(struct rig *r, const char *identity, const char *key_text)
{
	struct client c;
	int err = GNUTLS_E_AGAIN, alert;

	client_dial(r, &c, identity, key_text);
	for (int ms = 0; ms < PATIENCE_MS && err == GNUTLS_E_AGAIN; ms += 10) {
		run_ms(r, 10);
		err = gnutls_handshake(c.session);
	}
	assert_int_equal(err, GNUTLS_E_FATAL_ALERT_RECEIVED);
	alert = (int)gnutls_alert_get(c.session);
	client_end(&c);
	return alert;
}

static void a_stranger_does_not_learn_which_identities_there_are(void **state)
{
	struct rig *r = *state;

	host_listen(r, "tls", "vm1:" KEY "\n", NULL);
	assert_int_equal(alert_for(r, "vm1", OTHER_KEY), alert_for(r, "vm2", OTHER_KEY));
	run_until_said(r, "refused: wrong TLS key for identity 'vm1'\n");
	run_until_said(r, "refused: unknown TLS identity 'vm2'\n");
}

/* Which is no wrong key. */
static void a_handshake_given_up_is_called_that(void **state)
{
	struct rig *r = *state;
	struct client c;
	char byte;

	host_listen(r, "tls", "vm1:" KEY "\n", NULL);
	client_dial(r, &c, "vm1", KEY);
	assert_int_equal(gnutls_handshake(c.session), GNUTLS_E_AGAIN);
	for (int ms = 0; ms < PATIENCE_MS && recv(c.fd, &byte, 1, MSG_PEEK) < 0; ms += 10)
		run_ms(r, 10);
	client_end(&c); /* the host has answered */
	expect_refused(r, "the other end gave up the TLS handshake as identity 'vm1'\n");
	assert_null(strstr(r->said, "wrong TLS key"));
}

static void silence_ends(void **state)
{
	struct rig *r = *state;
	char byte;
	int fd;

	host_listen(r, "tls", "vm1:" KEY "\n", NULL);
	fd = stranger_dial(r);
	run_until_said(r, "refused: no TLS handshake for 5 s (connections closed: 1)\n");
	assert_non_null(
		strstr(r->said, "silent for 3 s: nobody who connects completes a TLS handshake\n"));
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	expect_refused(r, "");
	close(fd);
}

/* From dialling to HELLO. */
static uint64_t agent_arrives_ms(struct rig *r)
{
	uint64_t begin = uv_hrtime();
	size_t hellos = r->hellos;

	guest_dial(r, "vm1:" KEY "\n");
	run_until(r, &r->hellos, hellos + 1);
	return (uv_hrtime() - begin) / 1000000;
}

static void agent_leaves(struct rig *r)
{
	struct guest_link_stats stats;

	channel_close(r->channel);
	r->channel = NULL;
	do {
		run_ms(r, 10);
		guest_link_stats_get(r->link, &stats);
	} while (stats.state == LINK_TALKING);
}

/* As many as like may do what they like, also from the agent's own address: who has the key comes
 * in as if nobody else was there, or at most two seconds later. */
static void strangers_do_not_keep_the_agent_out(void **state)
{
	enum { STRANGERS = 1000, LATER_MAX_MS = 2000 };
	static const struct {
		enum stranger_kind kind;
		const char *name;
	} cases[] = {
		{STRANGERS_SILENT, "silent"},
		{STRANGERS_ONE_BYTE, "one byte each"},
		{STRANGERS_GARBAGE, "garbage"},
		{STRANGERS_FLEETING, "connect and close"},
	};
	struct rig *r = *state;
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons(r->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint64_t alone_ms, ms;

	host_listen(r, "tls", "vm1:" KEY "\n", NULL);
	alone_ms = agent_arrives_ms(r);
	agent_leaves(r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pid_t pid = strangers_start((struct sockaddr *)&in, sizeof(in), STRANGERS,
					    cases[i].kind);

		assert_true(pid > 0);
		for (int time = 0; time < 2; time++) {
			run_ms(r, 300); /* they fill what can be filled */
			ms = agent_arrives_ms(r);
			print_message("%d strangers, %s: the agent is heard after %llu ms "
				      "(alone: %llu)\n",
				      STRANGERS, cases[i].name, (unsigned long long)ms,
				      (unsigned long long)alone_ms);
			assert_true(ms < alone_ms + LATER_MAX_MS);
			run_ms(r, 300);
			agent_leaves(r);
		}
		strangers_stop(pid);
	}
}

static void a_plain_host_gets_nothing(void **state)
{
	struct rig *r = *state;

	host_listen(r, "tcp", NULL, NULL);
	guest_dial(r, "vm1:" KEY "\n");
	run_ms(r, 500);
	assert_int_equal(r->ups, 0);
	assert_int_equal(r->hellos, 0);
}

static const struct {
	const char *content;
	mode_t mode;
	const char *identity;
	int err;
	const char *says;
} files[] = {
	{"vm1:" KEY "\n", 0600, NULL, 0, ""},
	{"# x\n\nvm1:" KEY, 0400, "vm1", 0, ""},
	{"vm1:" KEY "\n", 0644, NULL, -EPERM, "chmod 600"},
	{"vm1:" KEY "\n", 0600, "vm2", -ENOENT, "no identity vm2"},
	{"", 0600, NULL, -ENOENT, "no identity at all"},
	{"vm1:" KEY "\nvm2:" KEY "\n", 0600, NULL, -EINVAL, "say which"},
	{"vm1:" KEY "\nvm1:" KEY "\n", 0600, "vm1", -EINVAL, "more than once"},
	{"vm1:0011\n", 0600, NULL, -EINVAL, "line 1: want IDENTITY:KEY"},
	{"vm1:" KEY "0\n", 0600, NULL, -EINVAL, "line 1"},
	{"vm1:" KEY "gg\n", 0600, NULL, -EINVAL, "line 1"},
	{"\nvm 1:" KEY "\n", 0600, NULL, -EINVAL, "line 2"},
	{":" KEY "\n", 0600, NULL, -EINVAL, "line 1"},
	{"vm1\n", 0600, NULL, -EINVAL, "line 1"},
};

static void secrets_are_read_or_refused_in_one_line(void **state)
{
	struct rig *r = *state;
	char long_line[1024];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct tls_psk psk;
		char why[256] = "";

		unlink(r->host_file);
		file_put(r->host_file, files[i].content);
		assert_int_equal(chmod(r->host_file, files[i].mode), 0);
		assert_int_equal(
			tls_psk_read(r->host_file, files[i].identity, &psk, why, sizeof(why)),
			files[i].err);
		if (!strstr(why, files[i].says) || strchr(why, '\n'))
			fail_msg("%zu: %s", i, why);
		if (files[i].err)
			continue;
		assert_string_equal(psk.identity, "vm1");
		assert_int_equal(psk.key_bytes, 16);
		assert_int_equal(psk.key[1], 0x11);
		assert_int_equal(psk.key[15], 0xff);
	}
	memset(long_line, 'a', sizeof(long_line));
	memcpy(long_line, "vm1:", 4);
	long_line[sizeof(long_line) - 1] = '\0';
	file_put(r->host_file, long_line);
	assert_int_equal(tls_psk_read(r->host_file, NULL, &(struct tls_psk){0}, long_line, 64),
			 -EINVAL);
}

static const struct {
	const char *address;
	bool psk, insecure;
	int err;
} uses[] = {
	{"listen:tcp:127.0.0.1:7431", false, false, 0},
	{"listen:tcp:*:7431", false, false, -EINVAL},
	{"listen:tcp:*:7431", false, true, 0},
	{"tcp:192.0.2.1:7431", false, false, -EINVAL},
	{"tcp:[::1]:7431", false, false, -EINVAL}, /* getaddrinfo wants no brackets */
	{"tcp:::1:7431", false, false, 0},
	{"listen:tls:*:7431", false, false, -EINVAL},
	{"listen:tls:*:7431", true, false, 0},
	{"listen:tcp:127.0.0.1:7431", true, false, -EINVAL},
	{"/run/x", false, false, 0},
	{"/run/x", true, false, -EINVAL},
};

static void what_crosses_a_network_is_encrypted_or_meant(void **state)
{
	struct rig *r = *state;

	file_put(r->host_file, "vm1:" KEY "\n");
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		const struct link_security security = {.psk_path =
							       uses[i].psk ? r->host_file : NULL,
						       .insecure_plain_tcp = uses[i].insecure};
		struct link_address address;
		char why[256] = "";
		int err = link_address_parse(uses[i].address, &address, why, sizeof(why));

		if (!err)
			err = link_address_secure(&address, &security, why, sizeof(why));
		if (err != uses[i].err || !err == !!why[0])
			fail_msg("%s: %d %s", uses[i].address, err, why);
	}
}

static char process_state(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state;
}

/* Its socket to the agent stays open here: only the death of its parent tells it. */
static void the_relay_dies_with_its_agent(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)r->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t agent, relay = 0;
	int pair[2], said[2];
	char port[8];

	file_put(r->guest_file, "web1:" KEY "\n");
	snprintf(port, sizeof(port), "%d", r->port);
	assert_int_equal(bind(listener, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(pipe(said), 0);
	agent = fork();
	if (!agent) {
		relay = fork();
		if (!relay) {
			dup2(pair[1], RELAY_AGENT);
			execl(RELAY_PROGRAM, RELAY_NAME, "127.0.0.1", port, r->guest_file, "0",
			      NULL);
			_exit(99);
		}
		(void)!write(said[1], &relay, sizeof(relay));
		pause();
		_exit(0);
	}
	assert_int_equal(read(said[0], &relay, sizeof(relay)), sizeof(relay));
	/* it has connected, so it has given up its rights, and now waits for an answer */
	close(accept(listener, NULL, NULL) < 0 ? -1 : said[1]);
	usleep(200000);
	assert_int_equal(process_state(relay), 'S');
	kill(agent, SIGKILL);
	waitpid(agent, NULL, 0);
	for (int i = 0; i < 300 && process_state(relay) && process_state(relay) != 'Z'; i++)
		usleep(10000);
	assert_true(!process_state(relay) || process_state(relay) == 'Z');
	close(said[0]);
	close(pair[0]);
	close(pair[1]);
	close(listener);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_right_key_is_heard, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(it_comes_back_after_a_break, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(a_wrong_key_is_refused, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(an_unknown_identity_is_refused, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(plain_text_is_refused, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(many_strangers_are_few_lines, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(an_older_tls_is_refused, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(
			a_stranger_does_not_learn_which_identities_there_are, rig_setup,
			rig_teardown),
		cmocka_unit_test_setup_teardown(a_handshake_given_up_is_called_that, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(silence_ends, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(strangers_do_not_keep_the_agent_out, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(a_plain_host_gets_nothing, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(secrets_are_read_or_refused_in_one_line, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(what_crosses_a_network_is_encrypted_or_meant,
						rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(the_relay_dies_with_its_agent, rig_setup,
						rig_teardown),
	};

	if (worker_is_meant(argc, argv))
		_exit(worker_main());
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, relay_link, NULL);
}
