/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/flame_svg.h"
#include "host-collector/util/duration.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "host-collector/util/escape.h"
#include "host-collector/view/page_files.h"
#include "proto/text.h"

/* In so few of 20 slices even a change from nothing cannot be significant at 1 % (Welch's t). */
enum { SLICES_TOO_FEW = 5 };
enum { FONT = 12, FRAME = 16, PAD = 10, FOOT = 2 * FONT + 10, WIDTH_DEFAULT = 1200 };
static const double glyph = 0.62; /* a character's width, of the font's size */

struct colour {
	unsigned red, green, blue;
};

/* What is being drawn, and where. */
struct graph {
	const struct flame_tree *tree;
	const struct flame_svg_options *options;
	FILE *out;
	double width, min_width, scale;      /* pixels, pixels, pixels per ns */
	double most;                         /* compare: the largest significant difference */
	size_t n_frames, n_changed;          /* that are drawn; of these, significant */
	const struct flame_node *untestable; /* compare: the largest change in too few slices */
	unsigned head, levels; /* pixels above the frames; how many levels are drawn */
};

static const struct {
	const char *name, *top, *bottom; /* of the background */
} palettes[] = {
	[FLAME_PALETTE_HOT] = {"hot", "#eeeeee", "#eeeeb0"},
	[FLAME_PALETTE_IO] = {"io", "#eeeeee", "#e0e0ff"},
	[FLAME_PALETTE_WAKEUP] = {"wakeup", "#eeeeee", "#e0e0ff"},
	[FLAME_PALETTE_CHAIN] = {"chain", "#eeeeee", "#e0e0ff"},
	[FLAME_PALETTE_MEM] = {"mem", "#eef2ee", "#e0ffe0"},
	[FLAME_PALETTE_SIDES] = {"sides", "#f8f8f8", "#e8e8e8"},
};

int flame_palette_parse(const char *text, enum flame_palette *palette)
{
	for (int p = 0; p < FLAME_PALETTE_COUNT; p++) {
		if (!strcmp(palettes[p].name, text)) {
			*palette = (enum flame_palette)p;
			return 0;
		}
	}
	return -EINVAL;
}

/* For an element or a quoted attribute. */
static void text_write(const char *text, FILE *out)
{
	while (*text) {
		struct character c = character_at(text);

		if (!c.valid)
			fputs("\xef\xbf\xbd", out);
		else if (c.code == '<' || c.code == '>' || c.code == '&' || c.code == '"')
			fprintf(out, "&#%u;", c.code);
		else if (character_is_unsafe(c.code))
			fprintf(out, "\\u{%x}", c.code);
		else
			fwrite(text, 1, c.bytes, out);
		text += c.bytes;
	}
}

/* ---- colours ---- */

/* Three numbers from 0 to 1 that are always the same for a name, so that two graphs compare. */
static void name_spread(const char *name, double v[3])
{
	const uint64_t h = text_hash(name) * 0x9e3779b97f4a7c15;

	for (int i = 0; i < 3; i++)
		v[i] = (double)(h >> (12 + 16 * i) & 0xffff) / 65535;
}

static struct colour mix(const double base[3], const double range[3], const double v[3])
{
	return (struct colour){(unsigned)(base[0] + range[0] * v[0]),
			       (unsigned)(base[1] + range[1] * v[1]),
			       (unsigned)(base[2] + range[2] * v[2])};
}

enum family { RED_YELLOW, BLUE, AQUA, SKY, RED, GREEN, MEMORY, YELLOW, ORANGE, PURPLE, PALE, GREY };

static struct colour family_colour(enum family family, const double v[3])
{
	/* In some, one number makes the colours go together. */
	const double one[3] = {v[0], v[0], v[0]}, mem[3] = {0, v[1], v[0]};
	const double hot[3] = {v[2], v[0], v[1]}, io[3] = {v[0], v[0], v[1]};

