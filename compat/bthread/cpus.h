/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The processors that -cpu_set names
 */
#ifndef PARKLOT_BTHREAD_CPUS_H
#define PARKLOT_BTHREAD_CPUS_H

#include <sched.h>

#include <string>

namespace bthread {

/*
 * cpus_parse() - @value as bthread has it, "0-3,5" or, by tags, "0:0-3;1:5"
 *
 * The sets of all tags are one here: workers of each get the processors of all.
 * Return: whether it is right, and names one at least.
 */
bool cpus_parse(const std::string &value, cpu_set_t *cpus);

/*
 * While it lives the calling thread runs on these processors, if there are any,
 * and so will the threads that it starts.
 */
class CpusBound {
public:
	explicit CpusBound(const std::string &value);
	~CpusBound();
	explicit operator bool() const { return is_bound; }

private:
	cpu_set_t before;
	bool is_bound;
};

}  // namespace bthread

#endif  // PARKLOT_BTHREAD_CPUS_H
