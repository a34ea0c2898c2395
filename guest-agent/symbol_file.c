// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/symbol_file.h"

#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A function written in assembly may not say how long it is: it is taken to be this long. */
enum { UNSIZED_BYTES = 256 };
enum {
	FILES_MAX = 32,
	FUNCTIONS_MAX = 1 << 16,
	NAMES_BYTES_MAX = 4 << 20,
	SEGMENTS_MAX = 8,
	SECTION_BYTES_MAX = 16 << 20, /* larger ones are not read: libelf reads the whole section */
};

struct function {
	uint64_t address, size;
	uint32_t name; /* in names */
};

struct segment {
	uint64_t offset, bytes, address;
};

struct symbol_file {
	struct file_id id;
	uint64_t used; /* 0: free */
	size_t n_functions, n_segments;
	struct function *functions; /* by address */
	char *names;
	size_t names_bytes;
	struct segment segments[SEGMENTS_MAX]; /* of code */
};

struct symbol_files {
	uint64_t clock;
	struct symbol_file items[FILES_MAX];
};

struct symbol_files *symbol_files_new(void)
{
	elf_version(EV_CURRENT);
	return calloc(1, sizeof(struct symbol_files));
}

static void file_clear(struct symbol_file *f)
{
	free(f->functions);
	free(f->names);
	*f = (struct symbol_file){0};
}

static void segments_read(struct symbol_file *f, Elf *elf)
{
	size_t n = 0;
	GElf_Phdr header;

	if (elf_getphdrnum(elf, &n))
		return;
	for (size_t i = 0; i < n && f->n_segments < SEGMENTS_MAX; i++) {
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD ||
		    !(header.p_flags & PF_X))
			continue;
		f->segments[f->n_segments++] =
			(struct segment){header.p_offset, header.p_filesz, header.p_vaddr};
	}
}

/* Is the table as large as those of real files, and are its names? */
static bool table_is_sane(Elf *elf, const GElf_Shdr *table)
{
	Elf_Scn *names = elf_getscn(elf, table->sh_link);
	GElf_Shdr h;

	return table->sh_size <= SECTION_BYTES_MAX && names && gelf_getshdr(names, &h) &&
	       h.sh_size <= SECTION_BYTES_MAX;
}

/* The full table, or else the one for the dynamic linker. */
static Elf_Scn *table_find(Elf *elf, GElf_Shdr *header)
{
	Elf_Scn *section = NULL, *dynamic = NULL;
	GElf_Shdr h;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &h) || !table_is_sane(elf, &h))
			continue;
		if (h.sh_type == SHT_SYMTAB) {
			*header = h;
			return section;
		}
		if (h.sh_type == SHT_DYNSYM) {
			*header = h;
			dynamic = section;
		}
	}
	return dynamic;
}

static bool function_add(struct symbol_file *f, const GElf_Sym *symbol, const char *name)
{
	size_t bytes = strlen(name) + 1;

	if (f->n_functions == FUNCTIONS_MAX || f->names_bytes + bytes > NAMES_BYTES_MAX)
		return false;
	memcpy(f->names + f->names_bytes, name, bytes);
	f->functions[f->n_functions++] =
		(struct function){symbol->st_value, symbol->st_size, (uint32_t)f->names_bytes};
	f->names_bytes += bytes;
	return true;
}

static int function_compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void functions_read(struct symbol_file *f, Elf *elf)
{
	GElf_Shdr header;
	Elf_Scn *section = table_find(elf, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	size_t n = data && header.sh_entsize ? header.sh_size / header.sh_entsize : 0;
	void *smaller;
	GElf_Sym symbol;

	f->functions = malloc(FUNCTIONS_MAX * sizeof(*f->functions));
	f->names = malloc(NAMES_BYTES_MAX);
	for (size_t i = 0; i < n && i < INT32_MAX && f->functions && f->names; i++) {
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(elf, header.sh_link, symbol.st_name);
		if (name && *name && !function_add(f, &symbol, name))
			break;
	}
	if (f->n_functions)
		/* There are functions only if there is memory. NOLINTNEXTLINE(clang-analyzer-*) */
		qsort(f->functions, f->n_functions, sizeof(*f->functions), function_compare);
	smaller = realloc(f->functions, (f->n_functions + 1) * sizeof(*f->functions));
	f->functions = smaller ? smaller : f->functions;
	smaller = realloc(f->names, f->names_bytes + 1);
	f->names = smaller ? smaller : f->names;
}

struct symbol_file *symbol_file_get(struct symbol_files *files, struct naming *n, size_t index)
{
	struct symbol_file *f = &files->items[0];
	struct file_id id;
	Elf *elf;
	int fd = naming_open(n, index, &id);

	if (fd < 0)
		return NULL;
	for (size_t i = 0; i < FILES_MAX; i++) {
		struct symbol_file *known = &files->items[i];

		if (known->used && !memcmp(&known->id, &id, sizeof(id))) {
			known->used = ++files->clock;
			close(fd);
			return known;
		}
		if (known->used < f->used)
			f = known;
	}
	file_clear(f);
	f->id = id;
	f->used = ++files->clock;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		segments_read(f, elf);
		functions_read(f, elf);
	}
	elf_end(elf);
	close(fd);
	return f;
}

bool symbol_file_lookup(const struct symbol_file *file, uint64_t offset, char name[VS_TEXT_MAX],
			uint64_t *distance)
{
	size_t low = 0, high = file->n_functions;
	const struct function *f;
	uint64_t address = 0, into;
	bool mapped = false;

	for (size_t i = 0; i < file->n_segments && !mapped; i++) {
		const struct segment *s = &file->segments[i];

		mapped = offset >= s->offset && offset - s->offset < s->bytes;
		address = offset - s->offset + s->address;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->functions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!mapped || !low)
		return false;
	f = &file->functions[low - 1];
	into = address - f->address;
	if (into >= (f->size ? f->size : UNSIZED_BYTES))
		return false;
	snprintf(name, VS_TEXT_MAX, "%s", file->names + f->name);
	*distance = into;
	return true;
}
