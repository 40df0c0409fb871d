// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * bthread_list_t: handles of tasks, in the container that bRPC has for them
 */
#include "bthread/bthread.h"
#include "bthread/list_of_abafree_id.h"
#include "bthread/task_group.h"

namespace bthread {

struct TaskIds {
	static const size_t BLOCK_SIZE = 63;
	static const size_t MAX_ENTRIES = 65536;
	static const size_t INIT_GC_SIZE = 65536;
	static const bthread_t ID_INIT = INVALID_BTHREAD;
	static bool exists(bthread_t tid) { return TaskGroup::exists(tid); }
};

typedef ListOfABAFreeId<bthread_t, TaskIds> TaskList;

static TaskList *list_tasks(bthread_list_t *list)
{
	return (TaskList *)list->impl;
}

}  // namespace bthread

extern "C" {

int bthread_list_init(bthread_list_t *list, unsigned, unsigned)
{
	*list = bthread_list_t();
	list->impl = new bthread::TaskList;
	return 0;
}

void bthread_list_destroy(bthread_list_t *list)
{
	delete bthread::list_tasks(list);
	list->impl = nullptr;
}

int bthread_list_add(bthread_list_t *list, bthread_t tid)
{
	return list->impl ? bthread::list_tasks(list)->add(tid) : EINVAL;
}

int bthread_list_stop(bthread_list_t *list)
{
	if (!list->impl)
		return EINVAL;
	bthread::list_tasks(list)->apply([](bthread_t tid) {
		bthread_stop(tid);
	});
	return 0;
}

int bthread_list_join(bthread_list_t *list)
{
	if (!list->impl)
		return EINVAL;
	bthread::list_tasks(list)->apply([](bthread_t &tid) {
		bthread_join(tid, nullptr);
		tid = INVALID_BTHREAD;
	});
	return 0;
}

}  // extern "C"