	switch (family) {
	case RED_YELLOW:
		return mix((double[]){205, 0, 0}, (double[]){50, 230, 55}, hot);
	case BLUE:
		return mix((double[]){80, 80, 190}, (double[]){60, 60, 55}, io);
	case SKY:
		return mix((double[]){80, 80, 205}, (double[]){60, 60, 50}, one);
	case AQUA:
		return mix((double[]){50, 165, 165}, (double[]){60, 55, 55}, one);
	case RED:
		return mix((double[]){200, 50, 50}, (double[]){55, 80, 80}, one);
	case GREEN:
		return mix((double[]){50, 200, 50}, (double[]){60, 55, 60}, one);
	case MEMORY:
		return mix((double[]){0, 190, 0}, (double[]){0, 50, 210}, mem);
	case YELLOW:
		return mix((double[]){175, 175, 50}, (double[]){55, 55, 20}, one);
	case ORANGE:
		return mix((double[]){190, 90, 0}, (double[]){65, 65, 0}, one);
	case PURPLE:
		return mix((double[]){190, 80, 190}, (double[]){65, 60, 65}, one);
	case PALE:
		return (struct colour){226, 228, 232};
	case GREY:
		break;
	}
	return (struct colour){200, 200, 200};
}

/* What a thread did, or why it did not run. */
static enum family annotation_family(const char *name)
{
	static const struct {
		const char *word;
		enum family family;
	} rows[] = {
		{"running", GREEN}, {"runnable", RED},   {"preempted", RED},
		{"throttled", RED}, {"blocked", PURPLE}, {"stopped", PURPLE},
		{"sleeping", PALE}, {"halted", PALE},    {"idle", PALE},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (strstr(name, rows[i].word))
			return rows[i].family;
	}
	return GREY;
}

static enum family side_family(const struct flame_node *n)
{
	static const enum family families[] = {
		[FOLDED_TASK] = GREY,           [FOLDED_GUEST_USER] = YELLOW,
		[FOLDED_GUEST_KERNEL] = ORANGE, [FOLDED_HOST_USER] = SKY,
		[FOLDED_HOST_KERNEL] = AQUA,    [FOLDED_SEPARATOR] = GREY,
	};

	return n->kind == FOLDED_ANNOTATION ? annotation_family(n->name) : families[n->kind];
}

static struct colour plain_colour(const struct graph *g, const struct flame_node *n)
{
	static const enum family families[] = {
		[FLAME_PALETTE_HOT] = RED_YELLOW, [FLAME_PALETTE_IO] = BLUE,
		[FLAME_PALETTE_WAKEUP] = AQUA,    [FLAME_PALETTE_CHAIN] = SKY,
		[FLAME_PALETTE_MEM] = MEMORY,
	};
	enum flame_palette palette = g->options->palette;
	double v[3];

	if (!strcmp(n->name, "--"))
		return (struct colour){160, 160, 160};
	if (!strcmp(n->name, "-"))
		return (struct colour){200, 200, 200};
	name_spread(n->name, v);
	if (palette == FLAME_PALETTE_SIDES)
		return family_colour(side_family(n), v);
	if (palette == FLAME_PALETTE_CHAIN && n->waker)
		return family_colour(AQUA, v);
	return family_colour(families[palette], v);
}

/* Never white: what is small but significant must be seen, what is not is grey. */
static struct colour change_colour(const struct graph *g, const struct flame_node *n)
{
	double share = g->most > 0 ? fabs(n->ns[1] - n->ns[0]) / g->most : 0;
	unsigned pale = (unsigned)(190 - 190 * (share > 1 ? 1 : share));

	if (!n->significant)
		return (struct colour){210, 210, 210};
	return n->ns[1] > n->ns[0] ? (struct colour){255, pale, pale}
				   : (struct colour){pale, pale, 255};
}

/* ---- frames ---- */

static double whole(const struct graph *g, int side)
{
	return flame_tree_at(g->tree, 0)->ns[side];
}

static double percent(double part, double of)
{
	return of > 0 ? 100 * part / of : 0;
}

/* "12,345" */
static void grouped_write(double value, FILE *out)
{
	char digits[32];
	int n = snprintf(digits, sizeof(digits), "%.0f", value);

	for (int i = 0; i < n; i++)
		fprintf(out, "%s%c", i && (n - i) % 3 == 0 ? "," : "", digits[i]);
}

