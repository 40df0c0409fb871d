/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A system call that is forbidden to the calling thread, and to the threads and
 * processes that it starts from then on, as filters of containers do
 */
#ifndef SELFTESTS_FORBID_H
#define SELFTESTS_FORBID_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* @flags: SECCOMP_FILTER_FLAG_TSYNC: to all threads of the process. */
static inline bool forbid_call_by(long call, int err, unsigned long flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

/* False: this kernel has no seccomp. */
static inline bool forbid_call(long call, int err)
{
	return forbid_call_by(call, err, 0);
}

/* Also to the threads that run already. */
static inline bool forbid_call_now(long call, int err)
{
	return forbid_call_by(call, err, SECCOMP_FILTER_FLAG_TSYNC);
}

#endif /* SELFTESTS_FORBID_H */
