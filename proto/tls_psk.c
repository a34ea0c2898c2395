/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/tls_psk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = TLS_PSK_IDENTITY_MAX + 2 * TLS_PSK_KEY_MAX + 3 };

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = memchr(digits, c | 0x20, sizeof(digits) - 1);

	return found && (c | 0x20) == *found && c > ' ' ? (int)(found - digits) : -1;
}

static bool key_parse(const char *text, struct tls_psk *out)
{
	size_t digits = strlen(text);

	if (digits % 2 || digits / 2 < TLS_PSK_KEY_MIN || digits / 2 > TLS_PSK_KEY_MAX)
		return false;
	for (size_t i = 0; i < digits / 2; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out->key[i] = (uint8_t)(high << 4 | low);
	}
	out->key_bytes = digits / 2;
	return true;
}

static bool line_parse(char *line, struct tls_psk *out)
{
	char *colon = strchr(line, ':');
	size_t len = colon ? (size_t)(colon - line) : 0;

	if (!len || len >= sizeof(out->identity))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (line[i] <= ' ' || line[i] > '~')
			return false;
	}
	memset(out, 0, sizeof(*out));
	memcpy(out->identity, line, len);
	return key_parse(colon + 1, out);
}

/* Opens the file with the keys. Refuses a file that other users may read. */
static int file_open(const char *path, FILE **out, char *why, size_t why_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat status = {0};

	if (fd < 0 || fstat(fd, &status) < 0)
		err = -errno;
	if (err)
		snprintf(why, why_bytes, "%s: %s", path, strerror(-err));
	else if (S_ISREG(status.st_mode) && (status.st_mode & 077)) {
		snprintf(why, why_bytes, "%s: others than its owner may use it: chmod 600 it",
			 path);
		err = -EPERM;
	}
	*out = err ? NULL : fdopen(fd, "r");
	if (!*out && fd >= 0)
		close(fd);
	return err || *out ? err : -ENOMEM;
}

int tls_psk_read(const char *path, const char *identity, struct tls_psk *out, char *why,
		 size_t why_bytes)
{
	struct tls_psk one = {.key_bytes = 0};
	unsigned int number = 0, found = 0;
	char line[LINE_MAX_BYTES];
	FILE *f;
	int err = file_open(path, &f, why, why_bytes);

	if (err)
		return err;
	while (!err && fgets(line, sizeof(line), f)) {
		number++;
		if (!strchr(line, '\n') && !feof(f)) {
			err = -EINVAL;
			break;
		}
		line[strcspn(line, "\r\n")] = '\0';
		if (!line[0] || line[0] == '#')
			continue;
		if (!line_parse(line, &one))
			err = -EINVAL;
		else if (!identity || !strcmp(identity, one.identity)) {
			*out = one;
			found++;
		}
	}
	fclose(f);
	explicit_bzero(line, sizeof(line));
	explicit_bzero(&one, sizeof(one));
	if (err) {
		snprintf(why, why_bytes,
			 "%s line %u: want IDENTITY:KEY, the key in %d to %d hexadecimal digits",
			 path, number, 2 * TLS_PSK_KEY_MIN, 2 * TLS_PSK_KEY_MAX);
	} else if (!found) {
		snprintf(why, why_bytes, "%s: no identity %s in it", path,
			 identity ? identity : "at all");
		err = -ENOENT;
	} else if (found > 1) {
		snprintf(why, why_bytes, "%s: %s", path,
			 identity ? "the identity stands there more than once"
				  : "more than one identity in it: say which");
		err = -EINVAL;
	}
	if (err)
		explicit_bzero(out, sizeof(*out));
	return err;
}