/* Returns true if a frame is on one side only, in so few slices that no test can distinguish it
 * from chance: a single stall is in one slice. Frames that are too narrow to be seen do not count.
 */
static bool is_untestable(const struct graph *g, const struct flame_node *n)
{
	unsigned slices = n->slices[n->ns[0] <= 0];

	return g->options->sliced && (n->ns[0] <= 0) != (n->ns[1] <= 0) && slices &&
	       slices <= SLICES_TOO_FEW &&
	       n->ns[0] + n->ns[1] >= 0.005 * fmax(whole(g, 0), whole(g, 1));
}

static void change_title_write(const struct graph *g, const struct flame_node *n)
{
	const struct flame_svg_options *o = g->options;

	for (int side = 0; side < 2; side++) {
		fputs(side ? ", after " : "before ", g->out);
		grouped_write(n->ns[side] / 1000, g->out);
		fprintf(g->out, " %s %.2f%%", o->unit, percent(n->ns[side], whole(g, side)));
	}
	fprintf(g->out, "; %+.2f points, ",
		percent(n->ns[1], whole(g, 1)) - percent(n->ns[0], whole(g, 0)));
	if (!n->significant && is_untestable(g, n))
		fprintf(g->out, "in %u of %d slices: too few to be significant",
			n->slices[n->ns[0] <= 0], FLAME_TREE_SLICES);
	else if (!n->significant)
		fputs("not significant", g->out);
	else
		fputs(n->ns[0] <= 0 ? "new" : n->ns[1] <= 0 ? "vanished" : "significant", g->out);
}

static void title_write(const struct graph *g, const struct flame_node *n)
{
	fputs("<title>", g->out);
	text_write(n->parent == FLAME_NONE ? "all" : n->name, g->out);
	fputs(" (", g->out);
	if (g->options->compare) {
		change_title_write(g, n);
	} else {
		grouped_write(n->ns[1] / 1000, g->out);
		fprintf(g->out, " %s, %.2f%%", g->options->unit, percent(n->ns[1], whole(g, 1)));
	}
	fputs(")</title>", g->out);
}

/* As much of the name as fits. */
static void label_write(const struct graph *g, const struct flame_node *n, double x, double y,
			double width)
{
	const char *name = n->parent == FLAME_NONE ? "all" : n->name, *p = name;
	long room = (long)((width - 4) / (FONT * glyph)), all = 0, kept = 0;
	char cut[4 * 256];

	if (room < 3)
		return;
	while (*p && (size_t)(p - name) < sizeof(cut) - 8) {
		p += character_at(p).bytes;
		if (++all <= room - 2)
			kept = p - name;
		if (all > room)
			break;
	}
	if (all <= room) {
		snprintf(cut, sizeof(cut), "%s", name);
	} else {
		memcpy(cut, name, (size_t)kept);
		strcpy(cut + kept, "..");
	}
	fprintf(g->out, "<text x=\"%.2f\" y=\"%.1f\">", x + 3, y);
	text_write(cut, g->out);
	fputs("</text>", g->out);
}

static void node_write(const struct graph *g, const struct flame_node *n, double x, unsigned level)
{
	bool compare = g->options->compare;
	struct colour c = compare ? change_colour(g, n) : plain_colour(g, n);
	unsigned row = g->options->inverted ? level : g->levels - 1 - level;
	double y = g->head + row * FRAME, width = n->width_ns * g->scale;
	const char *extra = "";

	if (n->parent == FLAME_NONE && !compare)
		c = (struct colour){200, 200, 200};
	if (compare && n->significant && (n->ns[0] <= 0 || n->ns[1] <= 0))
		extra = " class=\"edge\"";
	fputs("<g class=\"f\">", g->out);
	title_write(g, n);
	fprintf(g->out,
		"<rect%s x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" "
		"fill=\"rgb(%u,%u,%u)\" rx=\"2\"/>",
		extra, x, y, width, FRAME - 1, c.red, c.green, c.blue);
	label_write(g, n, x, y + FRAME - 4.5, width);
	fputs("</g>\n", g->out);
}

