/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "debug/syscall_name.h"
#include "base/base.h"

#include <sys/syscall.h>

#define CALL(x)		{ SYS_##x, false, #x }
#define CALL_AS(x, as)	{ SYS_##x, false, as }
#define OF_FD(x)	{ SYS_##x, true, #x }
#define OF_FD_AS(x, as)	{ SYS_##x, true, as }

/* Hidden, but not static: gdb looks it up. */
extern const struct pl__syscall_name pl__syscall_names[];
const struct pl__syscall_name pl__syscall_names[] = {
	OF_FD(read), OF_FD(readv), OF_FD_AS(pread64, "pread"), OF_FD(preadv),
	OF_FD(preadv2), OF_FD(write), OF_FD(writev),
	OF_FD_AS(pwrite64, "pwrite"), OF_FD(pwritev), OF_FD(pwritev2),
	OF_FD(recvfrom), OF_FD(recvmsg), OF_FD(recvmmsg), OF_FD(sendto),
	OF_FD(sendmsg), OF_FD(sendmmsg), OF_FD(accept), OF_FD(accept4),
	OF_FD(connect), OF_FD(close), OF_FD(epoll_pwait), OF_FD(ioctl),
	OF_FD(fcntl), OF_FD(flock), OF_FD(fsync), OF_FD(fdatasync),
	OF_FD(syncfs), OF_FD(sync_file_range), OF_FD(fallocate),
	OF_FD(ftruncate), OF_FD_AS(getdents64, "getdents"), OF_FD(sendfile),
	OF_FD(splice), OF_FD(tee), OF_FD(vmsplice), OF_FD(copy_file_range),
	OF_FD(fstat), OF_FD(io_uring_enter), OF_FD_AS(mq_timedreceive,
	"mq_receive"), OF_FD_AS(mq_timedsend, "mq_send"),
	CALL(futex), CALL(nanosleep), CALL(clock_nanosleep), CALL(ppoll),
	CALL_AS(pselect6, "pselect"), CALL(wait4), CALL(waitid),
	CALL_AS(rt_sigtimedwait, "sigtimedwait"),
	CALL_AS(rt_sigsuspend, "sigsuspend"), CALL(semop), CALL(semtimedop),
	CALL(msgrcv), CALL(msgsnd), CALL(io_getevents), CALL(getrandom),
	CALL(openat), CALL_AS(newfstatat, "fstatat"), CALL(statx),
	CALL(unlinkat), CALL(renameat2), CALL(mkdirat), CALL(truncate),
	CALL(execve), CALL(clone), CALL(mmap), CALL(munmap), CALL(mprotect),
	CALL(mremap), CALL(madvise), CALL(msync), CALL(mlock), CALL(brk),
	CALL(sync), CALL(restart_syscall), CALL(sched_yield),
	CALL(process_vm_readv),
	/* aarch64 lacks these. */
#ifdef SYS_poll
	CALL(poll), CALL(select), CALL(pause), CALL(open), CALL(stat),
	CALL(lstat), CALL(unlink), CALL(rename), CALL(mkdir), CALL(rmdir),
	CALL(fork), CALL(vfork), OF_FD(epoll_wait),
#endif
	/* Older headers lack these. */
#ifdef SYS_clone3
	CALL(clone3),
#endif
#ifdef SYS_openat2
	CALL(openat2),
#endif
#ifdef SYS_futex_waitv
	CALL(futex_waitv),
#endif
};

const struct pl__syscall_name *pl__syscall_name(long nr)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pl__syscall_names); i++)
		if (pl__syscall_names[i].nr == nr)
			return &pl__syscall_names[i];
	return NULL;
}
