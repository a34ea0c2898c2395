/* SPDX-License-Identifier: GPL-2.0-only */
/* The terminal of `top`: lines out, keys in, by ncurses. */
#ifndef CLI_TOP_TERMINAL_H
#define CLI_TOP_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#include "host-collector/view/top_screen.h"

struct top_terminal;

enum top_key {
	TOP_KEY_NONE,
	TOP_KEY_TEXT, /* a character: *text */
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_ENTER,
	TOP_KEY_BACK,  /* left, Escape */
	TOP_KEY_ERASE, /* backspace */
	TOP_KEY_OTHER, /* means nothing here */
};

/* Takes over the terminal of standard input and output. NULL: there is none that could be used. */
struct top_terminal *top_terminal_open(bool colour);
/* Gives it back as it was. */
void top_terminal_close(struct top_terminal *t);
/* Its size may have changed. */
void top_terminal_size(struct top_terminal *t, unsigned *columns, unsigned *lines);
/* Draws a screen of that size. */
void top_terminal_draw(struct top_terminal *t, struct top_screen *s, const struct top_row *rows,
		       size_t n);
/* The next key that waits, TOP_KEY_NONE if there is none. */
enum top_key top_terminal_key(struct top_terminal *t, char *text);

#endif
