/* SPDX-License-Identifier: GPL-2.0-only */
/* A library with many functions with long names, so that its symbols are far behind its code.
 * One of the functions wakes a VM's thread, so that the stack of the waker contains addresses of
 * this file. */
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#define F(a, b, c)                                                                                 \
	int a_function_with_a_long_name_that_fills_the_table_##a##b##c(void);                      \
	int a_function_with_a_long_name_that_fills_the_table_##a##b##c(void)                       \
	{                                                                                          \
		return a * 100 + b * 10 + c;                                                       \
	}
#define G(a, b)                                                                                    \
	F(a, b, 0)                                                                                 \
	F(a, b, 1)                                                                                 \
	F(a, b, 2) F(a, b, 3) F(a, b, 4) F(a, b, 5) F(a, b, 6) F(a, b, 7) F(a, b, 8) F(a, b, 9)
#define H(a) G(a, 0) G(a, 1) G(a, 2) G(a, 3) G(a, 4) G(a, 5) G(a, 6) G(a, 7) G(a, 8) G(a, 9)
H(1)
H(2)
H(3)
H(4)
H(5)
H(6)
H(7)
H(8)
H(9)

int knock_from_here(int fd);
int knock_from_here(int fd)
{
	volatile long sent = send(fd, "x", 1, 0);

	return (int)sent;
}

/* Every depth is another stack. */
void sleep_down_here(int depth, unsigned int us);
void sleep_down_here(int depth, unsigned int us)
{
	volatile int below = depth - 1;

	if (below < 0)
		usleep(us);
	else
		sleep_down_here(below, us);
	below = 0;
}
