/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || len >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, len);
	if (address.sun_path[0] == '@')
		address.sun_path[0] = 0; /* an abstract socket */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
	       (const struct sockaddr *)&address,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

uint64_t notify_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return strtoull(usec, NULL, 10) / 2000;
}
