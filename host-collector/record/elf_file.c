/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/elf_file.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FUNCTIONS_MAX = 1 << 19,
	NAMES_BYTES_MAX = 48 << 20,
	SECTION_BYTES_MAX = 64 << 20,
};

struct function {
	uint64_t address, size; /* as in the file */
	uint32_t name;          /* in names */
};

struct elf_file {
	struct elf_file *next;
	struct file_id id;
	int fd;
	Elf *elf;
	bool dumped;
	size_t n_functions, names_bytes, names_capacity;
	struct function *functions;
	char *names;
};

struct elf_files {
	size_t n;
	struct elf_file *first;
};

struct elf_files *elf_files_new(void)
{
	elf_version(EV_CURRENT);
	return calloc(1, sizeof(struct elf_files));
}

static void file_free(struct elf_file *f)
{
	elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	free(f->functions);
	free(f->names);
	free(f);
}

void elf_files_free(struct elf_files *files)
{
	struct elf_file *next;

	for (struct elf_file *f = files ? files->first : NULL; f; f = next) {
		next = f->next;
		file_free(f);
	}
	free(files);
}

size_t elf_files_count(const struct elf_files *files)
{
	return files->n;
}

/* Takes fd over, if it is an ELF file. */
static Elf *elf_open(int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);

	if (elf && elf_kind(elf) != ELF_K_ELF) {
		elf_end(elf);
		elf = NULL;
	}
	return elf;
}

struct elf_file *elf_file_get(struct elf_files *files, struct naming *n, size_t index)
{
	struct elf_file *f;
	struct file_id id;
	int fd = naming_open(n, index, &id);

	if (fd < 0)
		return NULL;
	for (f = files->first; f; f = f->next) {
		if (!memcmp(&f->id, &id, sizeof(id))) {
			close(fd);
			return f;
		}
	}
	f = calloc(1, sizeof(*f));
	if (!f) {
		close(fd);
		return NULL;
	}
	f->id = id;
	f->fd = fd;
	f->elf = elf_open(fd);
	f->next = files->first;
	files->first = f;
	files->n++;
	return f;
}

Elf *elf_file_borrow(struct elf_file *file)
{
	/* Counts one more user. */
	return file->elf ? elf_begin(file->fd, ELF_C_READ, file->elf) : NULL;
}

/* ---- functions ---- */

/* Without a size nobody knows whether an address behind it still belongs to it. */
static void function_add(struct elf_file *f, const char *name, uint64_t address,
			 const GElf_Sym *symbol)
{
	const int type = GELF_ST_TYPE(symbol->st_info);
	size_t bytes;

	if (!name || !*name || !symbol->st_size || symbol->st_shndx == SHN_UNDEF ||
	    (type != STT_FUNC && type != STT_GNU_IFUNC))
		return;
	bytes = strlen(name) + 1;
	if (f->names_bytes + bytes > NAMES_BYTES_MAX)
		return;
	if (f->names_bytes + bytes > f->names_capacity) {
		const size_t capacity = 2 * (f->names_capacity + bytes) + 4096;
		char *more = realloc(f->names, capacity);

		if (!more)
			return;
		f->names = more;
		f->names_capacity = capacity;
	}
	memcpy(f->names + f->names_bytes, name, bytes);
	f->functions[f->n_functions++] =
		(struct function){address, symbol->st_size, (uint32_t)f->names_bytes};
	f->names_bytes += bytes;
}

static bool functions_reserve(struct elf_file *f, size_t n)
{
	free(f->functions);
	f->n_functions = 0;
	f->functions = n && n <= FUNCTIONS_MAX ? calloc(n, sizeof(*f->functions)) : NULL;
	return f->functions;
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

/* Are all sections that are read for names as large as those of real files? libelf would allocate
 * whatever the header says. */
static bool sections_are_sane(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr h;

	while ((section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, &h) &&
		    (h.sh_type == SHT_SYMTAB || h.sh_type == SHT_DYNSYM ||
		     h.sh_type == SHT_STRTAB) &&
		    h.sh_size > SECTION_BYTES_MAX)
			return false;
	}
	return true;
}

/* The symbols that were split off, as far as this machine's packages are here. False: none. */
static bool debug_dump(struct elf_file *f, struct naming *n, Dwfl_Module *dwfl_module)
{
	const unsigned char *build_id;
	struct file_id id;
	GElf_Addr address;
	GElf_Shdr header;
	Elf_Scn *section;
	Elf_Data *data = NULL;
	size_t count;
	Elf *elf;
	int fd, bytes;

	if (symbols_find(f->elf, &header))
		return false;
	bytes = dwfl_module_build_id(dwfl_module, &build_id, &address);
	fd = bytes > 0 ? naming_open_debug(n, build_id, (size_t)bytes, &id) : -1;
	if (fd < 0)
		return false;
	elf = elf_open(fd);
	section = elf && sections_are_sane(elf) ? symbols_find(elf, &header) : NULL;
	if (section)
		data = elf_getdata(section, NULL);
	count = data ? data->d_size / header.sh_entsize : 0;
	if (functions_reserve(f, count)) {
		for (size_t i = 0; i < count; i++) {
			GElf_Sym symbol;

			if (gelf_getsym(data, (int)i, &symbol))
				function_add(f, elf_strptr(elf, header.sh_link, symbol.st_name),
					     symbol.st_value, &symbol);
		}
	}
	elf_end(elf);
	close(fd);
	return f->n_functions > 0;
}

static void own_dump(struct elf_file *f, Dwfl_Module *dwfl_module, GElf_Addr bias)
{
	const int n = dwfl_module_getsymtab(dwfl_module);

	if (n <= 0 || !functions_reserve(f, (size_t)n))
		return;
	for (int i = 0; i < n; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name = dwfl_module_getsym_info(dwfl_module, i, &symbol, &address, NULL,
							   NULL, NULL);

		if (name)
			function_add(f, name, address - bias, &symbol);
	}
}

static int function_compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void functions_dump(struct elf_file *f, struct naming *n, Dwfl_Module *dwfl_module,
			   GElf_Addr bias)
{
	f->dumped = true;
	if (!sections_are_sane(f->elf))
		return;
	if (!debug_dump(f, n, dwfl_module))
		own_dump(f, dwfl_module, bias);
	if (f->n_functions)
		qsort(f->functions, f->n_functions, sizeof(*f->functions), function_compare);
}

const char *elf_file_symbol(struct elf_file *f, struct naming *n, Dwfl_Module *dwfl_module,
			    uint64_t address, uint64_t *offset)
{
	const struct function *function;
	size_t low = 0, high;
	GElf_Addr bias = 0;

	if (!dwfl_module_getelf(dwfl_module, &bias) || !f->elf)
		return NULL;
	if (!f->dumped)
		functions_dump(f, n, dwfl_module, bias);
	address -= bias;
	high = f->n_functions;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->functions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	function = low ? &f->functions[low - 1] : NULL;
	if (!function || address - function->address >= function->size)
		return NULL;
	*offset = address - function->address;
	return f->names + function->name;
}
