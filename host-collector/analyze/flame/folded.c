// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames are interned: a stack is an array of pointers to them, and its hash and equality are those
 * of the pointers. Both indices are open hash tables that grow, kept at most half full.
 */
#include "host-collector/analyze/flame/folded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "host-collector/util/escape.h"

struct kept_stack {
	struct folded_stack stack;
	const struct folded_frame *frames[];
};

/* A hash table. Its items begin with their hash. */
struct table {
	void **items;
	uint64_t *hashes;
	size_t capacity, count;
};

struct folded {
	uint64_t seed;
	struct table frames, stacks;
	struct kept_stack *overflow;
	struct kept_stack **sorted; /* NULL: they must be sorted again */
	uint64_t total_ns;
	struct kept_stack *newest; /* folded_newest() */
};

typedef bool (*table_equal)(const void *item, const void *key);

/* Hashes eight bytes at a time. The seed prevents that a guest chooses names that collide. */
static uint64_t hash_mix(uint64_t h, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	uint64_t word;

	for (; len; bytes += sizeof(word), len -= len < sizeof(word) ? len : sizeof(word)) {
		word = 0;
		memcpy(&word, bytes, len < sizeof(word) ? len : sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15;
		h ^= h >> 32;
	}
	return h;
}

static void **table_slot(const struct table *t, uint64_t hash, table_equal equal, const void *key)
{
	size_t at = hash & (t->capacity - 1);

	while (t->items[at] && (t->hashes[at] != hash || !equal(t->items[at], key)))
		at = (at + 1) & (t->capacity - 1);
	return &t->items[at];
}

static bool never_equal(const void *item, const void *key)
{
	(void)item;
	(void)key;
	return false;
}

static int table_grow(struct table *t)
{
	struct table bigger = {.capacity = t->capacity ? 2 * t->capacity : 256, .count = t->count};

	bigger.items = calloc(bigger.capacity, sizeof(*bigger.items));
	bigger.hashes = calloc(bigger.capacity, sizeof(*bigger.hashes));
	if (!bigger.items || !bigger.hashes) {
		free(bigger.items);
		free(bigger.hashes);
		return -ENOMEM;
	}
	for (size_t i = 0; i < t->capacity; i++) {
		void **slot;

		if (!t->items[i])
			continue;
		slot = table_slot(&bigger, t->hashes[i], never_equal, NULL);
		*slot = t->items[i];
		bigger.hashes[slot - bigger.items] = t->hashes[i];
	}
	free(t->items);
	free(t->hashes);
	*t = bigger;
	return 0;
}

static void table_put(struct table *t, void **slot, uint64_t hash, void *item)
{
	*slot = item;
	t->hashes[slot - t->items] = hash;
	t->count++;
}

static void table_fini(struct table *t)
{
	for (size_t i = 0; i < t->capacity; i++)
		free(t->items[i]);
	free(t->items);
	free(t->hashes);
}

/* ---- names ---- */

/* If `text` ends in a blank and a number, returns the position of the blank, else 0. */
static size_t trailing_number(const char *text)
{
	size_t len = strlen(text), at = len;

	while (at && ((text[at - 1] >= '0' && text[at - 1] <= '9') || text[at - 1] == '.'))
		at--;
	return at > 1 && at < len && text[at - 1] == ' ' ? at - 1 : 0;
}

/* Cuts `text` to at most FOLDED_NAME_MAX - 1 bytes, between two characters. */
static void name_cut(char *text)
{
	size_t len = strlen(text);

	if (len < FOLDED_NAME_MAX)
		return;
	len = FOLDED_NAME_MAX - 1;
	while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	text[len] = 0;
}

/* Returns true if the name needs no change, as nearly every name. The results of name_clean() are
 * plain, so text that was written and read back stays the same. */
static bool name_is_plain(const char *name)
{
	const char *p = name;

	while (*p >= ' ' && *p <= '~' && *p != ';')
		p++;
	return !*p && p > name && p - name < FOLDED_NAME_MAX && *name != ' ' && p[-1] != ' ' &&
	       !trailing_number(name);
}

static void name_clean(const char *name, struct escaped *out)
{
	struct escaped e = escape(name);
	size_t number;
	size_t len;

	name_cut(e.text);
	for (char *p = e.text; *p; p++) {
		if (*p == ';')
			*p = ':';
	}
	len = strlen(e.text);
	if (e.text[0] == ' ')
		e.text[0] = '_';
	if (len && e.text[len - 1] == ' ')
		e.text[len - 1] = '_';
	number = trailing_number(e.text);
	if (number)
		e.text[number] = '_';
	if (!len)
		memcpy(e.text, "[unknown]", sizeof("[unknown]"));
	*out = e;
}

static bool frame_equal(const void *item, const void *key)
{
	const struct folded_frame *a = item, *b = key;

	return a->kind == b->kind && a->waker == b->waker && !strcmp(a->name, b->name);
}

/* 0, -ENOMEM, -ENOSPC. */
static int frame_intern(struct folded *f, const struct folded_frame *in,
			const struct folded_frame **out)
{
	struct folded_frame key = *in, *fresh;
	struct escaped name;
	uint64_t hash;
	size_t bytes;
	void **slot;

	if (!name_is_plain(in->name)) {
		name_clean(in->name, &name);
		key.name = name.text;
	}
	bytes = strlen(key.name) + 1;
	hash = hash_mix(f->seed + 2 * key.kind + key.waker, key.name, bytes);
	if (2 * f->frames.count >= f->frames.capacity && table_grow(&f->frames))
		return -ENOMEM;
	slot = table_slot(&f->frames, hash, frame_equal, &key);
	if (*slot) {
		*out = *slot;
		return 0;
	}
	if (f->frames.count == FOLDED_FRAMES_MAX)
		return -ENOSPC;
	fresh = malloc(sizeof(*fresh) + bytes);
	if (!fresh)
		return -ENOMEM;
	*fresh = key;
	fresh->name = memcpy(fresh + 1, key.name, bytes);
	table_put(&f->frames, slot, hash, fresh);
	*out = fresh;
	return 0;
}

/* ---- stacks ---- */

static bool stack_equal(const void *item, const void *key)
{
	const struct folded_stack *a = item, *b = key;

	return a->n_frames == b->n_frames &&
	       !memcmp(a->frames, b->frames, a->n_frames * sizeof(*a->frames));
}

/* 0, -ENOMEM, -ENOSPC. */
static int stack_intern(struct folded *f, const struct folded_stack *key, struct kept_stack **out)
{
	const size_t bytes = key->n_frames * sizeof(*key->frames);
	uint64_t hash = hash_mix(f->seed, key->frames, bytes);
	struct kept_stack *fresh;
	void **slot;

	if (2 * f->stacks.count >= f->stacks.capacity && table_grow(&f->stacks))
		return -ENOMEM;
	slot = table_slot(&f->stacks, hash, stack_equal, key);
	if (*slot) {
		*out = *slot;
		return 0;
	}
	if (f->stacks.count == FOLDED_STACKS_MAX)
		return -ENOSPC;
	fresh = malloc(sizeof(*fresh) + bytes);
	if (!fresh)
		return -ENOMEM;
	memcpy(fresh->frames, key->frames, bytes);
	fresh->stack = (struct folded_stack){.n_frames = key->n_frames, .frames = fresh->frames};
	table_put(&f->stacks, slot, hash, fresh);
	free(f->sorted);
	f->sorted = NULL;
	*out = fresh;
	return 0;
}

struct folded *folded_new(void)
{
	struct folded *f = calloc(1, sizeof(*f));

	if (f && getrandom(&f->seed, sizeof(f->seed), GRND_NONBLOCK) != sizeof(f->seed))
		f->seed = (uintptr_t)f; /* a guest must not choose names that collide */
	return f;
}

void folded_free(struct folded *f)
{
	if (!f)
		return;
	table_fini(&f->stacks);
	table_fini(&f->frames);
	free(f->overflow);
	free(f->sorted);
	free(f);
}

/* The overflow's stack is in no index, so adding to it always succeeds. */
static int overflow_add(struct folded *f, uint64_t weight_ns)
{
	static const struct folded_frame frame = {FOLDED_OVERFLOW, FOLDED_ANNOTATION, false};

	if (!f->overflow) {
		f->overflow = malloc(sizeof(*f->overflow) + sizeof(f->overflow->frames[0]));
		if (!f->overflow)
			return -ENOMEM;
		f->overflow->frames[0] = &frame;
		f->overflow->stack = (struct folded_stack){0, 1, f->overflow->frames};
		free(f->sorted);
		f->sorted = NULL;
	}
	f->overflow->stack.weight_ns += weight_ns;
	return 0;
}

int folded_add(struct folded *f, const struct folded_frame *frames, size_t n, uint64_t weight_ns)
{
	static const struct folded_frame cut = {FOLDED_CUT, FOLDED_ANNOTATION, false};
	const struct folded_frame *known[FOLDED_DEPTH_MAX];
	struct kept_stack *kept = NULL;
	const size_t depth = n < FOLDED_DEPTH_MAX ? n : FOLDED_DEPTH_MAX;
	int err = 0;

	f->newest = NULL;
	if (!n)
		return -EINVAL;
	for (size_t i = 0; i < depth && !err; i++)
		err = frame_intern(f, i == depth - 1 && depth < n ? &cut : &frames[i], &known[i]);
	if (!err)
		err = stack_intern(f, &(struct folded_stack){0, depth, known}, &kept);
	if (err == -ENOSPC)
		err = overflow_add(f, weight_ns);
	if (err)
		return err;
	if (kept)
		kept->stack.weight_ns += weight_ns;
	f->newest = kept;
	f->total_ns += weight_ns;
	return 0;
}

struct kept_stack *folded_newest(const struct folded *f)
{
	return f->newest;
}

void folded_add_again(struct folded *f, struct kept_stack *stack, uint64_t weight_ns)
{
	stack->stack.weight_ns += weight_ns;
	f->total_ns += weight_ns;
}

size_t folded_count(const struct folded *f)
{
	return f->stacks.count + !!f->overflow;
}

static int frame_compare(const struct folded_frame *a, const struct folded_frame *b)
{
	int order = a == b ? 0 : strcmp(a->name, b->name);

	if (order || a == b)
		return order;
	return a->kind != b->kind ? (int)a->kind - (int)b->kind : a->waker - b->waker;
}

static int stack_compare(const void *a, const void *b)
{
	const struct folded_stack *x = &(*(struct kept_stack *const *)a)->stack;
	const struct folded_stack *y = &(*(struct kept_stack *const *)b)->stack;

	for (size_t i = 0; i < x->n_frames && i < y->n_frames; i++) {
		int order = frame_compare(x->frames[i], y->frames[i]);

		if (order)
			return order;
	}
	return (x->n_frames > y->n_frames) - (x->n_frames < y->n_frames);
}

static int sort(struct folded *f)
{
	size_t n = 0;

	f->sorted = malloc((folded_count(f) + 1) * sizeof(struct kept_stack *));
	if (!f->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < f->stacks.capacity; i++) {
		if (f->stacks.items[i])
			f->sorted[n++] = f->stacks.items[i];
	}
	if (f->overflow)
		f->sorted[n++] = f->overflow;
	qsort(f->sorted, n, sizeof(struct kept_stack *), stack_compare);
	return 0;
}

const struct folded_stack *folded_at(struct folded *f, size_t index)
{
	if (index >= folded_count(f) || (!f->sorted && sort(f)))
		return NULL;
	return &f->sorted[index]->stack;
}

uint64_t folded_total_ns(const struct folded *f)
{
	return f->total_ns;
}
