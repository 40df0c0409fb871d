/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The C++ runtimes of the process: whatever object defines
 * __cxa_get_globals(), found in the objects' own symbol tables.  dlsym() would
 * wait for a dlopen() elsewhere, constructors and all, and does not see what
 * was loaded with RTLD_LOCAL.
 *
 * A runtime that is found may still be about to be relocated.  To pin it, by
 * dlopen(), waits until it is loaded, so a runtime is known only afterwards;
 * one worker does that, once for each runtime.
 */
#include "ctx/cxx.h"
#include "base/atfork.h"
#include "base/sys.h"
#include "base/lock.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <string.h>

#define NAME		"__cxa_get_globals"
#define WAIT_NS		(10 * 1000 * 1000)

typedef struct pl__cxx_globals *(*get_fn)(void);

/* A static program has it or not; it has dlopen(), of which ld would warn. */
struct pl__cxx_globals *__cxa_get_globals(void) __attribute__((weak));
#pragma weak dl_iterate_phdr
#pragma weak dlsym

static void *(*open_object)(const char *file, int mode);
static int (*object_info)(void *handle, int request, void *out);

/* B: the thread that set is_busy. */
static get_fn getters[PL__CXX_RUNTIMES];	/* B; read below nr_getters */
static _Atomic uint32_t nr_getters;		/* B writes; any thread reads */
static _Atomic uint64_t nr_loads_seen;		/* B writes; any thread reads */
static struct link_map *last;			/* B: is never unloaded */
static char name[PATH_MAX];			/* B: of an object */
static _Atomic bool is_busy;

static _Atomic(void *) never, always = &always;
_Atomic(void *) *_Atomic pl__cxx_link = &never;

/* What pl__cxx_link is without hooks. */
static _Atomic(void *) *_Atomic own_link = &never;	/* B writes */
static _Atomic bool has_hooks;

static void cxx_set_link(_Atomic(void *) *link)
{
	store_relaxed(&own_link, link);
	atomic_store(&pl__cxx_link, link);
	if (atomic_load(&has_hooks))
		store_relaxed(&pl__cxx_link, &always);
}

/* Whichever link is stored last, its thread has seen has_hooks. */
void pl__cxx_be_due(void)
{
	atomic_store(&has_hooks, true);
	atomic_store(&pl__cxx_link, &always);
}

/* ---- an object's symbols ---- */

struct object {
	const ElfW(Sym)		*syms;
	const char		*strings;
	const uint32_t		*hashes;	/* DT_GNU_HASH, or NULL */
};

static const ElfW(Phdr) *object_segment(const struct dl_phdr_info *info,
					uint32_t type)
{
	uint32_t i;

	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == type)
			return &info->dlpi_phdr[i];
	return NULL;
}

/* The loader relocates some of the addresses in the dynamic section. */
static bool object_read(const struct dl_phdr_info *info, struct object *o)
{
	const ElfW(Phdr) *ph = object_segment(info, PT_DYNAMIC);
	const ElfW(Dyn) *d;
	uintptr_t at;

	*o = (struct object){ NULL, NULL, NULL };
	if (!ph)
		return false;
	for (d = (void *)(info->dlpi_addr + ph->p_vaddr); d->d_tag; d++) {
		at = d->d_un.d_ptr;
		if (at < info->dlpi_addr)
			at += info->dlpi_addr;
		if (d->d_tag == DT_SYMTAB)
			o->syms = (void *)at;
		else if (d->d_tag == DT_STRTAB)
			o->strings = (void *)at;
		else if (d->d_tag == DT_GNU_HASH)
			o->hashes = (void *)at;
	}
	return o->syms && o->strings && o->hashes;
}

static uint32_t object_hash(const char *s)
{
	uint32_t hash = 5381;

	for (; *s; s++)
		hash = hash * 33 + (unsigned char)*s;
	return hash;
}

/* The definition of NAME; its value is 0 if there is none. */
static ElfW(Addr) object_find(const struct object *o)
{
	uint32_t nr_buckets = o->hashes[0], first = o->hashes[1];
	uint32_t nr_words = o->hashes[2] * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *buckets = o->hashes + 4 + nr_words;
	const uint32_t *chain = buckets + nr_buckets;
	uint32_t hash = object_hash(NAME), i;

	i = nr_buckets ? buckets[hash % nr_buckets] : 0;
	if (i < first)
		return 0;
	for (;; i++) {
		if ((chain[i - first] | 1) == (hash | 1) &&
		    o->syms[i].st_shndx != SHN_UNDEF &&
		    !strcmp(o->strings + o->syms[i].st_name, NAME))
			return o->syms[i].st_value;
		if (chain[i - first] & 1)
			return 0;
	}
}

