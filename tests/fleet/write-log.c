/* SPDX-License-Identifier: GPL-2.0-only */
/* A library that is preloaded into a daemon. Appends each line that the daemon writes to a
 * segment to the file of $WRITE_LOG, after a '+' if the whole line was written, else after a '-'.
 * Keeps a line that failed until the daemon has saved its account, in which it counts the line as
 * lost. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LINE_BYTES = 128 << 10 /* above OUTBOX_LINE_MAX */ };

/* Only the loop's thread writes lines. */
static char failed[LINE_BYTES];
static size_t failed_bytes;

static void *next(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (!f)
		_exit(99);
	return f;
}

static bool is_part(int fd)
{
	char link[64], path[512];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	return n > 5 && !memcmp(path + n - 5, ".part", 5);
}

/* One call: lines of several processes do not mix. A killed process may append a part of it, up to
 * a page's end. No copy: the stacks of some threads are small. */
static void append(char sign, const void *line, size_t n)
{
	const struct iovec parts[] = {{&sign, 1}, {(void *)(uintptr_t)line, n}};
	const char *path = getenv("WRITE_LOG");
	const int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd < 0 || writev(fd, parts, 2) != (ssize_t)n + 1)
		_exit(98);
	close(fd);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	static ssize_t (*real)(int, const void *, size_t);
	ssize_t done;
	int error;

	if (!real)
		*(void **)&real = next("write");
	done = real(fd, bytes, n);
	error = errno;
	if (n > 1 && n <= sizeof(failed) && is_part(fd)) {
		if (done == (ssize_t)n) {
			append('+', bytes, n);
		} else {
			memcpy(failed, bytes, n);
			failed_bytes = n;
		}
	}
	errno = error;
	return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
	static ssize_t (*real)(int, const void *, size_t, off64_t);
	ssize_t done;

	if (!real)
		*(void **)&real = next("pwrite64");
	done = real(fd, bytes, n, at);
	if (failed_bytes) {
		append('-', failed, failed_bytes);
		failed_bytes = 0;
	}
	return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	return pwrite64(fd, bytes, n, at);
}
