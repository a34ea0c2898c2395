/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

static const char priorities[] =
	"SECURE128:-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+ECDHE-PSK:+DHE-PSK:%DISABLE_TLS13_COMPAT_MODE";

struct tls {
	int fd;
	bool is_server, heard, identity_known;
	char asked_for[TLS_PSK_IDENTITY_MAX]; /* server: an identity that is not ours */
	struct tls_psk psk;
	gnutls_session_t session;
	gnutls_psk_server_credentials_t server;
	gnutls_psk_client_credentials_t client;
};

/* What an identity of somebody else's choice looks like in a message. */
static void text_tame(char *out, size_t out_bytes, const char *in)
{
	snprintf(out, out_bytes, "%s", in);
	for (char *c = out; *c; c++) {
		if (*c < ' ' || *c > '~' || *c == '\'')
			*c = '?';
	}
}

/* An identity that is not ours gets a key that nobody has: what follows, the alert and the time it
 * takes are those of a wrong key, and who has no key does not learn which identities there are. */
static int on_key_wanted(gnutls_session_t session, const char *identity, gnutls_datum_t *key)
{
	struct tls *t = gnutls_session_get_ptr(session);
	const bool ours = strcmp(identity, t->psk.identity) == 0;
	uint8_t nobodys[TLS_PSK_KEY_MAX];

	if (gnutls_rnd(GNUTLS_RND_NONCE, nobodys, sizeof(nobodys)))
		return -1;
	key->data = gnutls_malloc(t->psk.key_bytes);
	if (!key->data)
		return -1;
	memcpy(key->data, ours ? t->psk.key : nobodys, t->psk.key_bytes);
	key->size = (unsigned int)t->psk.key_bytes;
	t->identity_known = ours;
	text_tame(t->asked_for, sizeof(t->asked_for), ours ? "" : identity);
	return 0;
}

static ssize_t socket_pull(gnutls_transport_ptr_t context, void *data, size_t len)
{
	struct tls *t = context;
	ssize_t n = recv(t->fd, data, len, MSG_DONTWAIT);

	if (n < 0)
		gnutls_transport_set_errno(t->session, errno);
	return n;
}

