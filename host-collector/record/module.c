/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/module.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct function {
	uint64_t address, size;
	const char *name; /* libelf's */
};

struct module {
	struct module *next;
	pid_t pid;
	uint64_t map_begin, map_end; /* the first mapping: its name in map_files */
	bool dumped;
	size_t n_functions;
	struct function *functions;
	Elf *debug;  /* the file with its symbols, if they are not in itself */
	char path[]; /* as in /proc/PID/maps */
};

struct module_list {
	pid_t pid;
	struct module *first;
};

struct module_list *module_list_new(pid_t pid)
{
	struct module_list *list = calloc(1, sizeof(*list));

	elf_version(EV_CURRENT);
	if (list)
		list->pid = pid;
	return list;
}

void module_list_free(struct module_list *list)
{
	struct module *m, *next;

	if (!list)
		return;
	for (m = list->first; m; m = next) {
		next = m->next;
		free(m->functions);
		elf_end(m->debug);
		free(m);
	}
	free(list);
}

/* A run of mappings of one file. */
struct span {
	uint64_t begin, end;             /* of all of them */
	uint64_t first_begin, first_end; /* of the first */
	unsigned long inode;
	bool executable;
	char path[4096];
};

static int span_report(struct module_list *list, Dwfl *dwfl, const struct span *span)
{
	Dwfl_Module *dwfl_module;
	char vdso[32];
	const char *name = span->path;
	void **userdata = NULL;
	struct module *m;

	if (!*span->path || !span->executable)
		return 0;
	if (!strcmp(span->path, "[vdso]")) {
		/* the name by which libdwfl knows to read it from the process */
		snprintf(vdso, sizeof(vdso), "[vdso: %d]", list->pid);
		name = vdso;
	} else if (span->path[0] != '/') {
		return 0;
	}
	dwfl_module = dwfl_report_module(dwfl, name, span->begin, span->end);
	if (!dwfl_module)
		return 0; /* overlaps another: the process changed while we read */
	dwfl_module_info(dwfl_module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	if (!userdata || *userdata)
		return 0; /* known from an earlier report */
	m = calloc(1, sizeof(*m) + strlen(span->path) + 1);
	if (!m)
		return -ENOMEM;
	m->pid = list->pid;
	m->map_begin = span->first_begin;
	m->map_end = span->first_end;
	memcpy(m->path, span->path, strlen(span->path) + 1);
	m->next = list->first;
	list->first = m;
	*userdata = m;
	return 0;
}

int module_list_report(struct module_list *list, Dwfl *dwfl)
{
	char path[64], *line = NULL;
	struct span span = {0};
	size_t capacity = 0, lines = 0;
	int err = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", list->pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	dwfl_report_begin(dwfl);
	while (!err && getline(&line, &capacity, f) > 0) {
		unsigned long long begin, end;
		unsigned long inode;
		char access[8];
		int name = 0;

		lines++;
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%llx-%llx %7s %*x %*s %lu %n", &begin, &end, access, &inode,
			   &name) != 4)
			continue;
		if (!line[name] || strlen(line + name) >= sizeof(span.path))
			continue;
		if (strcmp(span.path, line + name) || span.inode != inode) {
			err = span_report(list, dwfl, &span);
			span.begin = span.first_begin = begin;
			span.first_end = end;
			span.inode = inode;
			span.executable = false;
			snprintf(span.path, sizeof(span.path), "%s", line + name);
		}
		span.end = end;
		span.executable |= access[2] == 'x';
	}
	if (!err)
		err = span_report(list, dwfl, &span);
	dwfl_report_end(dwfl, NULL, NULL);
	free(line);
	fclose(f);
	return err ? err : lines ? 0 : -ESRCH; /* a zombie's maps are empty */
}

/* An ELF file, mapped, or NULL. It takes fd in any case: a QEMU maps 200 files, and there may be
 * many QEMUs, and their descriptors would all be ours. */
static Elf *elf_mapped(int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);

	if (elf && (elf_kind(elf) != ELF_K_ELF || elf_cntl(elf, ELF_C_FDREAD))) {
		elf_end(elf);
		elf = NULL;
	}
	close(fd);
	return elf;
}

