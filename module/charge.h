/* SPDX-License-Identifier: GPL-2.0-only */
/* The user and the process that are charged for pages of a space. */
#ifndef PARKLOT_CHARGE_H
#define PARKLOT_CHARGE_H

struct mm_struct;
struct user_struct;

/* Zeroed: nothing is charged. I: set by parklot_charge_take(). */
struct parklot_charge {
	unsigned long		nr_pages;	/* I: number of pages */
	struct mm_struct	*mm;		/* I: shows them as VmPin */
	struct user_struct	*user;		/* I: or NULL: exempt */
};

int parklot_charge_take(struct parklot_charge *charge, unsigned long nr_pages);
void parklot_charge_return(struct parklot_charge *charge);

#endif /* PARKLOT_CHARGE_H */
