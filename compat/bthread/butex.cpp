// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * butex: a word of parklot's.  Its memory is never given back, as bthread's is
 * not: a waker may touch a butex that its last waiter has destroyed.
 */
#include "bthread/butex.h"

#include "butil/logging.h"
#include "butil/object_pool.h"
#include "deadline.h"
#include "keep_errno.h"

namespace bthread {

struct BAIDU_CACHELINE_ALIGNMENT Butex {
	struct pl_word word;
};

static pl_word *butex_word(void *butex)
{
	return (struct pl_word *)butex;
}

static int butex_wake_up_to(void *butex, uint32_t nr)
{
	KeepErrno keep;

	return pl_word_wake(butex_word(butex), nr);
}

void *butex_create()
{
	Butex *b = butil::get_object<Butex>();

	return b ? &b->word.value : nullptr;
}

void butex_destroy(void *butex)
{
	if (butex)
		butil::return_object((Butex *)butex);
}

int butex_wake(void *butex, bool)
{
	return butex_wake_up_to(butex, 1);
}

int butex_wake_n(void *butex, size_t n, bool)
{
	return butex_wake_up_to(butex, n && n < UINT32_MAX ? n : UINT32_MAX);
}

int butex_wake_all(void *butex, bool)
{
	return butex_wake_up_to(butex, UINT32_MAX);
}

int butex_wake_except(void *butex, bthread_t excluded)
{
	LOG_IF(ERROR, excluded) << "butex_wake_except: parklot cannot leave "
		"out bthread " << excluded << ", and wakes it, too";
	return butex_wake_up_to(butex, UINT32_MAX);
}

int butex_requeue(void *from, void *to)
{
	KeepErrno keep;

	/* Of those that it counts only the first was woken. */
	return pl_word_requeue(butex_word(from), butex_word(to), 1,
			       UINT32_MAX) > 0;
}

/* bthread's mutex would have a waiter that lost once go first: prepend. */
int butex_wait(void *butex, int expected, const timespec *abstime, bool)
{
	const int was = errno;
	const int err = pl_word_wait(butex_word(butex), (uint32_t)expected,
				     to_deadline(abstime));

	if (err)
		return fail(-err);
	errno = was;
	return 0;
}

}  // namespace bthread
