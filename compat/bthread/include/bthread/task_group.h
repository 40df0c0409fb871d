/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The calling task and its like, in place of bRPC's header of this name.
 * bRPC's sources ask for tls_task_group: whether they are in a task, and in
 * which.  There is one group here, the same for all tasks.
 */
#ifndef BTHREAD_TASK_GROUP_H
#define BTHREAD_TASK_GROUP_H

#include <exception>

#include "bthread/task_control.h"
#include "bthread/task_meta.h"

namespace bthread {

/* Ends a task, see bthread_exit(). */
class ExitException : public std::exception {
public:
	explicit ExitException(void *v) : _value(v) { }
	const char *what() const noexcept override { return "ExitException"; }
	void *value() const { return _value; }

private:
	void *_value;
};

class TaskGroup {
public:
	TaskMeta *current_task() const;
	bthread_t current_tid() const { return pl_self(); }
	bool is_current_main_task() const { return false; }
	bool is_current_pthread_task() const;
	bthread_tag_t tag() const;
	TaskControl *control() const;

	/* A hint of bRPC's mutex: it spins for a moment if this is 0. */
	size_t rq_size() const { return 0; }

	/* NULL: a task of that slot never began. */
	static TaskMeta *address_meta(bthread_t tid);
	static bool exists(bthread_t tid);
	static int get_attr(bthread_t tid, bthread_attr_t *attr);
	static void set_stopped(bthread_t tid);
	static bool is_stopped(bthread_t tid);
	static int interrupt(bthread_t tid, TaskControl *control);
	static int join(bthread_t tid, void **value);
};

/* NULL outside of tasks. */
EXTERN_BAIDU_VOLATILE_THREAD_LOCAL(TaskGroup *, tls_task_group);

}  // namespace bthread

#endif  // BTHREAD_TASK_GROUP_H
