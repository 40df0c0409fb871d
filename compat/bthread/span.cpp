// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Spans of rpcz: bRPC says how a task inherits one, and how it ends
 */
#include "bthread/bthread.h"
#include "bthread/task_meta.h"
#include "keep_errno.h"

namespace bthread {

void *(*g_create_bthread_span)();
void (*g_rpcz_parent_span_dtor)(void *);
void (*g_end_bthread_span)();

}  // namespace bthread

extern "C" int bthread_set_span_funcs(bthread_create_span_fn create,
				      bthread_destroy_span_fn destroy,
				      bthread_end_span_fn end)
{
	const int nr = !!create + !!destroy + !!end;

	/* All three, or none. */
	if (nr != 0 && nr != 3)
		return bthread::fail(EINVAL);
	bthread::g_create_bthread_span = create;
	bthread::g_rpcz_parent_span_dtor = destroy;
	bthread::g_end_bthread_span = end;
	return 0;
}
