/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon_report: all workers that there may be are blocked, and tasks wait
 */
#ifndef PL_SYSMON_REPORT_H
#define PL_SYSMON_REPORT_H

#include "base/base.h"

/* As sysmon starts: nothing was said. */
void pl__sysmon_report_reset(void);

/* By sysmon: counts, and says once, that nobody is left to be notified. */
void pl__sysmon_report(uint64_t now, bool has_work);

#endif /* PL_SYSMON_REPORT_H */
