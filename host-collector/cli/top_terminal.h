/* SPDX-License-Identifier: GPL-2.0-only */
/* The terminal of `top`: draws lines and reads keys with ncurses. */
#ifndef CLI_TOP_TERMINAL_H
#define CLI_TOP_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#include "host-collector/view/top_screen.h"

struct top_terminal;

enum top_key {
	TOP_KEY_NONE,
	TOP_KEY_TEXT, /* a character, stored in *text */
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_ENTER,
	TOP_KEY_BACK,  /* left or Escape */
	TOP_KEY_ERASE, /* Backspace */
	TOP_KEY_OTHER, /* any other key */
};

/* Takes over the terminal of standard input and output. Returns NULL if that fails. */
struct top_terminal *top_terminal_open(bool colour);
/* Restores the terminal. */
void top_terminal_close(struct top_terminal *t);
/* Returns the current size in *columns and *lines. */
void top_terminal_size(struct top_terminal *t, unsigned *columns, unsigned *lines);
/* Draws the screen `s` with these rows. */
void top_terminal_draw(struct top_terminal *t, struct top_screen *s, const struct top_row *rows,
		       size_t n);
/* Returns the next key without waiting; TOP_KEY_NONE: there is none. */
enum top_key top_terminal_key(struct top_terminal *t, char *text);

#endif
