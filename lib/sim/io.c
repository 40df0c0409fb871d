/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sim/io.h"
#include "sim/state.h"
#include "sim/uring.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t nr_changes;

void pl__sim_io_changed(void)
{
	nr_changes++;
}

uint64_t pl__sim_io_nr_changes(void)
{
	return nr_changes;
}

struct poll {
	struct pollfd	*fds;
	nfds_t		nr;
	int		found;
	uint64_t	seen;	/* nr_changes at the last look */
};

static bool poll_is_ready(void *arg)
{
	struct poll *p = arg;

	pl__sim_uring_run();
	if (p->seen == nr_changes)
		return false;
	p->seen = nr_changes;
	pl__sim_uring_show();
	p->found = PL__SIM_REAL(poll)(p->fds, p->nr, 0);
	/* It needs as many descriptors as may be open: the caller tries. */
	return p->found;
}

int pl__sim_poll(const char *where, struct pollfd *fds, nfds_t nr,
		 uint64_t timeout_ns)
{
	struct poll p = { .fds = fds, .nr = nr, .seen = nr_changes };
	uint64_t now = pl__sim_now(), until = PL__SIM_FOREVER;

	pl__sim_uring_pass();
	pl__sim_uring_show();
	p.found = PL__SIM_REAL(poll)(fds, nr, 0);
	if (p.found > 0 || !timeout_ns)
		return p.found;
	/* If it cannot say, what has changed since is looked for once more. */
	if (!p.found)
		p.seen = nr_changes;
	if (timeout_ns < PL__SIM_FOREVER - now)
		until = now + timeout_ns;
	pl__sim_sleep(where, NULL, poll_is_ready, &p, until);
	return p.found;
}

int pl__sim_io_begin(int fd, bool dont_wait)
{
	/* Those of the standard streams are other processes' as well. */
	int flags = dont_wait || fd <= STDERR_FILENO ? -1 :
						       fcntl(fd, F_GETFL);

	if (flags < 0 || flags & O_NONBLOCK ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return 0;
	return flags + 1;
}

void pl__sim_io_end(int fd, int before)
{
	int now = errno;

	if (before)
		fcntl(fd, F_SETFL, before - 1);
	errno = now;
}

bool pl__sim_io_is_stream(int fd)
{
	socklen_t len = sizeof(int);
	struct stat st;
	int type = 0;

	if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len))
		return type == SOCK_STREAM;
	return !fstat(fd, &st) && S_ISFIFO(st.st_mode);
}

size_t pl__sim_io_part(int fd, size_t size, int flags)
{
	int now = errno;

	if (size < 2 || flags & ~(MSG_DONTWAIT | MSG_NOSIGNAL) ||
	    !pl__sim_one_in(pl__sim.short_in))
		return size;
	if (pl__sim_io_is_stream(fd))
		size = 1 + pl__sim_random() % size;
	errno = now;
	return size;
}

void pl__sim_io_wait(const char *where, int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	pl__sim_poll(where, &p, 1, PL__SIM_FOREVER);
}

int pl__sim_io_text(const char *text)
{
	ssize_t size = (ssize_t)strlen(text);
	int fd = memfd_create("text", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	if (PL__SIM_REAL(write)(fd, text, (size_t)size) != size ||
	    lseek(fd, 0, SEEK_SET)) {
		PL__SIM_REAL(close)(fd);
		return -1;
	}
	return fd;
}
