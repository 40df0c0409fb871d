// SPDX-License-Identifier: GPL-2.0-only
/*
 * A database of SQLite in a file that 200 tasks write to, each by a connection
 * of its own, so that all but one find it busy
 *
 * Half of the tasks set a busy timeout: SQLite sleeps, and blocks the worker.
 * The others have a busy handler that sleeps by pl_sleep(), and gives up if the
 * task is cancelled; their connections have no mutex, as SQLite's are recursive
 * and belong to a thread.  Each transaction adds 1 to a common counter and to
 * the member's, and leaves a row.  At the end all three are exactly what the
 * tasks saw committed.
 *
 * Its argument is the file.
 */
#include <sqlite3.h>

#include "app.h"

#define BUSY_MS		(int)(app_limit_ns() / NSEC_PER_MSEC)

struct writer {
	sqlite3 *db;
	long nr_done;
};

static struct writer writers[NR_MEMBERS];
static atomic_long nr_done, nr_busy, nr_waits;

static bool waits(uint32_t nr)
{
	return nr % 2;
}

static int sql(sqlite3 *db, const char *text)
{
	return sqlite3_exec(db, text, NULL, NULL, NULL);
}

static void must_sql(sqlite3 *db, const char *text)
{
	if (sql(db, text))
		app_fail("%s: %s", text, sqlite3_errmsg(db));
}

/* Whether to try once more.  @nr: times that it was called for this lock. */
static int wait_for_lock(void *unused, int nr)
{
	(void)unused;
	nr_waits++;
	return !pl_sleep((nr < 10 ? nr + 1 : 10) * NSEC_PER_MSEC);
}

static sqlite3 *open_database(bool has_handler)
{
	sqlite3 *db;

	if (sqlite3_open_v2(app_argument, &db, SQLITE_OPEN_READWRITE |
			    SQLITE_OPEN_CREATE |
			    (has_handler ? SQLITE_OPEN_NOMUTEX : 0), NULL))
		app_fail("%s: %s", app_argument, sqlite3_errmsg(db));
	if (has_handler)
		sqlite3_busy_handler(db, wait_for_lock, NULL);
	else
		sqlite3_busy_timeout(db, BUSY_MS);
	/*
	 * No power is cut here; all would wait for the disk otherwise.  This
	 * reads the database first, and so it waits, too.
	 */
	if (sql(db, "PRAGMA synchronous = off") && !pl_cancelled())
		app_fail("%s", sqlite3_errmsg(db));
	return db;
}

/*
 * By three statements; another task may have the database in between if it is
 * not locked from the start: then BUSY is no reason to wait, but to roll back.
 */
static int transaction(struct member *m, sqlite3 *db)
{
	char text[160];
	int err = sql(db, app_random(&m->seed, 4) ? "BEGIN IMMEDIATE" :
		      "BEGIN; SELECT n FROM counters WHERE id = -1");

	if (!err)
		err = sql(db, "UPDATE counters SET n = n + 1 WHERE id = -1");
	snprintf(text, sizeof(text), "UPDATE counters SET n = n + 1 "
		 "WHERE id = %u; INSERT INTO log VALUES (%u)", m->nr, m->nr);
	if (!err)
		err = sql(db, text);
	if (!err && pl_cancelled())
		err = SQLITE_INTERRUPT;
	return err ? err : sql(db, "COMMIT");
}

static void write_once(struct member *m)
{
	struct writer *w = &writers[m->nr];
	int err;

	if (!w->db)
		w->db = open_database(waits(m->nr));
	err = transaction(m, w->db);
	if (err && err != SQLITE_BUSY && err != SQLITE_INTERRUPT)
		app_fail("%s", sqlite3_errmsg(w->db));
	if (!err) {
		w->nr_done++;
		nr_done++;
		return;
	}
	nr_busy += err == SQLITE_BUSY;
	if (!sqlite3_get_autocommit(w->db))
		must_sql(w->db, "ROLLBACK");
	/* A successor begins with a connection of its own. */
	if (pl_cancelled()) {
		sqlite3_close(w->db);
		w->db = NULL;
	}
}

static void begin(void)
{
	sqlite3 *db;
	char text[96];
	int i;

	if (!app_argument)
		app_fail("the argument is missing: a file");
	memset(writers, 0, sizeof(writers));
	nr_done = nr_busy = nr_waits = 0;
	db = open_database(false);
	must_sql(db, "DROP TABLE IF EXISTS counters");
	must_sql(db, "DROP TABLE IF EXISTS log");
	must_sql(db, "CREATE TABLE counters (id INTEGER PRIMARY KEY, n INTEGER)");
	must_sql(db, "CREATE TABLE log (member INTEGER)");
	must_sql(db, "BEGIN");
	for (i = -1; i < NR_MEMBERS; i++) {
		snprintf(text, sizeof(text),
			 "INSERT INTO counters VALUES (%d, 0)", i);
		must_sql(db, text);
	}
	must_sql(db, "COMMIT");
	sqlite3_close(db);
}

static void check_number(sqlite3 *db, const char *what, int nr, long want)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(db, what, -1, &statement, NULL))
		app_fail("%s: %s", what, sqlite3_errmsg(db));
	sqlite3_bind_int(statement, 1, nr);
	if (sqlite3_step(statement) != SQLITE_ROW)
		app_fail("%s: %s", what, sqlite3_errmsg(db));
	if (sqlite3_column_int64(statement, 0) != want)
		app_fail("%s of %d: %lld, and ought to be %ld", what, nr,
			 (long long)sqlite3_column_int64(statement, 0), want);
	sqlite3_finalize(statement);
}

static void end(void)
{
	sqlite3 *db;
	int i;

	for (i = 0; i < NR_MEMBERS; i++)
		sqlite3_close(writers[i].db);
	db = open_database(false);
	for (i = 0; i < NR_MEMBERS; i++) {
		check_number(db, "SELECT n FROM counters WHERE id = ?", i,
			     writers[i].nr_done);
		check_number(db, "SELECT count(*) FROM log WHERE member = ?",
			     i, writers[i].nr_done);
	}
	check_number(db, "SELECT n FROM counters WHERE id = ?", -1, nr_done);
	check_number(db, "SELECT count(*) FROM pragma_integrity_check "
		     "WHERE integrity_check <> 'ok'", 0, 0);
	sqlite3_close(db);
	printf("sqlite: %ld transactions, %ld found it busy, %ld waits\n",
	       (long)nr_done, (long)nr_busy, (long)nr_waits);
}

static uint32_t flags(uint32_t nr)
{
	return waits(nr) ? 0 : PL_SPAWN_BLOCKING;
}

int main(int argc, char **argv)
{
	static const struct app sqlite = {
		.name = "sqlite", .cancel_ns = 5 * NSEC_PER_MSEC,
		.begin = begin, .work = write_once, .flags = flags, .end = end,
	};

	return app_main(argc, argv, &sqlite);
}