/* ---- all objects ---- */

static int cxx_read_loads(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64_t *nr = arg;

	(void)size;
	*nr = info->dlpi_adds;
	return 1;
}

static uint64_t cxx_nr_loads(void)
{
	uint64_t nr = 0;

	dl_iterate_phdr(cxx_read_loads, &nr);
	return nr;
}

static bool cxx_is_known(get_fn get)
{
	uint32_t i;

	for (i = 0; i < load_relaxed(&nr_getters); i++)
		if (getters[i] == get)
			return true;
	return false;
}

static int cxx_find_next(struct dl_phdr_info *info, size_t size, void *arg)
{
	get_fn *found = arg;
	struct object o;
	ElfW(Addr) value;

	(void)size;
	value = object_read(info, &o) ? object_find(&o) : 0;
	if (!value)
		return 0;
	*found = (get_fn)(info->dlpi_addr + value);
	if (cxx_is_known(*found) || strlen(info->dlpi_name) >= sizeof(name))
		return 0;
	strcpy(name, info->dlpi_name);
	return 1;
}

static void *cxx_pin(void)
{
	return open_object(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Adds a runtime, unless its words are those of one that is known. */
static void cxx_add(get_fn get)
{
	uint32_t nr = load_relaxed(&nr_getters), i;

	for (i = 0; i < nr; i++)
		if (getters[i]() == get())
			return;
	getters[nr] = get;
	store_release(&nr_getters, nr + 1);
}

static void cxx_find_all(void)
{
	get_fn get;

	while (load_relaxed(&nr_getters) < PL__CXX_RUNTIMES &&
	       dl_iterate_phdr(cxx_find_next, &get)) {
		/* The program itself has no name, and stays. */
		if (*name && !cxx_pin())
			return;
		cxx_add(get);
		if (!cxx_is_known(get))
			return;
	}
}

/* ---- the link ---- */

/* Objects that the C library loads by itself, and keeps. */
static bool cxx_is_of_libc(const char *path)
{
	static const char *const parts[] = {
		"/libnss_", "/libgcc_s.so", "/libresolv.so", "/gconv/",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(path, parts[i]))
			return true;
	return false;
}

/* With the list locked. */
static int cxx_name_next(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct link_map *next = last->l_next;

	(void)info;
	(void)size;
	(void)arg;
	if (!next || !cxx_is_of_libc(next->l_name) ||
	    strlen(next->l_name) >= sizeof(name))
		return -1;
	strcpy(name, next->l_name);
	return 1;
}

static struct link_map *cxx_map_of(void *handle)
{
	struct link_map *map = NULL;

	if (!handle || object_info(handle, RTLD_DI_LINKMAP, &map))
		return NULL;
	return map;
}

static void cxx_watch_from(struct link_map *map)
{
	last = map;
	cxx_set_link((_Atomic(void *) *)&last->l_next);
}

/* Moves `last' past objects that stay: a later one changes the link again. */
static void cxx_settle(void)
{
	struct link_map *map;

	while (dl_iterate_phdr(cxx_name_next, NULL) > 0) {
		map = cxx_map_of(cxx_pin());
		if (!map || map != last->l_next)
			return;
		cxx_watch_from(map);
	}
}

/* ---- looking ---- */

static void cxx_wait_for_other(void)
{
	uint64_t end = pl__now_ns() + WAIT_NS;

	while (load_acquire(&is_busy) && pl__now_ns() < end)
		pl__sched_yield();
}

static void cxx_look(void)
{
	uint64_t nr = cxx_nr_loads();

	if (nr == load_acquire(&nr_loads_seen))
		return;
	if (atomic_exchange(&is_busy, true)) {
		/* Not for ever: a constructor may wait for this worker. */
		cxx_wait_for_other();
		return;
	}
	cxx_find_all();
	if (load_relaxed(&nr_getters))
		cxx_set_link(&always);
	else
		cxx_settle();
	store_release(&nr_loads_seen, nr);
	store_release(&is_busy, false);
}

static void cxx_atfork_child(void)
{
	atomic_store(&is_busy, false);
}

PL_ATFORK_CHILD(cxx_atfork_child);

static int cxx_read_interp(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	return object_segment(info, PT_INTERP) ? 1 : -1;
}

static bool cxx_can_load(void)
{
	if (!dl_iterate_phdr || !dlsym ||
	    dl_iterate_phdr(cxx_read_interp, NULL) < 0)
		return false;
	*(void **)&open_object = dlsym(RTLD_DEFAULT, "dlopen");
	*(void **)&object_info = dlsym(RTLD_DEFAULT, "dlinfo");
	return open_object && object_info;
}

/* Objects loaded at the start stay; so do those loaded with the library. */
static void __attribute__((constructor)) cxx_find_last(void)
{
	struct link_map *map;

	if (!cxx_can_load())
		return;
	map = cxx_map_of(open_object(NULL, RTLD_LAZY));
	if (!map)
		return;
	while (map->l_next)
		map = map->l_next;
	if (strlen(map->l_name) >= sizeof(name))
		return;
	strcpy(name, map->l_name);
	if (cxx_pin())
		cxx_watch_from(map);
}

void pl__cxx_init(void)
{
	if (load_relaxed(&nr_getters))
		return;
	if (last)
		cxx_look();
	if (__cxa_get_globals && !load_relaxed(&nr_getters)) {
		cxx_add(__cxa_get_globals);
		cxx_set_link(&always);
	}
}

/* ---- switching ---- */

void pl__cxx_save(struct pl__cxx *c)
{
	struct pl__cxx_globals *g;
	uint32_t i;

	if (unlikely(!load_relaxed(&nr_getters)) &&
	    load_relaxed(load_relaxed(&own_link)))
		cxx_look();
	c->nr = load_acquire(&nr_getters);
	for (i = 0; i < c->nr; i++) {
		g = getters[i]();
		c->of[i] = *g;
		*g = (struct pl__cxx_globals){ NULL, 0 };
	}
}

void pl__cxx_restore(const struct pl__cxx *c)
{
	uint32_t i;

	for (i = 0; i < c->nr; i++)
		*getters[i]() = c->of[i];
}

struct hook {
	void			*(*save)(void);
	void			(*restore)(void *state);
	void			(*drop)(void *state);
};

/* L: written under the lock, before pl__nr_hooks counts it; then read-only. */
static struct hook hooks[PL_HOOKS_MAX];		/* L */
_Atomic uint32_t pl__nr_hooks;			/* L; any thread reads */
static struct pl__lock hooks_lock;

/* The thread that held the lock at the fork does not exist in the child. */
static void hook_atfork_child(void)
{
	hooks_lock = (struct pl__lock){ 0 };
}

PL_ATFORK_CHILD(hook_atfork_child);

int pl_hook_add(void *(*save)(void), void (*restore)(void *state),
		void (*drop)(void *state))
{
	uint32_t nr;

	if (!save || !restore)
		return -EINVAL;
	pl__lock(&hooks_lock);
	nr = load_relaxed(&pl__nr_hooks);
	if (nr < PL_HOOKS_MAX) {
		hooks[nr] = (struct hook){ save, restore, drop };
		store_release(&pl__nr_hooks, nr + 1);
	}
	pl__unlock(&hooks_lock);
	if (nr == PL_HOOKS_MAX)
		return -EAGAIN;
	pl__cxx_be_due();
	return 0;
}

void pl__hooks_save(struct pl__hook_states *s)
{
	uint32_t i;

	s->nr = load_acquire(&pl__nr_hooks);
	for (i = 0; i < s->nr; i++)
		s->of[i] = hooks[i].save();
}

void pl__hooks_restore(const struct pl__hook_states *s)
{
	uint32_t i;

	for (i = s->nr; i--;)
		hooks[i].restore(s->of[i]);
}

void pl__hooks_drop(void)
{
	uint32_t nr = load_acquire(&pl__nr_hooks), i;
	void *state;

	for (i = 0; i < nr; i++) {
		state = hooks[i].save();
		if (hooks[i].drop)
			hooks[i].drop(state);
	}
}
