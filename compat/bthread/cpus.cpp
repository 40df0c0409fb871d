// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The processors that -cpu_set names
 */
#include "cpus.h"

#include <errno.h>
#include <stdio.h>

#include <sstream>

#include "butil/errno.h"
#include "butil/logging.h"

namespace bthread {

/* "3" or "0-3" */
static bool cpus_add_range(const std::string &range, cpu_set_t *cpus)
{
	unsigned first, last;
	int end = 0;

	if (sscanf(range.c_str(), " %u - %u %n", &first, &last, &end) != 2) {
		end = 0;
		if (sscanf(range.c_str(), " %u %n", &first, &end) != 1)
			return false;
		last = first;
	}
	if ((size_t)end != range.size() || first > last || last >= CPU_SETSIZE)
		return false;
	for (; first <= last; first++)
		CPU_SET(first, cpus);
	return true;
}

static bool cpus_add(const std::string &list, cpu_set_t *cpus)
{
	std::istringstream in(list);
	std::string range;

	while (std::getline(in, range, ','))
		if (!cpus_add_range(range, cpus))
			return false;
	return true;
}

bool cpus_parse(const std::string &value, cpu_set_t *cpus)
{
	const bool is_by_tags = value.find_first_of(":;") != value.npos;
	std::istringstream in(value);
	std::string part;

	CPU_ZERO(cpus);
	while (std::getline(in, part, ';')) {
		const size_t colon = part.find(':');
		unsigned tag;
		char after;

		if (part.find_first_not_of(' ') == part.npos)
			continue;
		if (is_by_tags && (colon == part.npos ||
		    sscanf(part.c_str(), " %u %c", &tag, &after) != 2 ||
		    after != ':'))
			return false;
		if (!cpus_add(is_by_tags ? part.substr(colon + 1) : part,
			      cpus))
			return false;
	}
	return CPU_COUNT(cpus) > 0;
}

CpusBound::CpusBound(const std::string &value) : is_bound(false)
{
	cpu_set_t cpus;

	if (value.empty() || !cpus_parse(value, &cpus))
		return;
	is_bound = !sched_getaffinity(0, sizeof(before), &before) &&
		   !sched_setaffinity(0, sizeof(cpus), &cpus);
	LOG_IF(ERROR, !is_bound) << "-cpu_set=" << value << " cannot be had: "
		<< berror();
}

CpusBound::~CpusBound()
{
	if (is_bound)
		sched_setaffinity(0, sizeof(before), &before);
}

}  // namespace bthread
