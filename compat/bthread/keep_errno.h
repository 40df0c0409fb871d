/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * errno as bthread has it: what succeeds leaves it alone, and what fails by -1
 * sets it.  parklot's calls return -errno instead.
 */
#ifndef PARKLOT_BTHREAD_KEEP_ERRNO_H
#define PARKLOT_BTHREAD_KEEP_ERRNO_H

#include <parklot.h>

namespace bthread {

class KeepErrno {
public:
	KeepErrno() : was(errno) { }
	~KeepErrno() { errno = was; }

private:
	int was;
};

static inline int fail(int error)
{
	errno = error;
	return -1;
}

}  // namespace bthread

#endif  // PARKLOT_BTHREAD_KEEP_ERRNO_H
