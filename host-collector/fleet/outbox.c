/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/outbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/fleet/outbox_account.h"
#include "host-collector/fleet/outbox_finisher.h"
#include "host-collector/fleet/outbox_folders.h"

enum {
	SEGMENT_BYTES_MAX = 4 << 20,
	INCIDENTS_OPEN_MS = 1000, /* a segment of incidents is complete after this time */
	FIGURES_OPEN_MS = 60000,
	DONE_LOOK_MS = 1000,
	FOLDER_LOOK_MS = 60000,
	BUDGET_SPARE = 16,    /* a cut to the budget leaves 1/16 of it free */
	ROOM_BYTES = 1 << 20, /* of sent files, removed at once when the disk is full */
	OPEN_FIRST_MS = 1000, /* until an outbox that did not open is tried again; doubles */
	OPEN_MOST_MS = 60000,
	REFUSED_SAY_MS = 60000, /* how often a refusal of the disk is logged, at most */
};

struct open_segment {
	int fd; /* -1: none */
	char name[SEGMENT_NAME_MAX];
	uint64_t bytes, lines, since_ms; /* since_ms 0: until the next tick */
};

struct outbox {
	struct outbox_options options;
	char folder[OUTBOX_PATH_MAX], host_id[SEGMENT_ID_BYTES], boot_id[SEGMENT_ID_BYTES];
	int dir, account_fd; /* dir -1: it is not open, and the account is only in memory */
	struct outbox_account account;
	struct open_segment open[SEGMENT_KINDS];
	struct outbox_finisher *finisher;
	uint64_t bytes, waiting, done_ms, folder_ms;
	bool sent_gone;                  /* no sent file is left that could be removed */
	uint64_t open_ms, open_delay_ms; /* when it is opened again: not yet known (0) */
	int error;
	int refused_said; /* why the disk refuses segments, as logged; 0: it does not */
	uint64_t refused_ms;
};

static void say(const struct outbox *o, const char *format, const char *a, int err)
{
	char line[OUTBOX_PATH_MAX + 128];

	snprintf(line, sizeof(line), format, a, strerror(-err));
	o->options.say(o->options.context, line);
}

static void account_save(const struct outbox *o)
{
	outbox_account_save(o->account_fd, &o->account);
}

/* ---- files that an earlier process left ---- */

/* The number of complete lines, and in *end their length. */
static uint64_t lines_count(int fd, uint64_t *end)
{
	uint64_t lines = 0, at = 0;
	char buffer[65536];
	ssize_t n;

	*end = 0;
	while ((n = pread(fd, buffer, sizeof(buffer), (off_t)at)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buffer[i] != '\n')
				continue;
			lines++;
			*end = at + (uint64_t)i + 1;
		}
		at += (uint64_t)n;
	}
	return lines;
}

static void part_name(const char *name, char out[SEGMENT_NAME_MAX + 8])
{
	snprintf(out, SEGMENT_NAME_MAX + 8, "%s" SEGMENT_PART, name);
}

/* Completes a file that an earlier process was writing. If the disk refuses, the finisher tries it
 * again. */
