// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * bthread_attr_t: how a task is started
 */
#include <string.h>

#include "bthread/bthread.h"
#include "bthread/task_group.h"

extern "C" {

int bthread_attr_init(bthread_attr_t *attr)
{
	*attr = BTHREAD_ATTR_NORMAL;
	return 0;
}

int bthread_attr_destroy(bthread_attr_t *)
{
	return 0;
}

int bthread_getattr(bthread_t tid, bthread_attr_t *attr)
{
	return bthread::TaskGroup::get_attr(tid, attr);
}

}  // extern "C"

void bthread_attr_set_name(bthread_attr_t *attr, const char *name)
{
	if (!attr)
		return;
	strncpy(attr->name, name, BTHREAD_NAME_MAX_LENGTH);
	attr->name[BTHREAD_NAME_MAX_LENGTH] = '\0';
}
