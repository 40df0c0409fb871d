/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The threads that joined a crew. Without preempt notifiers there can be none:
 * then nothing of this, or of crew.c, is built.
 */
#ifndef PARKLOT_HAND_H
#define PARKLOT_HAND_H

#include <linux/types.h>

struct parklot_roster;
struct parklot_watch;
struct rcu_work;

int parklot_hand_init(void);
void parklot_hand_exit(void);
int parklot_hand_join(struct parklot_roster *roster, u32 slot,
		      const u32 *word);
int parklot_hand_leave(struct parklot_roster *roster, u32 slot);
bool parklot_hand_dismiss(struct parklot_roster *roster);
void parklot_hand_defer(struct rcu_work *work);
struct parklot_watch *parklot_hand_enter(struct parklot_roster *roster);
void parklot_hand_return(struct parklot_watch *watch);

#endif /* PARKLOT_HAND_H */