static void part_take(struct outbox *o, const struct segment *s)
{
	char part[SEGMENT_NAME_MAX + 8];
	uint64_t end, lines;
	int fd;

	part_name(s->name, part);
	if (s->seq == o->account.counted_seq) { /* that process was giving it up */
		unlinkat(o->dir, part, 0);
		return;
	}
	fd = openat(o->dir, part, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	lines = lines_count(fd, &end);
	if (!lines || ftruncate(fd, (off_t)end))
		unlinkat(o->dir, part, 0);
	else if (fsync(fd) || renameat(o->dir, part, o->dir, s->name)) {
		outbox_finisher_add(o->finisher, fd, s->name); /* closes it */
		return;
	}
	close(fd);
}

static bool give_up(struct outbox *o, const struct segment *s);
static void done_look(struct outbox *o);

static void earlier_take(struct outbox *o)
{
	static const char *const ends[] = {SEGMENT_PART, SEGMENT_LOST, ""};
	struct segment *all;

	for (size_t e = 0; e < 3; e++) {
		const long n = segments_list(o->folder, ends[e], &all);

		for (long i = 0; i < n; i++) {
			if (all[i].seq > o->account.seq)
				o->account.seq = all[i].seq;
			if (ends[e][0] && !strcmp(ends[e], SEGMENT_PART))
				part_take(o, &all[i]);
			else if (ends[e][0])
				give_up(o, &all[i]);
		}
		free(all);
	}
	fsync(o->dir);
	account_save(o);
}

/* ---- losses ---- */

/* Removes a file that was not delivered, and counts what is in it: exactly once, also if the
 * process is killed at any point. Returns false if it cannot be removed. */
static bool give_up(struct outbox *o, const struct segment *s)
{
	char lost[SEGMENT_NAME_MAX + 8];

	snprintf(lost, sizeof(lost), "%s" SEGMENT_LOST, s->name);
	if (renameat(o->dir, s->name, o->dir, lost) && errno != ENOENT)
		return false;
	if (s->seq != o->account.counted_seq && o->options.shipped) {
		if (s->kind == SEGMENT_EVIDENCE)
			outbox_account_lose(&o->account, s->kind, 1, false);
		else
			outbox_account_lose_lines(
				&o->account,
				openat(o->dir, lost, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), s->kind,
				false);
		o->account.counted_seq = s->seq;
		account_save(o);
	}
	unlinkat(o->dir, lost, 0);
	return true;
}

/* The same for a segment that the disk refuses to complete, which no shipper sees. It may refuse to
 * rename, so the name stays: the next process removes it, if this one is killed after it counted.
 */
static bool part_give_up(struct outbox *o, const struct segment *s)
{
	const struct outbox_account before = o->account;
	char part[SEGMENT_NAME_MAX + 8];
	int fd;

	for (int k = 0; k < SEGMENT_KINDS; k++) {
		if (o->open[k].fd >= 0 && !strcmp(o->open[k].name, s->name))
			return false;
	}
	if (!outbox_finisher_drop(o->finisher, s->name))
		return false;
	part_name(s->name, part);
	fd = openat(o->dir, part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		goto keep;
	if (o->options.shipped) {
		outbox_account_lose_lines(&o->account, fd, s->kind, true); /* closes it */
		o->account.counted_seq = s->seq;
		account_save(o);
	} else {
		close(fd);
	}
	if (!unlinkat(o->dir, part, 0))
		return true;
	o->account = before;
	account_save(o);
keep:
	outbox_finisher_add(o->finisher, -1, s->name);
	return false;
}

/* A shipper holds a lock on what it delivers. */
static bool is_being_shipped(const struct outbox *o, const struct segment *s)
{
	const int fd = openat(o->dir, s->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	const bool busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB);

	if (fd >= 0)
		close(fd);
	return busy || fd < 0;
}

/* ---- the budget ---- */

enum files { COMPLETE, SENT, PARTS, FILE_LISTS };

/* Removes a file. Returns whether it is gone, or needs no room any more. */
static bool file_remove(struct outbox *o, const struct segment *s, enum files which)
{
	char path[SEGMENT_NAME_MAX + 8];

	if (which == SENT) {
		snprintf(path, sizeof(path), OUTBOX_SENT "/%s", s->name);
		return !unlinkat(o->dir, path, 0) || errno == ENOENT;
	}
	if (which == PARTS ? !part_give_up(o, s) : is_being_shipped(o, s) || !give_up(o, s))
		return false;
	o->waiting -= o->waiting > 0;
	return true;
}

/* Removes files of one kind (SENT: of all kinds), the oldest first, until `most_bytes` are left. */
static void budget_cut(struct outbox *o, const struct segment *all, long n, enum files which,
		       enum segment_kind kind, uint64_t most_bytes)
{
	for (long i = 0; i < n && o->bytes > most_bytes; i++) {
		if ((which != SENT && all[i].kind != kind) || !file_remove(o, &all[i], which))
			continue;
		o->bytes -= all[i].bytes < o->bytes ? all[i].bytes : o->bytes;
	}
}

static long sent_list(const struct outbox *o, struct segment **out)
{
	char path[OUTBOX_PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/" OUTBOX_SENT, o->folder);
	return segments_list(path, "", out);
}

static void sent_expire(struct outbox *o, const struct segment *all, long n)
{
	const int64_t now = time(NULL);
	char path[SEGMENT_NAME_MAX + 8];

	for (long i = 0; i < n; i++) {
		if (all[i].modified_s + (int64_t)o->options.keep_s > now) {
			o->bytes += all[i].bytes;
			continue;
		}
		snprintf(path, sizeof(path), OUTBOX_SENT "/%s", all[i].name);
		unlinkat(o->dir, path, 0);
	}
}

/* Looks at all files: their number and size, and what must go. Of a kind, segments that the disk
 * refuses to complete go before those that can be delivered. */
static void folder_look(struct outbox *o)
{
	static const struct {
		enum files which;
		enum segment_kind kind;
	} order[] = {{SENT, SEGMENT_KINDS},       {PARTS, SEGMENT_FIGURES},
		     {COMPLETE, SEGMENT_FIGURES}, {COMPLETE, SEGMENT_EVIDENCE},
		     {PARTS, SEGMENT_INCIDENTS},  {COMPLETE, SEGMENT_INCIDENTS}};
	struct segment *all[FILE_LISTS];
	uint64_t most_bytes = o->options.budget_bytes;
	long n[FILE_LISTS];

	done_look(o); /* what is delivered is not to be counted as lost */
	/* What is completed meanwhile is not counted until the next look. */
	n[COMPLETE] = segments_list(o->folder, "", &all[COMPLETE]);
	n[PARTS] = segments_list(o->folder, SEGMENT_PART, &all[PARTS]);
	n[SENT] = sent_list(o, &all[SENT]);
	o->bytes = o->waiting = 0;
	sent_expire(o, all[SENT], n[SENT]);
	for (int which = COMPLETE; which <= PARTS; which += PARTS - COMPLETE) {
		for (long i = 0; i < n[which]; i++) {
			o->bytes += all[which][i].bytes;
			o->waiting++;
		}
	}
	for (int k = 0; k < SEGMENT_KINDS; k++)
		o->waiting -= o->open[k].fd >= 0 && o->waiting > 0;
	/* More than it must, or the next lines would look at all files again. */
	if (o->bytes > most_bytes)
		most_bytes -= most_bytes / BUDGET_SPARE;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]) && o->bytes > most_bytes; i++)
		budget_cut(o, all[order[i].which], n[order[i].which], order[i].which, order[i].kind,
			   most_bytes);
	for (int which = 0; which < FILE_LISTS; which++)
		free(all[which]);
}

