/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon_report: reports that max_workers workers are blocked while tasks wait
 */
#ifndef PL_SYSMON_REPORT_H
#define PL_SYSMON_REPORT_H

#include "base/base.h"

/* Called as sysmon starts: forgets the last report. */
void pl__sysmon_report_reset(void);

/*
 * Called by sysmon: counts, and prints once, that no worker is left to notify.
 */
void pl__sysmon_report(uint64_t now, bool has_work);

#endif /* PL_SYSMON_REPORT_H */
