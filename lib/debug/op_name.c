/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "debug/op_name.h"
#include "base/base.h"

#define OP(x)		{ false, x }
#define OF_FD(x)	{ true, x }

/*
 * By number: headers of liburing may lack the newest.  Hidden, but not static:
 * gdb looks it up.
 */
extern const struct pl__op_name pl__op_names[];
const struct pl__op_name pl__op_names[] = {
	[0] = OP("nop"), OF_FD("readv"), OF_FD("writev"), OF_FD("fsync"),
	[4] = OF_FD("read_fixed"), OF_FD("write_fixed"), OF_FD("poll"),
	[7] = OP("poll_remove"), OF_FD("sync_file_range"), OF_FD("sendmsg"),
	[10] = OF_FD("recvmsg"), OP("timeout"), OP("timeout_remove"),
	[13] = OF_FD("accept"), OP("async_cancel"), OP("link_timeout"),
	[16] = OF_FD("connect"), OF_FD("fallocate"), OP("openat"),
	[19] = OF_FD("close"), OP("files_update"), OP("statx"),
	[22] = OF_FD("read"), OF_FD("write"), OF_FD("fadvise"), OP("madvise"),
	[26] = OF_FD("send"), OF_FD("recv"), OP("openat2"),
	[29] = OF_FD("epoll_ctl"), OF_FD("splice"), OP("provide_buffers"),
	[32] = OP("remove_buffers"), OF_FD("tee"), OF_FD("shutdown"),
	[35] = OP("renameat"), OP("unlinkat"), OP("mkdirat"),
	[38] = OP("symlinkat"), OP("linkat"), OF_FD("msg_ring"),
	[41] = OF_FD("fsetxattr"), OP("setxattr"), OF_FD("fgetxattr"),
	[44] = OP("getxattr"), OP("socket"), OF_FD("uring_cmd"),
	[47] = OF_FD("send_zc"), OF_FD("sendmsg_zc"), OF_FD("read_multishot"),
	[50] = OP("waitid"), OP("futex_wait"), OP("futex_wake"),
	[53] = OP("futex_waitv"), OP("fixed_fd_install"), OF_FD("ftruncate"),
	[56] = OF_FD("bind"), OF_FD("listen"), OF_FD("recv_zc"),
	[59] = OF_FD("epoll_wait"),
};

const struct pl__op_name *pl__op_name(uint8_t opcode)
{
	return opcode < ARRAY_SIZE(pl__op_names) ? &pl__op_names[opcode] : NULL;
}
