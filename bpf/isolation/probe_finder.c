/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/isolation/probe_finder.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/isolation/confine.h"
#include "clock/sample.h"

enum {
	SECTIONS_MAX = 4096,
	SEGMENTS_MAX = 256,
	NAMES_BYTES_MAX = 64 << 20,
	NOTES_BYTES_MAX = 4 << 20,
	SYMBOLS_AT_ONCE = 4096,
	SYMBOLS_MAX = 1 << 23,
	MEMORY_BYTES = 128 << 20,
	ANSWER_MS = 5000,
	FILE_DESCRIPTOR = 3, /* of the process that reads the file */
	ANSWER_DESCRIPTOR = 4,
	NOTE_STAPSDT = 3,
};

struct answer {
	int32_t err;
	struct probe_places places;
};

struct finder {
	const char *provider, *name;
	Elf64_Ehdr head;
	size_t n_sections, n_segments;
	Elf64_Shdr sections[SECTIONS_MAX];
	Elf64_Phdr segments[SEGMENTS_MAX];
	char *names; /* of the sections, ends with a NUL */
	size_t names_bytes;
	struct probe_places *out;
	size_t near_same;
};

/* ---- in the process without rights ---- */

static int file_read(void *to, size_t bytes, uint64_t offset)
{
	size_t n = 0;

	while (n < bytes) {
		const ssize_t got =
			pread(FILE_DESCRIPTOR, (char *)to + n, bytes - n, (off_t)(offset + n));

		if (got <= 0)
			return -ENOEXEC;
		n += (size_t)got;
	}
	return 0;
}

/* Reads a section and appends a NUL. */
static char *section_read(const Elf64_Shdr *s, size_t most)
{
	char *bytes = s->sh_size <= most ? malloc(s->sh_size + 1) : NULL;

	if (!bytes || file_read(bytes, s->sh_size, s->sh_offset)) {
		free(bytes);
		return NULL;
	}
	bytes[s->sh_size] = 0;
	return bytes;
}

static int heads_read(struct finder *f)
{
	const Elf64_Ehdr *h = &f->head;
	int err = file_read(&f->head, sizeof(f->head), 0);

	if (err || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_machine != EM_X86_64 || h->e_shentsize != sizeof(f->sections[0]) ||
	    h->e_phentsize != sizeof(f->segments[0]) || h->e_shnum > SECTIONS_MAX ||
	    h->e_phnum > SEGMENTS_MAX || h->e_shstrndx >= h->e_shnum)
		return -ENOEXEC;
	f->n_sections = h->e_shnum;
	f->n_segments = h->e_phnum;
	err = file_read(f->sections, f->n_sections * sizeof(f->sections[0]), h->e_shoff);
	if (!err)
		err = file_read(f->segments, f->n_segments * sizeof(f->segments[0]), h->e_phoff);
	if (err)
		return err;
	f->names_bytes = f->sections[h->e_shstrndx].sh_size;
	f->names = section_read(&f->sections[h->e_shstrndx], NAMES_BYTES_MAX);
	return f->names ? 0 : -ENOEXEC;
}

static const Elf64_Shdr *section_find(const struct finder *f, const char *name)
{
	for (size_t i = 0; i < f->n_sections; i++) {
		if (f->sections[i].sh_name < f->names_bytes &&
		    !strcmp(f->names + f->sections[i].sh_name, name))
			return &f->sections[i];
	}
	return NULL;
}

/* Returns the offset in the file of an address; 0 if it is in no segment. */
static uint64_t place_of(const struct finder *f, uint64_t address)
{
	for (size_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *s = &f->segments[i];

		if (s->p_type == PT_LOAD && address >= s->p_vaddr &&
		    address - s->p_vaddr < s->p_filesz)
			return address - s->p_vaddr + s->p_offset;
	}
	return 0;
}

static int place_add(struct finder *f, const struct probe_place *place)
{
	for (size_t i = 0; i < f->out->n; i++) {
		if (f->out->places[i].offset == place->offset)
			return 0; /* known from another table of the file */
	}
	if (f->out->n == PROBE_PLACES_MAX)
		return -E2BIG;
	f->out->places[f->out->n++] = *place;
	return 0;
}

