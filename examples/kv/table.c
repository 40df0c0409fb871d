// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Keys, values, and when they expire
 *
 * A shard is a part of the table with a lock of its own.  A key that expires
 * has a timer.  The timer's callback must not wait, not even for the lock; so
 * it spawns a task, which may.
 *
 *	timer thread		a task			any command
 *	entry_expire(e)
 *	  pl_spawn		entry_expired(e)
 *				  lock			  lock
 *				  is it in the table?	  remove e
 *				  is its time over?	  pl_timer_del: too late
 *				  remove e		  unlock
 *				  its reference goes
 *
 * So an entry is freed with the last of two references: the table's, and that
 * of a timer which has not been deleted in time.  Both are the lock's.
 */
#include "kv.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SHARD_BITS	6
#define NR_SHARDS	(1 << SHARD_BITS)

static struct shard {
	struct pl_mutex	mutex;		/* of all below */
	struct entry	**buckets;
	size_t		nr_buckets;	/* a power of two */
	_Atomic uint64_t nr;		/* entries; read without the mutex */
} __attribute__((aligned(64))) shards[NR_SHARDS];

static struct pl_once is_seeded;
static uint64_t seed;

/* So that a client cannot choose keys which collide. */
static void table_seed(void *unused)
{
	(void)unused;
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = pl_now();
}

static uint64_t table_hash(struct str key)
{
	uint64_t hash = seed;
	size_t i;

	for (i = 0; i < key.len; i++)
		hash = (hash ^ (unsigned char)key.at[i]) * 0x100000001b3;
	hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 29;
}

struct shard *table_lock(struct str key, uint64_t *hash)
{
	struct shard *s;

	pl_once(&is_seeded, table_seed, NULL);
	*hash = table_hash(key);
	s = &shards[*hash >> (64 - SHARD_BITS)];
	pl_mutex_lock(&s->mutex);
	return s;
}

void table_unlock(struct shard *s)
{
	pl_mutex_unlock(&s->mutex);
}

static void entry_put(struct entry *e)
{
	if (--e->refs)
		return;
	buf_free(&e->value);
	free(e);
}

static struct entry **table_bucket(struct shard *s, uint64_t hash)
{
	return &s->buckets[hash & (s->nr_buckets - 1)];
}

/* One that has expired is not there, even if its timer is late. */
struct entry *table_find(struct shard *s, uint64_t hash, struct str key)
{
	struct entry *e;

	if (!s->nr_buckets)
		return NULL;
	for (e = *table_bucket(s, hash); e; e = e->next)
		if (e->hash == hash && e->key.len == key.len &&
		    !memcmp(e->key.at, key.at, key.len))
			break;
	if (e && e->expires_ns != PL_FOREVER && e->expires_ns <= pl_now()) {
		table_remove(s, e);
		return NULL;
	}
	return e;
}

/* As many buckets as entries, or more. */
static int table_grow(struct shard *s)
{
	struct shard larger = { .nr_buckets = 2 * s->nr_buckets ?: 16 };
	struct entry *e, **bucket;
	size_t i;

	if (s->nr < s->nr_buckets)
		return 0;
	larger.buckets = calloc(larger.nr_buckets, sizeof(*larger.buckets));
	if (!larger.buckets)
		return s->nr_buckets ? 0 : -ENOMEM;
	for (i = 0; i < s->nr_buckets; i++)
		while ((e = s->buckets[i])) {
			s->buckets[i] = e->next;
			bucket = table_bucket(&larger, e->hash);
			e->next = *bucket;
			*bucket = e;
		}
	free(s->buckets);
	s->buckets = larger.buckets;
	s->nr_buckets = larger.nr_buckets;
	return 0;
}

struct entry *table_add(struct shard *s, uint64_t hash, struct str key)
{
	struct entry *e, **bucket;

	if (table_grow(s))
		return NULL;
	e = calloc(1, sizeof(*e) + key.len);
	if (!e)
		return NULL;
	e->hash = hash;
	e->expires_ns = PL_FOREVER;
	e->refs = 1;
	memcpy(e->bytes, key.at, key.len);
	e->key = (struct str){ e->bytes, key.len };
	bucket = table_bucket(s, hash);
	e->next = *bucket;
	*bucket = e;
	s->nr++;
	return e;
}

/* The table's reference is still there. */
static void entry_disarm(struct entry *e)
{
	/* Not 0: it has fired, and its reference goes with its task. */
	if (e->timer && !pl_timer_del(e->timer))
		e->refs--;
	e->timer = 0;
	e->expires_ns = PL_FOREVER;
}

void table_remove(struct shard *s, struct entry *e)
{
	struct entry **link = table_bucket(s, e->hash);

	while (*link != e)
		link = &(*link)->next;
	*link = e->next;
	s->nr--;
	e->is_removed = true;
	entry_disarm(e);
	entry_put(e);
}

static void entry_expired(void *entry)
{
	struct entry *e = entry;
	struct shard *s = &shards[e->hash >> (64 - SHARD_BITS)];

	pl_mutex_lock(&s->mutex);
	if (!e->is_removed && e->expires_ns <= pl_now())
		table_remove(s, e);
	entry_put(e);
	pl_mutex_unlock(&s->mutex);
}

static void entry_expire(void *entry)
{
	int ret = pl_spawn(NULL, entry_expired, entry, NULL);

	/*
	 * Short of memory: once more, a little later, for the same reference.
	 * Should even that fail the next command for the key removes it.
	 */
	if (ret && ret != -ECANCELED)
		pl_timer_add(NULL, pl_now() + SEC_NS / 100, entry_expire,
			     entry);
}

int table_set_expiry(struct entry *e, uint64_t expires_ns)
{
	pl_timer_t timer = 0;
	int ret;

	if (expires_ns != PL_FOREVER) {
		ret = pl_timer_add(&timer, expires_ns, entry_expire, e);
		if (ret)
			return ret;
		e->refs++;
	}
	entry_disarm(e);
	e->timer = timer;
	e->expires_ns = expires_ns;
	return 0;
}

uint64_t table_size(void)
{
	uint64_t nr = 0;
	int i;

	for (i = 0; i < NR_SHARDS; i++)
		nr += shards[i].nr;
	return nr;
}