int module_find_elf(Dwfl_Module *dwfl_module, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	const struct module *m = *userdata;
	char path[4200];
	int fd;

	if (!m || m->path[0] != '/')
		return dwfl_linux_proc_find_elf(dwfl_module, userdata, name, base, file_name, elf);
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", m->pid,
		 (unsigned long long)m->map_begin, (unsigned long long)m->map_end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/%d/root%s", m->pid, m->path);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0)
		*elf = elf_mapped(fd);
	return -1;
}

static int function_compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* The section with all symbols; NULL: none. */
static Elf_Scn *symbols_find(Elf *elf, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while (elf && (section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, header) && header->sh_type == SHT_SYMTAB &&
		    header->sh_entsize)
			return section;
	}
	return NULL;
}

/* The file that was split off a stripped one, where this machine's packages put it. */
static Elf *debug_open(Dwfl_Module *dwfl_module)
{
	char path[256] = "/usr/lib/debug/.build-id/";
	size_t used = strlen(path);
	const unsigned char *id;
	GElf_Addr address;
	const int bytes = dwfl_module_build_id(dwfl_module, &id, &address);
	int fd;

	if (bytes < 2 || used + (size_t)bytes * 2 + sizeof("/.debug") > sizeof(path))
		return NULL;
	for (int i = 0; i < bytes; i++)
		used += (size_t)sprintf(path + used, i == 0 ? "%02x/" : "%02x", id[i]);
	strcpy(path + used, ".debug");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? NULL : elf_mapped(fd);
}

/* Without a size nobody knows whether an address behind it still belongs to it. */
static void function_add(struct module *m, const char *name, uint64_t address,
			 const GElf_Sym *symbol)
{
	const int type = GELF_ST_TYPE(symbol->st_info);

	if (!name || !*name || !symbol->st_size || symbol->st_shndx == SHN_UNDEF ||
	    (type != STT_FUNC && type != STT_GNU_IFUNC))
		return;
	m->functions[m->n_functions++] = (struct function){address, symbol->st_size, name};
}

/* False: the file is stripped, and what was split off is not here. */
static bool debug_dump(struct module *m, Dwfl_Module *dwfl_module)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(dwfl_module, &bias);
	Elf_Scn *section;
	GElf_Shdr header;
	Elf_Data *data;
	size_t n;

	if (!elf || symbols_find(elf, &header))
		return false;
	m->debug = debug_open(dwfl_module);
	section = symbols_find(m->debug, &header);
	data = section ? elf_getdata(section, NULL) : NULL;
	n = data ? data->d_size / header.sh_entsize : 0;
	m->functions = n ? calloc(n, sizeof(*m->functions)) : NULL;
	for (size_t i = 0; m->functions && i < n; i++) {
		GElf_Sym symbol;

		if (gelf_getsym(data, (int)i, &symbol))
			function_add(m, elf_strptr(m->debug, header.sh_link, symbol.st_name),
				     symbol.st_value + bias, &symbol);
	}
	return m->functions;
}

static void own_dump(struct module *m, Dwfl_Module *dwfl_module)
{
	int n = dwfl_module_getsymtab(dwfl_module);

	m->functions = n > 0 ? calloc((size_t)n, sizeof(*m->functions)) : NULL;
	for (int i = 0; m->functions && i < n; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name = dwfl_module_getsym_info(dwfl_module, i, &symbol, &address, NULL,
							   NULL, NULL);

		if (name)
			function_add(m, name, address, &symbol);
	}
}

static void functions_dump(struct module *m, Dwfl_Module *dwfl_module)
{
	m->dumped = true;
	if (!debug_dump(m, dwfl_module))
		own_dump(m, dwfl_module);
	if (m->n_functions)
		qsort(m->functions, m->n_functions, sizeof(*m->functions), function_compare);
}

const char *module_symbol(Dwfl_Module *dwfl_module, uint64_t address, uint64_t *offset)
{
	void **userdata = NULL;
	size_t low = 0, high;
	struct module *m;

	dwfl_module_info(dwfl_module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	if (!userdata || !*userdata)
		return NULL;
	m = *userdata;
	if (!m->dumped)
		functions_dump(m, dwfl_module);
	high = m->n_functions;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->functions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - m->functions[low - 1].address >= m->functions[low - 1].size)
		return NULL;
	*offset = address - m->functions[low - 1].address;
	return m->functions[low - 1].name;
}