/* Remembers the name if it has the longest common beginning so far. */
static void near_try(struct finder *f, const char *name)
{
	size_t same = 0;

	while (name[same] && name[same] == f->name[same])
		same++;
	if (same > f->near_same && strlen(name) < sizeof(f->out->near)) {
		f->near_same = same;
		memcpy(f->out->near, name, strlen(name) + 1);
	}
}

static int symbol_take(struct finder *f, const Elf64_Sym *s, const char *names, size_t names_bytes)
{
	struct probe_place place = {.offset = 0};

	if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF ||
	    s->st_name >= names_bytes)
		return 0;
	if (strcmp(names + s->st_name, f->name) != 0) {
		near_try(f, names + s->st_name);
		return 0;
	}
	place.offset = place_of(f, s->st_value);
	return place.offset ? place_add(f, &place) : 0;
}

static int symbols_search(struct finder *f, const Elf64_Shdr *table)
{
	static Elf64_Sym symbols[SYMBOLS_AT_ONCE];
	const size_t all = table->sh_size / sizeof(symbols[0]);
	const size_t n = all < SYMBOLS_MAX ? all : SYMBOLS_MAX;
	const Elf64_Shdr *texts =
		table->sh_link < f->n_sections ? &f->sections[table->sh_link] : NULL;
	char *names = texts ? section_read(texts, NAMES_BYTES_MAX) : NULL;
	int err = names ? 0 : -ENOEXEC;

	for (size_t at = 0; at < n && !err; at += SYMBOLS_AT_ONCE) {
		const size_t some = n - at < SYMBOLS_AT_ONCE ? n - at : SYMBOLS_AT_ONCE;

		err = file_read(symbols, some * sizeof(symbols[0]),
				table->sh_offset + at * sizeof(symbols[0]));
		for (size_t i = 0; i < some && !err; i++)
			err = symbol_take(f, &symbols[i], names, texts->sh_size);
	}
	free(names);
	return err;
}

static int functions_find(struct finder *f)
{
	int err = 0;

	for (size_t i = 0; i < f->n_sections && !err; i++) {
		if (f->sections[i].sh_type == SHT_SYMTAB || f->sections[i].sh_type == SHT_DYNSYM)
			err = symbols_search(f, &f->sections[i]);
	}
	return err;
}

/* A note's content: three addresses, then provider, name and arguments. If has_base, `base` is the
 * address of .stapsdt.base; it differs from the second one of the note if the file was moved after
 * the note was written (prelink). */
static int note_take(struct finder *f, const char *text, size_t bytes, uint64_t base, bool has_base)
{
	struct probe_place place = {.offset = 0};
	uint64_t address[3];
	const char *provider = text + sizeof(address), *name, *arguments;
	size_t left = bytes < sizeof(address) ? 0 : bytes - sizeof(address), len;

	/* All three texts end within the note. */
	if (!left || text[bytes - 1])
		return 0;
	memcpy(address, text, sizeof(address));
	len = strlen(provider) + 1;
	if (len >= left)
		return 0;
	name = provider + len;
	left -= len;
	len = strlen(name) + 1;
	if (len >= left)
		return 0;
	arguments = name + len;
	if (strcmp(provider, f->provider) != 0)
		return 0;
	if (strcmp(name, f->name) != 0) {
		near_try(f, name);
		return 0;
	}
	if (has_base) {
		address[0] += base - address[1];
		address[2] += address[2] ? base - address[1] : 0;
	}
	place.offset = place_of(f, address[0]);
	place.counter = address[2] ? place_of(f, address[2]) : 0;
	if (strlen(arguments) < sizeof(place.arguments))
		memcpy(place.arguments, arguments, strlen(arguments) + 1);
	return place.offset ? place_add(f, &place) : 0;
}

static int probes_find(struct finder *f)
{
	const Elf64_Shdr *notes = section_find(f, ".note.stapsdt");
	const Elf64_Shdr *base = section_find(f, ".stapsdt.base");
	char *bytes = notes ? section_read(notes, NOTES_BYTES_MAX) : NULL;
	size_t at = 0;
	int err = 0;

	while (bytes && !err && at + sizeof(Elf64_Nhdr) <= notes->sh_size) {
		Elf64_Nhdr n;
		uint64_t text, next;

		memcpy(&n, bytes + at, sizeof(n));
		text = at + sizeof(n) + ((n.n_namesz + UINT64_C(3)) & ~UINT64_C(3));
		next = text + ((n.n_descsz + UINT64_C(3)) & ~UINT64_C(3));
		if (text + n.n_descsz > notes->sh_size)
			break;
		if (n.n_type == NOTE_STAPSDT && n.n_namesz == sizeof("stapsdt") &&
		    !memcmp(bytes + at + sizeof(n), "stapsdt", sizeof("stapsdt")))
			err = note_take(f, bytes + text, n.n_descsz, base ? base->sh_addr : 0,
					base != NULL);
		at = next;
	}
	free(bytes);
	return err;
}