/* Makes room on a full disk: removes the oldest sent files. Returns whether there was one. */
static bool room_make(struct outbox *o)
{
	const uint64_t before = o->bytes;
	struct segment *sent;
	long n;

	if (o->sent_gone)
		return false;
	n = sent_list(o, &sent);
	o->sent_gone = n <= 0;
	budget_cut(o, sent, n, SENT, SEGMENT_KINDS, before > ROOM_BYTES ? before - ROOM_BYTES : 0);
	free(sent);
	return n > 0;
}

/* ---- writing ---- */

static void segment_finish(struct outbox *o, enum segment_kind kind)
{
	struct open_segment *s = &o->open[kind];

	if (s->fd < 0)
		return;
	outbox_finisher_add(o->finisher, s->fd, s->name); /* closes it */
	o->waiting++;
	*s = (struct open_segment){.fd = -1};
}

static int segment_begin(struct outbox *o, enum segment_kind kind)
{
	struct open_segment *s = &o->open[kind];
	char part[SEGMENT_NAME_MAX + 8];

	o->account.seq++;
	segment_name(kind, o->host_id, o->boot_id, o->account.seq, s->name);
	part_name(s->name, part);
	s->fd = openat(o->dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (s->fd < 0)
		return -errno;
	if (o->options.group != (gid_t)-1 &&
	    (fchown(s->fd, (uid_t)-1, o->options.group) || fchmod(s->fd, 0640)))
		say(o, "outbox: %s: %s", part, -errno);
	s->bytes = s->lines = s->since_ms = 0;
	return 0;
}

/* All of the line or nothing. */
static int line_write(struct open_segment *s, const char *line, size_t len)
{
	char *whole = malloc(len + 1);
	ssize_t n;
	int err = 0;

	if (!whole)
		return -ENOMEM;
	memcpy(whole, line, len);
	whole[len] = '\n';
	n = write(s->fd, whole, len + 1);
	if (n != (ssize_t)len + 1) {
		err = n < 0 ? -errno : -ENOSPC;
		if (ftruncate(s->fd, (off_t)s->bytes) ||
		    lseek(s->fd, (off_t)s->bytes, SEEK_SET) < 0)
			err = -EIO;
	}
	free(whole);
	return err;
}

static int line_add(struct outbox *o, enum segment_kind kind, const char *line, size_t len)
{
	struct open_segment *s = &o->open[kind];
	int err = 0;

	if (s->fd >= 0 && s->bytes + len + 1 > SEGMENT_BYTES_MAX)
		segment_finish(o, kind);
	if (s->fd < 0)
		err = segment_begin(o, kind);
	if (!err)
		err = line_write(s, line, len);
	if (err == -EIO && s->fd >= 0)
		segment_finish(o, kind); /* its last line may be cut: readers skip it */
	if (err)
		return err;
	s->bytes += len + 1;
	s->lines++;
	o->bytes += len + 1;
	return 0;
}

static int add(struct outbox *o, enum segment_kind kind, const char *line, size_t len)
{
	const int err = line_add(o, kind, line, len);

	/* The disk is full, or the share of it that a quota allows. */
	if ((err == -ENOSPC || err == -EDQUOT) && room_make(o))
		return line_add(o, kind, line, len);
	return err;
}

int outbox_add(struct outbox *o, enum segment_kind kind, const char *line, size_t len)
{
	int err = o->dir < 0 ? o->error : len > OUTBOX_LINE_MAX ? -EMSGSIZE : 0;

	if (!err)
		err = add(o, kind, line, len);
	if (err && err != o->error)
		say(o, "outbox: %s: %s; lines are lost, and counted", o->folder, err);
	o->error = err;
	o->account.written[kind]++;
	if (err)
		outbox_account_lose(&o->account, kind, 1, true);
	account_save(o);
	if (!err && o->bytes > o->options.budget_bytes)
		folder_look(o);
	return err;
}

int outbox_evidence(struct outbox *o, const char *path, const char *incident_id)
{
	char name[SEGMENT_NAME_MAX];
	struct stat st;

	if (o->dir < 0)
		return o->error;
	/* Later lines are in a segment with a higher number, which is shipped later. */
	segment_finish(o, SEGMENT_INCIDENTS);
	o->account.seq++;
	segment_name(SEGMENT_EVIDENCE, o->host_id, incident_id, o->account.seq, name);
	if (stat(path, &st))
		return -errno;
	/* The folder that it is in is closed to the shipper; only this name is not. */
	if (o->options.group != (gid_t)-1 &&
	    (chown(path, (uid_t)-1, o->options.group) || chmod(path, 0640)))
		return -errno;
	if (linkat(AT_FDCWD, path, o->dir, name, 0))
		return -errno;
	o->account.written[SEGMENT_EVIDENCE]++;
	account_save(o);
	o->bytes += (uint64_t)st.st_size;
	o->waiting++;
	return 0;
}

/* ---- opening ---- */

/* Opens the folder and completes what an earlier process left. Returns 0, or -errno: it is as
 * before. */
static int folder_open(struct outbox *o)
{
	const struct outbox_account before = o->account;
	int err = outbox_folders_make(o->folder, o->options.group);

	if (!err) {
		o->dir = open(o->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		err = o->dir < 0 ? -errno : 0;
	}
	if (!err) {
		o->account_fd = outbox_account_open(o->dir, &o->account);
		err = o->account_fd < 0 ? o->account_fd : 0;
	}
	if (!err)
		err = outbox_finisher_new(o->dir, &o->finisher);
	if (err)
		goto failed;
	outbox_account_merge(&o->account, &before);
	earlier_take(o); /* saves the account */
	folder_look(o);
	return 0;
failed:
	if (o->account_fd >= 0)
		close(o->account_fd);
	if (o->dir >= 0)
		close(o->dir);
	o->dir = o->account_fd = -1;
	o->account = before;
	return err;
}

/* Tries to open it again if it is time for that. Returns whether it is open. */
static bool open_again(struct outbox *o, uint64_t now_ms)
{
	int err;

	if (!o->open_ms)
		o->open_ms = now_ms + o->open_delay_ms;
	if (now_ms < o->open_ms)
		return false;
	err = folder_open(o);
	if (!err) {
		o->error = 0;
		say(o, "outbox: %s: open; lines that could not be written are reported", o->folder,
		    0);
		return true;
	}
	if (err != o->error)
		say(o, "outbox: %s: %s; tried again", o->folder, err);
	o->error = err;
	o->open_delay_ms *= 2;
	if (o->open_delay_ms > OPEN_MOST_MS)
		o->open_delay_ms = OPEN_MOST_MS;
	o->open_ms = now_ms + o->open_delay_ms;
	return false;
}

/* ---- time ---- */

static void losses_report(struct outbox *o)
{
	struct outbox_account *a = &o->account;
	struct outbox_loss loss;
	size_t len = 0;
	char *line;

	if (!outbox_account_report(a))
		return;
	account_save(o); /* from now on it is this report, also after a kill */
	loss = (struct outbox_loss){.full = a->reporting_full, .number = a->number};
	memcpy(loss.n, a->reporting, sizeof(loss.n));
	line = malloc(OUTBOX_LINE_MAX);
	if (line)
		len = o->options.loss_line(o->options.context, &loss, line, OUTBOX_LINE_MAX);
	if (len && !add(o, SEGMENT_INCIDENTS, line, len)) {
		memset(a->reporting, 0, sizeof(a->reporting));
		account_save(o);
	}
	free(line);
}

/* Takes the shipper's acknowledgements. Its folder may contain anything. */
static void done_look(struct outbox *o)
{
	char from[SEGMENT_NAME_MAX + 8], to[SEGMENT_NAME_MAX + 8];
	const int fd = openat(o->dir, OUTBOX_DONE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct segment s;
	uint64_t n = 0;

	while (dir && (entry = readdir(dir))) {
		if (!segment_parse(entry->d_name, "", &s))
			continue;
		snprintf(to, sizeof(to), OUTBOX_SENT "/%s", s.name);
		snprintf(from, sizeof(from), OUTBOX_DONE "/%s", s.name);
		if (s.kind == SEGMENT_EVIDENCE)
			n += !unlinkat(o->dir, s.name, 0);
		else
			n += !renameat(o->dir, s.name, o->dir, to);
		unlinkat(o->dir, from, 0);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	if (!n)
		return;
	o->account.delivered += n;
	o->sent_gone = false;
	o->waiting -= n < o->waiting ? n : o->waiting;
	account_save(o);
}

/* Logs that the disk refuses to complete segments, and that it does so no longer. */
static void refusals_say(struct outbox *o, uint64_t now_ms)
{
	const int err = outbox_finisher_refused(o->finisher, NULL);

	if (err == o->refused_said || (o->refused_ms && now_ms - o->refused_ms < REFUSED_SAY_MS))
		return;
	o->refused_said = err;
	o->refused_ms = now_ms;
	if (err)
		say(o, "outbox: %s: %s: segments stay incomplete, and are tried again", o->folder,
		    err);
	else
		say(o, "outbox: %s: the segments that the disk refused are complete", o->folder, 0);
}

void outbox_tick(struct outbox *o, uint64_t now_ms)
{
	static const unsigned int open_ms[] = {
		[SEGMENT_INCIDENTS] = INCIDENTS_OPEN_MS, [SEGMENT_FIGURES] = FIGURES_OPEN_MS};

	if (o->dir < 0 && !open_again(o, now_ms))
		return;
	if (now_ms - o->done_ms >= DONE_LOOK_MS) {
		o->done_ms = now_ms;
		done_look(o);
		losses_report(o);
		refusals_say(o, now_ms);
	}
	if (!o->folder_ms || now_ms - o->folder_ms >= FOLDER_LOOK_MS) {
		o->folder_ms = now_ms;
		folder_look(o);
	}
	for (int k = 0; k < SEGMENT_EVIDENCE; k++) {
		struct open_segment *s = &o->open[k];

		if (s->fd >= 0 && !s->since_ms)
			s->since_ms = now_ms;
		else if (s->fd >= 0 && now_ms - s->since_ms >= open_ms[k])
			segment_finish(o, (enum segment_kind)k);
	}
}

void outbox_stats_get(const struct outbox *o, struct outbox_stats *out)
{
	*out = (struct outbox_stats){
		.delivered = o->account.delivered, .waiting = o->waiting, .bytes = o->bytes};
	out->refused_error = outbox_finisher_refused(o->finisher, &out->refused);
	out->error = o->error ? o->error : out->refused_error;
	memcpy(out->written, o->account.written, sizeof(out->written));
	memcpy(out->lost, o->account.lost, sizeof(out->lost));
}

void outbox_configure(struct outbox *o, uint64_t budget_bytes, bool shipped)
{
	o->options.budget_bytes = budget_bytes;
	o->options.shipped = shipped;
}

/* ---- life ---- */

static void outbox_free(struct outbox *o)
{
	outbox_finisher_free(o->finisher);
	if (o->account_fd >= 0)
		close(o->account_fd);
	if (o->dir >= 0)
		close(o->dir);
	free(o);
}

struct outbox *outbox_open(const struct outbox_options *options)
{
	struct outbox *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->options = *options;
	o->dir = o->account_fd = -1;
	o->open_delay_ms = OPEN_FIRST_MS;
	for (int k = 0; k < SEGMENT_KINDS; k++)
		o->open[k].fd = -1;
	snprintf(o->folder, sizeof(o->folder), "%s", options->folder);
	snprintf(o->host_id, sizeof(o->host_id), "%s", options->host_id);
	snprintf(o->boot_id, sizeof(o->boot_id), "%s", options->boot_id);
	o->error = folder_open(o);
	if (o->error)
		say(o, "outbox: %s: %s; lines are lost, and counted, until it can be opened",
		    o->folder, o->error);
	return o;
}

void outbox_close(struct outbox *o)
{
	if (!o)
		return;
	for (int k = 0; k < SEGMENT_EVIDENCE; k++)
		segment_finish(o, (enum segment_kind)k);
	outbox_free(o);
}