static ssize_t socket_push(gnutls_transport_ptr_t context, const void *data, size_t len)
{
	struct tls *t = context;
	ssize_t n = send(t->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		gnutls_transport_set_errno(t->session, errno);
	return n;
}

/* Nothing here waits. */
static int socket_pull_timeout(gnutls_transport_ptr_t context, unsigned int ms)
{
	(void)context, (void)ms;
	return 1;
}

static int server_prepare(struct tls *t)
{
	int err = gnutls_psk_allocate_server_credentials(&t->server);

	if (err)
		return err;
	gnutls_psk_set_server_credentials_function(t->server, on_key_wanted);
	return gnutls_credentials_set(t->session, GNUTLS_CRD_PSK, t->server);
}

static int client_prepare(struct tls *t)
{
	const gnutls_datum_t key = {t->psk.key, (unsigned int)t->psk.key_bytes};
	int err = gnutls_psk_allocate_client_credentials(&t->client);

	if (!err)
		err = gnutls_psk_set_client_credentials(t->client, t->psk.identity, &key,
							GNUTLS_PSK_KEY_RAW);
	return err ? err : gnutls_credentials_set(t->session, GNUTLS_CRD_PSK, t->client);
}

static int tls_new(int fd, const struct tls_psk *psk, bool is_server, struct tls **out)
{
	struct tls *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->fd = fd;
	t->psk = *psk;
	t->is_server = is_server;
	err = gnutls_init(&t->session, (is_server ? GNUTLS_SERVER : GNUTLS_CLIENT) |
					       GNUTLS_NONBLOCK | GNUTLS_NO_TICKETS |
					       GNUTLS_NO_SIGNAL);
	if (!err)
		err = gnutls_priority_set_direct(t->session, priorities, NULL);
	if (!err)
		err = is_server ? server_prepare(t) : client_prepare(t);
	if (err) {
		tls_free(t);
		return err == GNUTLS_E_MEMORY_ERROR ? -ENOMEM : -EIO;
	}
	gnutls_session_set_ptr(t->session, t);
	gnutls_transport_set_ptr(t->session, t);
	gnutls_transport_set_pull_function(t->session, socket_pull);
	gnutls_transport_set_push_function(t->session, socket_push);
	gnutls_transport_set_pull_timeout_function(t->session, socket_pull_timeout);
	gnutls_handshake_set_timeout(t->session, 0);
	*out = t;
	return 0;
}

int tls_server_new(int fd, const struct tls_psk *psk, struct tls **out)
{
	return tls_new(fd, psk, true, out);
}

int tls_client_new(int fd, const struct tls_psk *psk, struct tls **out)
{
	return tls_new(fd, psk, false, out);
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	if (t->session)
		gnutls_deinit(t->session);
	if (t->server)
		gnutls_psk_free_server_credentials(t->server);
	if (t->client)
		gnutls_psk_free_client_credentials(t->client);
	explicit_bzero(t, sizeof(*t)); /* its key */
	free(t);
}

/* Who talks plain text has made a mistake that is worth its own words. */
static int first_bytes_check(struct tls *t, char *why, size_t why_bytes)
{
	uint8_t first;
	ssize_t n;

	if (!t->is_server || t->heard)
		return 0;
	n = recv(t->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n == 0)
		return 0; /* the handshake says it */
	if (n < 0)
		return -EAGAIN;
	t->heard = true;
	if (first == 22) /* a TLS handshake record */
		return 0;
	snprintf(why, why_bytes, "refused: who connects does not speak TLS");
	return -EACCES;
}

static void failure_explain(const struct tls *t, int err, char *why, size_t why_bytes)
{
	const bool alert =
		err == GNUTLS_E_FATAL_ALERT_RECEIVED || err == GNUTLS_E_WARNING_ALERT_RECEIVED;

	if (t->is_server && t->asked_for[0])
		snprintf(why, why_bytes, "refused: unknown TLS identity '%s'", t->asked_for);
	else if (t->is_server && t->identity_known && err == GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER)
		snprintf(why, why_bytes, "refused: wrong TLS key for identity '%s'",
			 t->psk.identity);
	else if (t->is_server && (err == GNUTLS_E_PREMATURE_TERMINATION ||
				  err == GNUTLS_E_PULL_ERROR || err == GNUTLS_E_PUSH_ERROR))
		snprintf(why, why_bytes, "the other end gave up the TLS handshake%s%s%s",
			 t->identity_known ? " as identity '" : "",
			 t->identity_known ? t->psk.identity : "", t->identity_known ? "'" : "");
	else if (t->is_server &&
		 (err == GNUTLS_E_UNSUPPORTED_VERSION_PACKET || err == GNUTLS_E_NO_CIPHER_SUITES ||
		  err == GNUTLS_E_INSUFFICIENT_CREDENTIALS))
		snprintf(why, why_bytes, "refused: who connects offers no TLS 1.3 with a key");
	else if (!t->is_server && alert)
		snprintf(why, why_bytes,
			 "the host refuses identity '%s' or its key (TLS alert: %s)",
			 t->psk.identity, gnutls_alert_get_name(gnutls_alert_get(t->session)));
	else if (!t->is_server &&
		 (err == GNUTLS_E_UNEXPECTED_PACKET_LENGTH ||
		  err == GNUTLS_E_UNSUPPORTED_VERSION_PACKET || err == GNUTLS_E_UNEXPECTED_PACKET))
		snprintf(why, why_bytes, "the host does not speak TLS 1.3 there");
	else
		snprintf(why, why_bytes, "%s: %s",
			 t->is_server ? "refused: the TLS handshake failed" : "TLS",
			 gnutls_strerror(err));
}

int tls_handshake(struct tls *t, char *why, size_t why_bytes)
{
	int err = first_bytes_check(t, why, why_bytes);

	if (err)
		return err;
	do {
		err = gnutls_handshake(t->session);
	} while (err == GNUTLS_E_INTERRUPTED ||
		 (err < 0 && err != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(err)));
	if (!err)
		return 0;
	if (err == GNUTLS_E_AGAIN)
		return -EAGAIN;
	failure_explain(t, err, why, why_bytes);
	gnutls_alert_send_appropriate(t->session, err);
	return -EACCES;
}

bool tls_key_shown(const struct tls *t)
{
	return t->identity_known;
}

bool tls_wants_write(const struct tls *t)
{
	return gnutls_record_get_direction(t->session) == 1;
}

ssize_t tls_receive(struct tls *t, void *data, size_t len)
{
	ssize_t n = gnutls_record_recv(t->session, data, len);

	if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
		return -EAGAIN;
	if (n == GNUTLS_E_PREMATURE_TERMINATION)
		return 0;
	return n >= 0 ? n : -EPROTO;
}

ssize_t tls_send(struct tls *t, const void *data, size_t len)
{
	ssize_t n = gnutls_record_send(t->session, data, len);

	if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
		return -EAGAIN;
	return n >= 0 ? n : -EPROTO;
}

void tls_bye(struct tls *t)
{
	gnutls_bye(t->session, GNUTLS_SHUT_WR);
}