/* Calls `visit` for each frame that is wide enough, parents first, without recursion. */
static void frames_each(struct graph *g, void (*visit)(struct graph *g, const struct flame_node *n,
						       double x, unsigned level))
{
	double begins[FOLDED_DEPTH_MAX + 2]; /* where the next child of a level begins */
	uint32_t node = 0;
	unsigned level = 0;

	begins[0] = PAD;
	for (;;) {
		const struct flame_node *n = flame_tree_at(g->tree, node);
		double width = n->width_ns * g->scale;
		bool shown = width >= g->min_width;

		if (shown)
			visit(g, n, begins[level], level);
		if (shown && n->child != FLAME_NONE && level <= FOLDED_DEPTH_MAX) {
			begins[level + 1] = begins[level];
			begins[level++] += width;
			node = n->child;
			continue;
		}
		begins[level] += width;
		while (n->next == FLAME_NONE && n->parent != FLAME_NONE) {
			n = flame_tree_at(g->tree, n->parent);
			level--;
		}
		if (n->parent == FLAME_NONE)
			return;
		node = n->next;
	}
}

static void node_measure(struct graph *g, const struct flame_node *n, double x, unsigned level)
{
	double change = fabs(n->ns[1] - n->ns[0]);

	(void)x;
	if (level + 1 > g->levels)
		g->levels = level + 1;
	g->n_frames++;
	g->n_changed += n->significant;
	if (n->significant && change > g->most)
		g->most = change;
	if (g->options->compare && is_untestable(g, n) &&
	    (!g->untestable || change >= fabs(g->untestable->ns[1] - g->untestable->ns[0])))
		g->untestable = n;
}

static void node_draw(struct graph *g, const struct flame_node *n, double x, unsigned level)
{
	node_write(g, n, x, level);
}

/* ---- the document ---- */

static void control_write(const struct graph *g, const char *id, const char *anchor, double x,
			  double y, const char *text)
{
	fprintf(g->out, "<text id=\"%s\" x=\"%.0f\" y=\"%.0f\"%s%s%s>%s</text>\n", id, x, y,
		*anchor ? " text-anchor=\"" : "", anchor, *anchor ? "\"" : "", text);
}

static void untestable_write(const struct graph *g, double y)
{
	const struct flame_node *n = g->untestable;
	bool after = n->ns[0] <= 0;

	fprintf(g->out, "<text id=\"untestable\" x=\"%d\" y=\"%.0f\">Gray, but large: ", PAD, y);
	text_write(n->name, g->out);
	fprintf(g->out, ", %s only: %s in %u of %d slices, which is too few to be significant",
		after ? "after" : "before", duration_text((int64_t)n->ns[after]).text,
		n->slices[after], FLAME_TREE_SLICES);
	fputs("</text>\n", g->out);
}

/* What the colours mean, where they are not the known ones. */
static void legend_write(const struct graph *g, double y)
{
	static const struct {
		const char *text;
		enum family family;
	} sides[] = {
		{"guest user", YELLOW},         {"guest kernel", ORANGE}, {"host user", SKY},
		{"host kernel", AQUA},          {"running", GREEN},       {"waits for a CPU", RED},
		{"blocked or stopped", PURPLE}, {"sleeps", PALE},         {"other", GREY}};
	static const struct {
		const char *text;
		struct colour c;
	} changes[] = {{"more", {255, 60, 60}},
		       {"less", {60, 60, 255}},
		       {"not significant", {210, 210, 210}}};
	const double middle[3] = {0.5, 0.5, 0.5};
	bool compare = g->options->compare;
	size_t n = compare ? sizeof(changes) / sizeof(*changes) : sizeof(sides) / sizeof(*sides);
	double x = PAD;

	if (!compare && g->options->palette != FLAME_PALETTE_SIDES)
		return;
	for (size_t i = 0; i < n; i++) {
		const char *text = compare ? changes[i].text : sides[i].text;
		struct colour c = compare ? changes[i].c : family_colour(sides[i].family, middle);

		fprintf(g->out,
			"<rect x=\"%.0f\" y=\"%.0f\" width=\"11\" height=\"11\" "
			"fill=\"rgb(%u,%u,%u)\"/><text x=\"%.0f\" y=\"%.0f\">%s</text>\n",
			x, y - 10, c.red, c.green, c.blue, x + 15, y, text);
		x += 30 + (double)strlen(text) * FONT * 0.62;
	}
	if (compare)
		fprintf(g->out, "<text x=\"%.0f\" y=\"%.0f\">%zu of %zu frames differ</text>\n", x,
			y, g->n_changed, g->n_frames);
	if (g->untestable)
		untestable_write(g, y + 18);
}

