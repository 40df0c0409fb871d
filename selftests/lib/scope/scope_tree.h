/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scopes in scopes: each node is a task with a scope of its own, each leaf a
 * task that sleeps until it is cancelled.  rt.h is included before this.
 */
#ifndef SELFTESTS_SCOPE_TREE_H
#define SELFTESTS_SCOPE_TREE_H

struct tree {
	int		depth, width;
	bool		is_stopped;	/* by the runtime, not by a cancel */
	atomic_int	nr, nr_asleep, nr_inside;
};

struct node {
	struct tree	*tree;
	int		depth;
};

static inline intptr_t tree_leaf(struct tree *t)
{
	int ret;

	atomic_fetch_add(&t->nr_asleep, 1);
	ret = pl_sleep_until(PL_FOREVER);
	EXPECT_EQ(-ECANCELED, ret);
	return ret;
}

static intptr_t tree_grow(void *arg);

static inline void tree_branch(struct tree *t, int depth)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct node n = { t, depth - 1 };
	int i, ret;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	for (i = 0; i < t->width; i++) {
		ret = pl_scope_spawn(&s, NULL, tree_grow, &n, NULL);
		EXPECT_EQ(0, ret);
	}
	ret = pl_scope_leave(&s);
	EXPECT_TRUE(ret == -ECANCELED || (t->is_stopped && !ret));
}

static intptr_t tree_grow(void *arg)
{
	struct node *n = arg;
	struct tree *t = n->tree;
	int ret = 0;

	atomic_fetch_add(&t->nr_inside, 1);
	atomic_fetch_add(&t->nr, 1);
	if (n->depth)
		tree_branch(t, n->depth);
	else
		ret = (int)tree_leaf(t);
	atomic_fetch_sub(&t->nr_inside, 1);
	return ret;
}

/* The root; @arg is the tree. */
static inline intptr_t tree_node(void *arg)
{
	struct tree *t = arg;
	struct node n = { t, t->depth };

	return tree_grow(&n);
}

#endif /* SELFTESTS_SCOPE_TREE_H */
