/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A user without rights who wakes a VM's thread from his own library, and changes the file of this
 * library meanwhile. The user must own LIBRARY.
 *
 *   knock MODE PORT LIBRARY [OTHER]
 *
 *   plain     wakes the thread 30 times
 *   truncate  shortens the file and restores it, at every length that keeps its code
 *   fifo      unmaps the first page, and replaces the file by a FIFO
 *   link      unmaps the first page, and replaces the file by a link to OTHER
 *   deleted   removes the file
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, SLEEP_US = 30000 };

static int fd;

struct library {
	const char *path;
	int (*knock)(int fd);
	char *begin;
	size_t loaded; /* bytes of the file that are mapped */
};

static int loaded_find(struct dl_phdr_info *info, size_t size, void *context)
{
	struct library *l = context;

	(void)size;
	for (size_t i = 0; info->dlpi_addr == (ElfW(Addr))l->begin && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_offset + p->p_filesz > l->loaded)
			l->loaded = p->p_offset + p->p_filesz;
	}
	return 0;
}

static void library_load(struct library *l, const char *path)
{
	void *handle = dlopen(path, RTLD_NOW);
	Dl_info info;

	l->path = path;
	l->knock = handle ? (int (*)(int))(uintptr_t)dlsym(handle, "knock_from_here") : NULL;
	if (!l->knock || !dladdr((void *)l->knock, &info)) {
		fprintf(stderr, "knock: %s\n", dlerror());
		exit(1);
	}
	l->begin = info.dli_fbase;
	dl_iterate_phdr(loaded_find, l);
}

static void knock_often(const struct library *l, int times)
{
	for (int i = 0; i < times; i++) {
		usleep(SLEEP_US); /* the VM's thread must have slept for its waker to count */
		l->knock(fd);
	}
}

static void truncate_often(const struct library *l)
{
	const int file = open(l->path, O_RDWR);
	struct stat s;
	char *whole;

	if (file < 0 || fstat(file, &s))
		exit(1);
	whole = malloc((size_t)s.st_size);
	if (pread(file, whole, (size_t)s.st_size, 0) != s.st_size)
		exit(1);
	knock_often(l, 5);
	for (off_t len = (off_t)l->loaded; len < s.st_size; len += 2 * PAGE) {
		if (ftruncate(file, len))
			exit(1);
		knock_often(l, 1);
		if (pwrite(file, whole, (size_t)s.st_size, 0) != s.st_size)
			exit(1);
		knock_often(l, 1);
	}
	if (ftruncate(file, (off_t)l->loaded))
		exit(1);
	knock_often(l, 10);
}

struct target {
	struct library library;
	void (*sleep_down)(int depth, unsigned int us);
	int file;
};

struct targets {
	size_t n;
	struct target *of;
	char *whole; /* they are copies of one */
	size_t bytes;
};

static void *truncate_all(void *context)
{
	const struct targets *t = context;

	for (;;) {
		for (size_t i = 0; i < t->n; i++) {
			if (ftruncate(t->of[i].file, (off_t)t->of[i].library.loaded))
				exit(1);
		}
		for (size_t i = 0; i < t->n; i++) {
			if (pwrite(t->of[i].file, t->whole, t->bytes, 0) != (ssize_t)t->bytes)
				exit(1);
		}
	}
	return NULL;
}

static int sleep_everywhere(int seconds, char **paths, size_t n)
{
	struct targets t = {.n = n, .of = calloc(n, sizeof(*t.of))};
	const time_t end = time(NULL) + seconds;
	pthread_t thread;
	struct stat s;

	for (size_t i = 0; i < n; i++) {
		void *handle;

		library_load(&t.of[i].library, paths[i]);
		handle = dlopen(paths[i], RTLD_NOW);
		t.of[i].sleep_down =
			(void (*)(int, unsigned int))(uintptr_t)dlsym(handle, "sleep_down_here");
		t.of[i].file = open(paths[i], O_RDWR);
		t.of[i].sleep_down(0, 1); /* its symbol is bound */
	}
	if (!n || fstat(t.of[0].file, &s))
		return 1;
	t.bytes = (size_t)s.st_size;
	t.whole = malloc(t.bytes);
	if (pread(t.of[0].file, t.whole, t.bytes, 0) != s.st_size ||
	    pthread_create(&thread, NULL, truncate_all, &t))
		return 1;
	for (int depth = 0; time(NULL) < end; depth = (depth + 1) % 50) {
		for (size_t i = 0; i < n && time(NULL) < end; i++)
			t.of[i].sleep_down(depth, 1000);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct library first = {0}, second = {0};
	const char *mode = argc > 1 ? argv[1] : "";

	if (argc > 3 && !strcmp(mode, "sleep"))
		return sleep_everywhere(atoi(argv[2]), argv + 3, (size_t)argc - 3);
	if (argc < 5) {
		fprintf(stderr, "usage: knock MODE PORT FIRST SECOND [OTHER]\n");
		return 2;
	}
	to.sin_port = htons((uint16_t)atoi(argv[2]));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return 1;
	library_load(&first, argv[3]);
	library_load(&second, argv[4]);
	if (!strcmp(mode, "truncate")) {
		truncate_often(&first);
		return 0;
	}
	knock_often(&first, 15);
	if (!strcmp(mode, "plain"))
		return 0;
	if (!strcmp(mode, "deleted")) {
		if (unlink(first.path))
			return 1;
		knock_often(&first, 30);
		return 0;
	}
	/* Nothing leads any longer to the file by the first page of its mapping. */
	if (munmap(second.begin, PAGE) || unlink(second.path) ||
	    (!strcmp(mode, "fifo") ? mkfifo(second.path, 0600) : symlink(argv[5], second.path)))
		return 1;
	knock_often(&second, 30);
	return 0;
}