static void head_write(const struct graph *g, double height)
{
	const struct flame_svg_options *o = g->options;
	enum flame_palette palette = o->compare ? FLAME_PALETTE_HOT : o->palette;

	fprintf(g->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		"<svg version=\"1.1\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
		"xmlns=\"http://www.w3.org/2000/svg\">\n"
		"<!-- Drawn by vcpuscope. -->\n"
		"<style>\n%s</style>\n<defs><linearGradient id=\"background\" y1=\"0\" y2=\"1\" "
		"x1=\"0\" x2=\"0\"><stop stop-color=\"%s\" offset=\"5%%\"/><stop "
		"stop-color=\"%s\" offset=\"95%%\"/></linearGradient></defs>\n"
		"<rect x=\"0\" y=\"0\" width=\"100%%\" height=\"100%%\" "
		"fill=\"url(#background)\"/>\n",
		g->width, height, g->width, height, page_file_flame_css, palettes[palette].top,
		palettes[palette].bottom);
	fprintf(g->out, "<text id=\"title\" x=\"%.0f\" y=\"%d\">", g->width / 2, 2 * FONT);
	text_write(o->title ? o->title : "Flame Graph", g->out);
	fputs("</text>\n", g->out);
	if (o->subtitle) {
		fprintf(g->out, "<text id=\"subtitle\" x=\"%.0f\" y=\"%d\">", g->width / 2,
			4 * FONT - 6);
		text_write(o->subtitle, g->out);
		fputs("</text>\n", g->out);
	}
	control_write(g, "unzoom", "", PAD, 2 * FONT, "Reset Zoom");
	control_write(g, "search", "end", g->width - PAD - 30, 2 * FONT, "Search");
	control_write(g, "ignorecase", "end", g->width - PAD, 2 * FONT, "ic");
	legend_write(g, g->head - 8 - (g->untestable ? 18 : 0));
}

static void script_write(const struct graph *g)
{
	fprintf(g->out,
		"<script><![CDATA[\nconst CONFIG = {width: %.0f, pad: %d, font: %d, glyph: %.2f, "
		"frame: %d, inverted: %s, follows: %s};\n%s]]></script>\n",
		g->width, PAD, FONT, glyph, FRAME, g->options->inverted ? "true" : "false",
		g->options->width ? "false" : "true", page_file_flame_js);
}

int flame_svg_write(const struct flame_tree *t, const struct flame_svg_options *o, FILE *out)
{
	struct graph g = {.tree = t, .options = o, .out = out};
	double all = flame_tree_at(t, 0)->width_ns, height;
	bool legend = o->compare || o->palette == FLAME_PALETTE_SIDES;

	g.width = o->width ? o->width : WIDTH_DEFAULT;
	g.min_width = o->min_width > 0 ? o->min_width : 0.1;
	g.scale = all > 0 ? (g.width - 2 * PAD) / all : 0;
	g.head = 3 * FONT + (o->subtitle ? FONT + 4 : 0) + (legend ? 18 : 0);
	frames_each(&g, node_measure);
	g.head += g.untestable ? 18 : 0;
	height = g.head + (g.levels ? g.levels : 1) * FRAME + FOOT;
	head_write(&g, height);
	fputs("<g id=\"frames\">\n", out);
	frames_each(&g, node_draw);
	fputs("</g>\n", out);
	if (all <= 0)
		control_write(&g, "empty", "middle", g.width / 2, g.head + FRAME,
			      "No stacks: nothing to show.");
	control_write(&g, "details", "", PAD, height - FOOT / 2.0 + 4, " ");
	control_write(&g, "matched", "end", g.width - PAD, height - FOOT / 2.0 + 4, " ");
	script_write(&g);
	fputs("</svg>\n", out);
	return fflush(out) || ferror(out) ? -EIO : 0;
}