static void find(const char *provider, const char *name, struct answer *answer)
{
	static struct finder f;

	f.provider = provider;
	f.name = name;
	f.out = &answer->places;
	f.near_same = strlen(name) / 2;
	answer->err = heads_read(&f);
	if (!answer->err)
		answer->err = provider ? probes_find(&f) : functions_find(&f);
	if (!answer->err && !f.out->n)
		answer->err = -ENOENT;
}

static int file_open(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat s;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &s) && S_ISREG(s.st_mode))
		return fd;
	close(fd);
	return -ENOEXEC;
}

/* Never returns. Opens the file in this process, because a file system may block whoever opens it.
 */
static void child_run(const char *path, int out, const char *provider, const char *name,
		      pid_t parent)
{
	static struct answer answer;
	const struct confinement rights = {.keep = ANSWER_DESCRIPTOR + 1,
					   .memory_bytes = MEMORY_BYTES,
					   .parent = parent,
					   .files = 1};
	const int file = file_open(path);
	const char *step;
	int high_file, high_out;

	if (file < 0) {
		answer.err = file;
		_exit(write(out, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1);
	}
	/* First to numbers above the final ones, so that no dup2() closes the other's source. */
	high_file = fcntl(file, F_DUPFD, 16);
	high_out = fcntl(out, F_DUPFD, 16);
	if (high_file < 0 || high_out < 0 || dup2(high_file, FILE_DESCRIPTOR) < 0 ||
	    dup2(high_out, ANSWER_DESCRIPTOR) < 0 || confine(&rights, &step))
		_exit(1);
	find(provider, name, &answer);
	_exit(write(ANSWER_DESCRIPTOR, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1);
}

/* ---- in the caller ---- */

static int answer_read(int fd, struct answer *answer)
{
	const uint64_t until_ms = clock_monotonic_ms() + ANSWER_MS;
	size_t n = 0;

	while (n < sizeof(*answer)) {
		struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
		const uint64_t now_ms = clock_monotonic_ms();
		const int ready =
			now_ms < until_ms ? poll(&poll_fd, 1, (int)(until_ms - now_ms)) : 0;
		ssize_t got;

		if (!ready)
			return -ETIMEDOUT;
		got = read(fd, (char *)answer + n, sizeof(*answer) - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -EIO;
		n += (size_t)got;
	}
	return 0;
}

/* The process that read the file may have written anything. */
static int answer_check(struct answer *answer)
{
	struct probe_places *p = &answer->places;

	if (answer->err > 0 || answer->err < -4095 || p->n > PROBE_PLACES_MAX)
		return -EIO;
	p->near[sizeof(p->near) - 1] = 0;
	for (size_t i = 0; i < PROBE_PLACES_MAX; i++)
		p->places[i].arguments[PROBE_ARGUMENTS_BYTES - 1] = 0;
	return answer->err;
}

int probe_find(const char *path, const char *provider, const char *name, struct probe_places *out)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	const pid_t parent = getpid();
	int pipes[2], err = answer ? 0 : -ENOMEM;
	pid_t child;

	memset(out, 0, sizeof(*out));
	if (!err && pipe2(pipes, O_CLOEXEC))
		err = -errno;
	if (!err) {
		child = fork();
		if (!child)
			child_run(path, pipes[1], provider, name, parent);
		err = child < 0 ? -errno : 0;
		close(pipes[1]);
		if (!err)
			err = answer_read(pipes[0], answer);
		close(pipes[0]);
		if (child > 0)
			kill(child, SIGKILL); /* it has answered, or its time is over */
		while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		if (!err) {
			err = answer_check(answer);
			*out = answer->places;
		}
	}
	free(answer);
	return err;
}
