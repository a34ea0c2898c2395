/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/shipper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host-collector/fleet/segments.h"

enum {
	DELAY_FIRST_MS = 1000,
	DELAY_MOST_MS = 600000,
	FAILING_MAX = 256,
	LANES = 2, /* incidents with evidence; figures */
};

struct failing {
	char name[SEGMENT_NAME_MAX]; /* "": free */
	unsigned times;
	uint64_t due_ms;
};

struct lane {
	unsigned failures; /* since the last delivery */
	uint64_t due_ms;
};

struct shipper {
	struct shipper_options options;
	char *command;
	char *words[SHIPPER_WORDS_MAX + 2]; /* the file's name is added */
	size_t n_words;
	int dir, done, lock;
	struct lane lanes[LANES];
	struct failing failing[FAILING_MAX];
	size_t waiting;
};

/* ---- words ---- */

/* Moves a word to `to` without its quotes. Returns behind its end, NULL if a quote is open. */
static char *word_take(char *at, char *to)
{
	char quote = 0;

	for (; *at && (quote || (*at != ' ' && *at != '\t')); at++) {
		if (quote && *at == quote)
			quote = 0;
		else if (!quote && (*at == '\'' || *at == '"'))
			quote = *at;
		else
			*to++ = *at;
	}
	if (quote)
		return NULL;
	if (*at)
		at++;
	*to = 0;
	return at;
}

int shipper_words(char *text, char *words[SHIPPER_WORDS_MAX + 1], char *why, size_t why_bytes)
{
	int n = 0;

	while (*(text += strspn(text, " \t"))) {
		if (n == SHIPPER_WORDS_MAX) {
			snprintf(why, why_bytes, "ship: more than %d words", SHIPPER_WORDS_MAX);
			return -EINVAL;
		}
		words[n++] = text;
		text = word_take(text, text);
		if (!text) {
			snprintf(why, why_bytes, "ship: a quote is not closed");
			return -EINVAL;
		}
	}
	words[n] = NULL;
	if (n && words[0][0] == '/')
		return n;
	snprintf(why, why_bytes, "ship: write the absolute path of a program");
	return -EINVAL;
}

/* ---- the command ---- */

static void __attribute__((noreturn)) child(const struct shipper *s, char **words)
{
	const int null = open("/dev/null", O_RDWR);
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (null < 0 || fchdir(s->dir))
		_exit(126);
	dup2(null, 0);
	if (!s->options.verbose) {
		dup2(null, 1);
		dup2(null, 2);
	}
	syscall(SYS_close_range, 3, ~0u, 0);
	execv(words[0], words);
	_exit(127);
}

/* Waits, and kills the command's group in any case: what it left behind, too. Returns its exit
 * code; -1: killed. */
