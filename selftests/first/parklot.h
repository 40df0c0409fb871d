/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The first header of all, commit d7bc177 of this repository, without its
 * comments: programs that were built with it run on every later library of its
 * soname.
 */
#ifndef PARKLOT_H
#define PARKLOT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#define PARKLOT_VERSION "0.1.0"
#if defined(__GNUC__)
#define PL_API __attribute__((visibility("default")))
#else
#define PL_API
#endif
#ifdef __cplusplus
#define PL_ATOMIC_U32 uint32_t
extern "C" {
#else
#define PL_ATOMIC_U32 _Atomic uint32_t
#endif
#define PL_FOREVER UINT64_MAX
enum pl_backend {
	PL_BACKEND_AUTO,
	PL_BACKEND_MODULE,
	PL_BACKEND_FUTEX,
};
enum pl_stack {
	PL_STACK_NORMAL,
	PL_STACK_SMALL,
	PL_STACK_LARGE,
	PL_STACK_WORKER,
};
struct pl_config {
	size_t size;
	uint32_t nr_workers;
	uint32_t max_workers;
	uint32_t nr_lots;
	uint32_t nr_timer_buckets;
	uint32_t backend;
	uint32_t flags;
	size_t stack_size[3];
	uint32_t min_workers;
	uint32_t reserved;
	void (*worker_start)(void *arg);
	void *worker_start_arg;
};
#ifdef __cplusplus
#define PL__SIZED(type) type { sizeof(type) }
#else
#define PL__SIZED(type) (type){ .size = sizeof(type) }
#endif
#define PL_CONFIG_INIT PL__SIZED(struct pl_config)
PL_API int pl_runtime_start(const struct pl_config *cfg);
PL_API int pl_runtime_stop(void);
PL_API enum pl_backend pl_runtime_backend(void);
struct pl_stat {
	size_t size;
	uint64_t tasks_spawned;
	uint64_t tasks_ended;
	uint64_t switches;
	uint64_t steals;
	uint64_t parks;
	uint64_t wakes;
	uint64_t wakes_empty;
	uint64_t timers_added;
	uint64_t timers_fired;
	uint64_t timers_deleted;
	uint64_t timer_busy_ns;
	uint64_t io_submitted;
	uint64_t io_completed;
	uint32_t backend;
	uint32_t workers;
	uint32_t workers_running;
	uint32_t workers_parked;
	uint32_t workers_blocked;
	uint32_t tasks_alive;
	uint32_t timers_alive;
	uint32_t io_in_flight;
	uint64_t stacks_unguarded;
	uint64_t io_enters;
};
#define PL_STAT_INIT PL__SIZED(struct pl_stat)
PL_API int pl_stat_read(struct pl_stat *st);
struct pl_stat_worker {
	size_t size;
	uint64_t cpu_ns;
	uint64_t switches;
	uint64_t steals;
	uint64_t parks;
	uint64_t signals;
	uint64_t nosignals;
	uint64_t tasks_ended;
	uint32_t lot;
	uint32_t reserved;
};
#define PL_STAT_WORKER_INIT PL__SIZED(struct pl_stat_worker)
PL_API int pl_stat_worker(uint32_t i, struct pl_stat_worker *st);
typedef uint64_t pl_task_t;
#define PL_SPAWN_URGENT (1U << 0)
#define PL_SPAWN_NOSIGNAL (1U << 1)
struct pl_spawn_opts {
	size_t size;
	uint32_t stack;
	uint32_t flags;
	const char *name;
};
#define PL_SPAWN_OPTS_INIT PL__SIZED(struct pl_spawn_opts)
PL_API int pl_spawn(pl_task_t *out, void (*fn)(void *arg), void *arg,

		const struct pl_spawn_opts *opts);
PL_API int pl_spawn_many(pl_task_t *out, size_t nr, void (*fn)(void *arg),
				void *const *args,
		const struct pl_spawn_opts *opts);
PL_API int pl_flush(void);
PL_API void pl_exit(void);
PL_API int pl_join(pl_task_t t);
PL_API int pl_join_until(pl_task_t t, uint64_t deadline_ns);
PL_API pl_task_t pl_self(void);
PL_API void pl_yield(void);
PL_API int pl_sleep(uint64_t ns);
PL_API int pl_sleep_until(uint64_t deadline_ns);
PL_API int pl_interrupt(pl_task_t t);
PL_API int pl_cancel(pl_task_t t);
PL_API bool pl_cancelled(void);
PL_API uint64_t pl_now(void);
typedef uint64_t pl_timer_t;
PL_API int pl_timer_add(pl_timer_t *out, uint64_t deadline_ns,
			void (*fn)(void *arg), void *arg);
PL_API int pl_timer_del(pl_timer_t t);
struct pl_word {
	PL_ATOMIC_U32 value;
	uint32_t reserved;
};
PL_API int pl_word_wait(struct pl_word *w, uint32_t expected,
			uint64_t deadline_ns);
PL_API int pl_word_wake(struct pl_word *w, uint32_t nr);
PL_API int pl_word_requeue(struct pl_word *from, struct pl_word *to,
						uint32_t nr_wake,
		uint32_t nr_move);
#ifdef __cplusplus
}
static_assert(sizeof(struct pl_word) == 8, "layout is shared with C");
static inline uint32_t pl_word_load(const struct pl_word *w)
{
	return __atomic_load_n(&w->value, __ATOMIC_SEQ_CST);
}
static inline void pl_word_store(struct pl_word *w, uint32_t value)
{
	__atomic_store_n(&w->value, value, __ATOMIC_SEQ_CST);
}
static inline uint32_t pl_word_add(struct pl_word *w, uint32_t n)
{
	return __atomic_fetch_add(&w->value, n, __ATOMIC_SEQ_CST);
}
extern "C" {
#else
_Static_assert(sizeof(struct pl_word) == 8, "layout is shared with C++");
_Static_assert(sizeof(PL_ATOMIC_U32) == 4, "layout is shared with C++");
#endif
struct pl_mutex {
	struct pl_word word;
	uint64_t reserved;
};
struct pl_cond {
	struct pl_word seq;
	void *mutex;
};
#define PL_MUTEX_INIT { { 0, 0 }, 0 }
#define PL_COND_INIT { { 0, 0 }, 0 }
PL_API void pl_mutex_lock(struct pl_mutex *m);
PL_API int pl_mutex_trylock(struct pl_mutex *m);
PL_API int pl_mutex_lock_until(struct pl_mutex *m, uint64_t deadline_ns);
PL_API void pl_mutex_unlock(struct pl_mutex *m);
PL_API int pl_cond_wait(struct pl_cond *c, struct pl_mutex *m);
PL_API int pl_cond_wait_until(struct pl_cond *c, struct pl_mutex *m,

		uint64_t deadline_ns);
PL_API void pl_cond_signal(struct pl_cond *c);
PL_API void pl_cond_broadcast(struct pl_cond *c);
PL_API ssize_t pl_read(int fd, void *buf, size_t n);
PL_API ssize_t pl_read_until(int fd, void *buf, size_t n, uint64_t deadline_ns);
PL_API ssize_t pl_write(int fd, const void *buf, size_t n);
PL_API ssize_t pl_write_until(int fd, const void *buf, size_t n,

		uint64_t deadline_ns);
PL_API ssize_t pl_recv(int fd, void *buf, size_t n, int flags);
PL_API ssize_t pl_recv_until(int fd, void *buf, size_t n, int flags,

		uint64_t deadline_ns);
PL_API ssize_t pl_send(int fd, const void *buf, size_t n, int flags);
PL_API ssize_t pl_send_until(int fd, const void *buf, size_t n, int flags,

		uint64_t deadline_ns);
PL_API int pl_accept(int fd, struct sockaddr *addr, socklen_t *len, int flags);
PL_API int pl_accept_until(int fd, struct sockaddr *addr, socklen_t *len,
						int flags,
		uint64_t deadline_ns);
PL_API int pl_connect(int fd, const struct sockaddr *addr, socklen_t len);
PL_API int pl_connect_until(int fd, const struct sockaddr *addr, socklen_t len,
							uint64_t deadline_ns);
PL_API int pl_close(int fd);
struct io_uring_sqe;
PL_API void pl_io_sqe_init(struct io_uring_sqe *sqe);
PL_API int pl_io_wait(struct io_uring_sqe *sqe, uint64_t deadline_ns);
#ifdef __cplusplus
}
#endif
#endif
