/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "debug/names.h"
#include "base/base.h"

#include <sys/syscall.h>

#define OP(x)		{ false, x }
#define FD_OP(x)	{ true, x }

/*
 * By number: headers of liburing may lack the newest.  Hidden, but not static:
 * gdb looks it up.
 */
extern const struct pl__op_name pl__op_names[];
const struct pl__op_name pl__op_names[] = {
	[0] = OP("nop"), FD_OP("readv"), FD_OP("writev"), FD_OP("fsync"),
	[4] = FD_OP("read_fixed"), FD_OP("write_fixed"), FD_OP("poll"),
	[7] = OP("poll_remove"), FD_OP("sync_file_range"), FD_OP("sendmsg"),
	[10] = FD_OP("recvmsg"), OP("timeout"), OP("timeout_remove"),
	[13] = FD_OP("accept"), OP("async_cancel"), OP("link_timeout"),
	[16] = FD_OP("connect"), FD_OP("fallocate"), OP("openat"),
	[19] = FD_OP("close"), OP("files_update"), OP("statx"),
	[22] = FD_OP("read"), FD_OP("write"), FD_OP("fadvise"), OP("madvise"),
	[26] = FD_OP("send"), FD_OP("recv"), OP("openat2"),
	[29] = FD_OP("epoll_ctl"), FD_OP("splice"), OP("provide_buffers"),
	[32] = OP("remove_buffers"), FD_OP("tee"), FD_OP("shutdown"),
	[35] = OP("renameat"), OP("unlinkat"), OP("mkdirat"),
	[38] = OP("symlinkat"), OP("linkat"), FD_OP("msg_ring"),
	[41] = FD_OP("fsetxattr"), OP("setxattr"), FD_OP("fgetxattr"),
	[44] = OP("getxattr"), OP("socket"), FD_OP("uring_cmd"),
	[47] = FD_OP("send_zc"), FD_OP("sendmsg_zc"), FD_OP("read_multishot"),
	[50] = OP("waitid"), OP("futex_wait"), OP("futex_wake"),
	[53] = OP("futex_waitv"), OP("fixed_fd_install"), FD_OP("ftruncate"),
	[56] = FD_OP("bind"), FD_OP("listen"), FD_OP("recv_zc"),
	[59] = FD_OP("epoll_wait"),
};

const struct pl__op_name *pl__op_name(uint8_t opcode)
{
	return opcode < ARRAY_SIZE(pl__op_names) ? &pl__op_names[opcode] : NULL;
}

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