static int child_wait(pid_t pid, uint64_t timeout_ms)
{
	const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int status = 0, n;

	do {
		n = fd < 0 ? 0 : poll(&p, 1, timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms);
	} while (n < 0 && errno == EINTR);
	kill(-pid, SIGKILL); /* not reaped yet: nobody else can have the number */
	kill(pid, SIGKILL);  /* it may not have got its group yet */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (fd >= 0)
		close(fd);
	return n > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Returns 0: delivered. */
static int command_run(struct shipper *s, const char *name)
{
	char path[SEGMENT_NAME_MAX + 2];
	pid_t pid;

	snprintf(path, sizeof(path), "./%s", name);
	s->words[s->n_words] = path;
	s->words[s->n_words + 1] = NULL;
	pid = fork();
	if (!pid)
		child(s, s->words);
	if (pid > 0)
		setpgid(pid, pid);
	return pid < 0 ? -1 : child_wait(pid, s->options.timeout_ms);
}

/* ---- what failed ---- */

static struct failing *failing_find(struct shipper *s, const char *name)
{
	for (size_t i = 0; i < FAILING_MAX; i++) {
		if (!strcmp(s->failing[i].name, name))
			return &s->failing[i];
	}
	return NULL;
}

/* Frees the places of files that are gone: the daemon removes what waits for too long. */
static void failing_clean(struct shipper *s)
{
	for (size_t i = 0; i < FAILING_MAX; i++) {
		struct failing *f = &s->failing[i];

		if (*f->name && faccessat(s->dir, f->name, F_OK, AT_SYMLINK_NOFOLLOW))
			*f = (struct failing){0};
	}
}

/* Between half and one and a half of the time. */
static uint64_t delay_ms(unsigned failures)
{
	const unsigned doubled = failures > 10 ? 10 : failures - 1;
	uint64_t ms = (uint64_t)DELAY_FIRST_MS << doubled;

	if (ms > DELAY_MOST_MS)
		ms = DELAY_MOST_MS;
	return ms / 2 + (uint64_t)random() % ms;
}

static void failed(struct shipper *s, struct lane *lane, const char *name, int code,
		   uint64_t now_ms)
{
	struct failing *f = failing_find(s, name);
	char line[256], how[32];

	if (!f && !(f = failing_find(s, ""))) {
		failing_clean(s);
		f = failing_find(s, "");
	}
	lane->due_ms = now_ms + delay_ms(++lane->failures);
	if (f) {
		snprintf(f->name, sizeof(f->name), "%s", name);
		f->due_ms = now_ms + delay_ms(++f->times);
	}
	snprintf(how, sizeof(how), code < 0 ? "time limit" : "exit code %d", code);
	snprintf(line, sizeof(line), "%s: not delivered (%s); again in %llu s", name, how,
		 (unsigned long long)(lane->due_ms - now_ms + 999) / 1000);
	/* An engine that is down for hours is one line in a while. */
	if ((lane->failures & (lane->failures - 1)) == 0)
		s->options.say(s->options.context, line);
}

static bool is_done(const struct shipper *s, const char *name)
{
	return !faccessat(s->done, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* Returns 1 (delivered) or 0. */
static int deliver(struct shipper *s, struct lane *lane, const char *name, uint64_t now_ms)
{
	/* The daemon does not remove what is locked. */
	const int fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct failing *f;
	int code, done;

	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB)) {
		if (fd >= 0)
			close(fd);
		return 0; /* it is gone, or going */
	}
	code = command_run(s, name);
	if (!code) {
		done = openat(s->done, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);
		if (done < 0)
			code = 256; /* it is delivered once more */
		else
			close(done);
	}
	close(fd);
	if (code) {
		failed(s, lane, name, code, now_ms);
		return 0;
	}
	f = failing_find(s, name);
	if (f)
		*f = (struct failing){0};
	if (lane->failures)
		s->options.say(s->options.context, "delivered again");
	*lane = (struct lane){0};
	return 1;
}

/* ---- turns ---- */

/* Returns the file of a lane that is due, NULL if none is. */
static const struct segment *next_of(struct shipper *s, const struct segment *all, long n,
				     bool figures, uint64_t now_ms)
{
	for (long i = 0; i < n; i++) {
		struct failing *f;

		if ((all[i].kind == SEGMENT_FIGURES) != figures || is_done(s, all[i].name))
			continue;
		f = failing_find(s, all[i].name);
		if (!f || now_ms >= f->due_ms)
			return &all[i];
		if (f->times < SHIPPER_SKIP_AFTER || all[i].kind == SEGMENT_EVIDENCE)
			return NULL;
	}
	return NULL;
}

int shipper_turn(struct shipper *s, uint64_t now_ms)
{
	struct segment *all;
	const long n = segments_list(s->options.outbox, "", &all);
	int delivered = 0;

	s->waiting = 0;
	for (long i = 0; i < n; i++)
		s->waiting += !is_done(s, all[i].name);
	for (int l = 0; l < LANES && !delivered; l++) {
		const struct segment *next =
			now_ms < s->lanes[l].due_ms ? NULL : next_of(s, all, n, l == 1, now_ms);

		if (next)
			delivered = deliver(s, &s->lanes[l], next->name, now_ms);
	}
	s->waiting -= (size_t)delivered;
	free(all);
	return delivered;
}

size_t shipper_waiting(const struct shipper *s)
{
	return s->waiting;
}

/* ---- life ---- */

void shipper_close(struct shipper *s)
{
	if (!s)
		return;
	if (s->lock >= 0)
		close(s->lock);
	if (s->done >= 0)
		close(s->done);
	if (s->dir >= 0)
		close(s->dir);
	free(s->command);
	free(s);
}

static int folders_open(struct shipper *s)
{
	s->dir = open(s->options.outbox, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return -errno;
	s->done = openat(s->dir, OUTBOX_DONE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->done < 0)
		return -errno;
	/* The folder itself: a file in it could belong to another user after a change of users. */
	s->lock = openat(s->done, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->lock < 0)
		return -errno;
	if (flock(s->lock, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	/* Later steps need no path: its parents may be closed to the shipper's user. */
	if (fchdir(s->dir))
		return -errno;
	s->options.outbox = ".";
	return 0;
}

int shipper_open(const struct shipper_options *options, struct shipper **out, char *why,
		 size_t why_bytes)
{
	struct shipper *s = calloc(1, sizeof(*s));
	int n, err;

	snprintf(why, why_bytes, "out of memory");
	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->dir = s->done = s->lock = -1;
	s->command = strdup(options->command);
	n = s->command ? shipper_words(s->command, s->words, why, why_bytes) : -ENOMEM;
	if (n < 0) {
		shipper_close(s);
		return n;
	}
	s->n_words = (size_t)n;
	err = folders_open(s);
	if (err) {
		snprintf(why, why_bytes, "%s: %s", options->outbox,
			 err == -EBUSY ? "another `vcpuscope ship` works there" : strerror(-err));
		shipper_close(s);
		return err;
	}
	srandom((unsigned)getpid());
	*out = s;
	return 0;
}
