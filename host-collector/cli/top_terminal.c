/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/top_terminal.h"

#include <locale.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <ncurses.h>

struct top_terminal {
	SCREEN *screen;
	bool colour;
	int y; /* where the next line goes */
};

struct top_terminal *top_terminal_open(bool colour)
{
	struct top_terminal *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	setlocale(LC_CTYPE, "");
	t->screen = newterm(NULL, stdout, stdin);
	if (!t->screen) {
		free(t);
		return NULL;
	}
	set_term(t->screen);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	t->colour = colour && has_colors();
	if (t->colour) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_RED, -1);
	}
	return t;
}

void top_terminal_close(struct top_terminal *t)
{
	if (!t)
		return;
	endwin();
	delscreen(t->screen);
	free(t);
}

void top_terminal_size(struct top_terminal *t, unsigned *columns, unsigned *lines)
{
	struct winsize size;

	(void)t;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col && size.ws_row &&
	    (size.ws_row != LINES || size.ws_col != COLS))
		resizeterm(size.ws_row, size.ws_col);
	*columns = (unsigned)COLS;
	*lines = (unsigned)LINES;
}

static void on_line(void *context, enum top_look look, const char *text)
{
	struct top_terminal *t = context;
	attr_t how = A_NORMAL;

	if (look == TOP_HEAD)
		how = A_BOLD;
	else if (look == TOP_COLUMNS)
		how = A_UNDERLINE;
	else if (look == TOP_SELECTED)
		how = A_REVERSE;
	else if (look == TOP_ALARM)
		how = t->colour ? (attr_t)COLOR_PAIR(1) : A_BOLD;
	attrset((int)how);
	mvaddstr(t->y++, 0, text);
	attrset(A_NORMAL);
}

void top_terminal_draw(struct top_terminal *t, struct top_screen *s, const struct top_row *rows,
		       size_t n)
{
	t->y = 0;
	erase();
	top_screen_draw(s, rows, n, on_line, t);
	refresh();
}

enum top_key top_terminal_key(struct top_terminal *t, char *text)
{
	int key = getch();

	(void)t;
	switch (key) {
	case ERR:
		return TOP_KEY_NONE;
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_ENTER:
	case KEY_RIGHT:
	case '\r':
	case '\n':
		return TOP_KEY_ENTER;
	case KEY_LEFT:
	case 27:
		return TOP_KEY_BACK;
	case KEY_BACKSPACE:
	case 127:
	case 8:
		return TOP_KEY_ERASE;
	default:
		*text = key > 0 && key < 256 ? (char)key : ' ';
		return key > 0 && key < 256 ? TOP_KEY_TEXT : TOP_KEY_OTHER;
	}
}
