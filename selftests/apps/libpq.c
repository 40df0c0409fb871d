// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transfers between accounts in PostgreSQL, by 200 tasks and a pool of
 * connections, while tasks are cancelled and the server is restarted
 *
 * A third of the tasks is spawned as one that blocks, and calls PQexecParams();
 * a third does so in pl_blocking(); the others send the query and wait for the
 * answer by pl_poll(), some with a deadline that is near.  Each transfer is one
 * transaction, and leaves a row in a ledger.  At the end the rows of the ledger
 * are those of the transfers that a task knows to be committed, and those for
 * which the answer to COMMIT was lost, and no others; and each account has what
 * the ledger says.
 *
 * Halfway through the second round it prints "restart", and reads a line once
 * that was done.  libpq's environment says where the server is.
 */
#include <libpq-fe.h>
#include <poll.h>

#include "app.h"

#define NR_CONNECTIONS	24
#define NR_ACCOUNTS	50
#define START_BALANCE	100
#define MOST_TRANSFERS	20000		/* of a member */
#define MOST_AMOUNT	50
#define ENOUGH		200		/* transfers after the restart */

enum outcome {
	UNKNOWN,			/* there was no such transfer */
	NOT_DONE,
	MAYBE,
	DONE,
	SEEN,				/* in the ledger, when that is read */
};

enum kind { SPAWNED_BLOCKING, IN_BLOCKING, WAITS, NR_KINDS };

struct transfer {
	enum kind kind;
	PGconn *conn;
	uint64_t *seed;
	uint64_t deadline_ns;		/* of each wait */
	char member[12], seq[12], from[12], to[12], amount[12];
};

/* A query and its answer, for pl_blocking(). */
struct query {
	PGconn *conn;
	const char *sql;
	int nr_values;
	const char *const *values;
	PGresult *result;
};

static struct pl_sem idle;		/* units: connections in the pool */
static struct pl_mutex mutex;		/* of pool and nr_pool */
static PGconn *pool[NR_CONNECTIONS];	/* NULL: to be connected */
static int nr_pool;
static unsigned char outcomes[NR_MEMBERS][MOST_TRANSFERS];
static uint32_t nr_transfers[NR_MEMBERS];
static atomic_long nr_done, nr_maybe, nr_lost, nr_done_since;
static atomic_bool is_restarted;

static bool is_ok(PGresult *result)
{
	const ExecStatusType status = PQresultStatus(result);

	PQclear(result);
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* ---- the three ways to have a query answered ---- */

static void exec_params(void *arg)
{
	struct query *q = arg;

	q->result = PQexecParams(q->conn, q->sql, q->nr_values, NULL,
				 q->values, NULL, NULL, 0);
}

/* The last result; NULL: the deadline has passed, or the task is cancelled. */
static PGresult *wait_for_result(PGconn *conn, uint64_t deadline_ns)
{
	PGresult *result = NULL, *next;

	for (;;) {
		while (PQisBusy(conn)) {
			if (pl_poll(PQsocket(conn), POLLIN, deadline_ns) < 0) {
				PQclear(result);
				return NULL;
			}
			if (!PQconsumeInput(conn))
				break;
		}
		next = PQgetResult(conn);
		if (!next)
			return result;
		PQclear(result);
		result = next;
	}
}

static PGresult *ask(struct transfer *t, const char *sql, int nr_values,
		     const char *const *values)
{
	struct query q = { t->conn, sql, nr_values, values, NULL };

	switch (t->kind) {
	case SPAWNED_BLOCKING:
		exec_params(&q);
		return q.result;
	case IN_BLOCKING:
		pl_blocking(exec_params, &q);
		return q.result;
	default:
		if (!PQsendQueryParams(t->conn, sql, nr_values, NULL, values,
				       NULL, NULL, 0))
			return NULL;
		return wait_for_result(t->conn, t->deadline_ns);
	}
}

/* ---- the pool ---- */

static PGconn *connect_waiting(void)
{
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;
	PGconn *conn = PQconnectStart("");
	uint32_t events;

	while (conn && PQstatus(conn) != CONNECTION_BAD &&
	       status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
		events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
		if (pl_poll(PQsocket(conn), events,
			    pl_now() + app_limit_ns()) < 0)
			break;
		status = PQconnectPoll(conn);
	}
	if (status == PGRES_POLLING_OK)
		return conn;
	PQfinish(conn);
	return NULL;
}

static void connect_blocking(void *arg)
{
	PGconn *conn = PQconnectdb("");

	if (PQstatus(conn) != CONNECTION_OK) {
		PQfinish(conn);
		conn = NULL;
	}
	*(PGconn **)arg = conn;
}

static PGconn *connect_as(enum kind kind)
{
	PGconn *conn = NULL;

	if (kind == WAITS)
		return connect_waiting();
	if (kind == IN_BLOCKING)
		pl_blocking(connect_blocking, &conn);
	else
		connect_blocking(&conn);
	return conn;
}

static void pool_put(PGconn *conn)
{
	if (conn && PQstatus(conn) == CONNECTION_OK &&
	    PQtransactionStatus(conn) != PQTRANS_IDLE)
		app_fail("a transaction is left open: %s",
			 PQerrorMessage(conn));
	if (conn && PQstatus(conn) != CONNECTION_OK) {
		PQfinish(conn);
		conn = NULL;
		nr_lost++;
	}
	pl_mutex_lock(&mutex);
	pool[nr_pool++] = conn;
	pl_mutex_unlock(&mutex);
	app_must("pl_sem_post", pl_sem_post(&idle, 1));
}

/* NULL: the task is cancelled, or all is over. */
static PGconn *pool_get(enum kind kind)
{
	PGconn *conn;

	if (pl_sem_wait(&idle))
		return NULL;
	pl_mutex_lock(&mutex);
	conn = pool[--nr_pool];
	pl_mutex_unlock(&mutex);
	/* The server may be away for a while. */
	while (!conn && !app_is_over && !pl_cancelled()) {
		conn = connect_as(kind);
		if (!conn)
			pl_sleep(20 * NSEC_PER_MSEC);
	}
	if (!conn)
		pool_put(NULL);
	return conn;
}

/* ---- a transfer ---- */

static void cancel_query(void *arg)
{
	PGcancel *cancel = PQgetCancel(arg);
	char error[256];

	PQcancel(cancel, error, sizeof(error));
	PQfreeCancel(cancel);
}

/*
 * The task gave up waiting for an answer.  Have the query ended, and its
 * transaction; a cancelled task waits in a section that the cancel does not
 * reach.  Or drop the connection, which does both.
 */
static void give_up(struct transfer *t)
{
	struct pl_scope shield = PL_SCOPE_INIT;

	if (PQstatus(t->conn) != CONNECTION_OK)
		return;
	if (!app_random(t->seed, 2)) {
		PQfinish(t->conn);
		t->conn = NULL;
		return;
	}
	app_must("pl_scope_enter", pl_scope_enter(&shield, PL_FOREVER,
						  PL_SCOPE_SHIELD));
	t->deadline_ns = PL_FOREVER;
	if (PQtransactionStatus(t->conn) == PQTRANS_ACTIVE)
		pl_blocking(cancel_query, t->conn);
	PQclear(wait_for_result(t->conn, t->deadline_ns));
	if (PQtransactionStatus(t->conn) != PQTRANS_IDLE)
		PQclear(ask(t, "ROLLBACK", 0, NULL));
	pl_scope_leave(&shield);
}

static bool step(struct transfer *t, const char *sql, int nr_values,
		 const char *const *values)
{
	return is_ok(ask(t, sql, nr_values, values)) && !pl_cancelled();
}

/* In the order of accounts: no two transfers wait for each other for ever. */
static bool move_amount(struct transfer *t)
{
	const char *add[] = { t->to, t->amount }, *take[] = { t->from,
							      t->amount };
	const char *row[] = { t->member, t->seq, t->from, t->to, t->amount };
	const char *add_sql = "UPDATE accounts SET balance = balance + $2::int "
			      "WHERE id = $1::int";
	const char *take_sql = "UPDATE accounts SET balance = balance - $2::int "
			       "WHERE id = $1::int";
	const bool is_add_first = atoi(t->to) < atoi(t->from);

	return step(t, "BEGIN", 0, NULL) &&
	       step(t, is_add_first ? add_sql : take_sql, 2,
		    is_add_first ? add : take) &&
	       step(t, is_add_first ? take_sql : add_sql, 2,
		    is_add_first ? take : add) &&
	       step(t, "INSERT INTO ledger VALUES ($1::int, $2::int, $3::int, "
		    "$4::int, $5::int)", 5, row);
}

static enum outcome commit(struct transfer *t)
{
	PGresult *result = ask(t, "COMMIT", 0, NULL);
	enum outcome outcome = MAYBE;

	if (PQresultStatus(result) == PGRES_COMMAND_OK)
		outcome = strcmp(PQcmdStatus(result), "COMMIT") ? NOT_DONE :
								  DONE;
	PQclear(result);
	return outcome;
}

static enum outcome run_transfer(struct transfer *t)
{
	enum outcome outcome;

	if (!move_amount(t)) {
		give_up(t);
		return NOT_DONE;
	}
	outcome = commit(t);
	if (outcome == MAYBE)
		give_up(t);
	return outcome;
}

static void put_number(char *text, uint32_t nr)
{
	snprintf(text, 12, "%u", nr);
}

static void transfer_once(struct member *m)
{
	const uint32_t seq = nr_transfers[m->nr];
	const uint32_t from = app_random(&m->seed, NR_ACCOUNTS);
	struct transfer t = { .kind = m->nr % NR_KINDS, .seed = &m->seed };
	enum outcome outcome;

	if (seq == MOST_TRANSFERS) {
		pl_sleep(NSEC_PER_MSEC);
		return;
	}
	put_number(t.member, m->nr);
	put_number(t.seq, seq);
	put_number(t.from, from);
	put_number(t.to, (from + 1 + app_random(&m->seed, NR_ACCOUNTS - 1)) %
			 NR_ACCOUNTS);
	put_number(t.amount, 1 + app_random(&m->seed, MOST_AMOUNT));
	t.conn = pool_get(t.kind);
	if (!t.conn)
		return;
	t.deadline_ns = pl_now() + (app_random(&m->seed, 64) ?
				    app_limit_ns() :
				    app_random(&m->seed, 3 * NSEC_PER_MSEC));
	outcome = run_transfer(&t);
	outcomes[m->nr][nr_transfers[m->nr]++] = (unsigned char)outcome;
	nr_done += outcome == DONE;
	nr_maybe += outcome == MAYBE;
	nr_done_since += outcome == DONE && is_restarted;
	pool_put(t.conn);
}

/* ---- the rounds ---- */

static PGresult *must_sql(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);
	const ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		app_fail("%s: %s", sql, PQerrorMessage(conn));
	return result;
}

static PGconn *must_connect(void)
{
	PGconn *conn = PQconnectdb("client_encoding=UTF8");

	if (PQstatus(conn) != CONNECTION_OK)
		app_fail("%s", PQerrorMessage(conn));
	return conn;
}

static void begin(void)
{
	PGconn *conn = must_connect();
	char sql[128];
	int i;

	PQclear(must_sql(conn, "SET client_min_messages = warning"));
	PQclear(must_sql(conn, "DROP TABLE IF EXISTS accounts, ledger"));
	PQclear(must_sql(conn, "CREATE TABLE accounts (id int PRIMARY KEY, "
			 "balance int CHECK (balance >= 0))"));
	PQclear(must_sql(conn, "CREATE TABLE ledger (member int, seq int, "
			 "source int, target int, amount int, "
			 "PRIMARY KEY (member, seq))"));
	snprintf(sql, sizeof(sql), "INSERT INTO accounts SELECT id, %d "
		 "FROM generate_series(0, %d) id", START_BALANCE,
		 NR_ACCOUNTS - 1);
	PQclear(must_sql(conn, sql));
	PQfinish(conn);
	memset(outcomes, 0, sizeof(outcomes));
	memset(nr_transfers, 0, sizeof(nr_transfers));
	nr_done = nr_maybe = nr_lost = 0;
	for (i = 0; i < NR_CONNECTIONS; i++)
		pool[i] = NULL;
	nr_pool = NR_CONNECTIONS;
	app_must("pl_sem_init", pl_sem_init(&idle, NR_CONNECTIONS));
}

/* Each row is of a transfer that was done or may be; @balance follows them. */
static void read_ledger(PGconn *conn, long *balance)
{
	PGresult *rows = must_sql(conn, "SELECT member, seq, source, target, "
				  "amount FROM ledger");
	int i, j, row[5];

	for (i = 0; i < PQntuples(rows); i++) {
		for (j = 0; j < 5; j++)
			row[j] = atoi(PQgetvalue(rows, i, j));
		switch (outcomes[row[0]][row[1]]) {
		case DONE:
		case MAYBE:
			outcomes[row[0]][row[1]] = SEEN;
			break;
		default:
			app_fail("transfer %d of %d is in the ledger: outcome %d",
				 row[1], row[0], outcomes[row[0]][row[1]]);
		}
		balance[row[2]] -= row[4];
		balance[row[3]] += row[4];
	}
	PQclear(rows);
}

static void check_accounts(PGconn *conn)
{
	long balance[NR_ACCOUNTS], sum = 0;
	PGresult *rows;
	int i;

	for (i = 0; i < NR_ACCOUNTS; i++)
		balance[i] = START_BALANCE;
	read_ledger(conn, balance);
	rows = must_sql(conn, "SELECT balance FROM accounts ORDER BY id");
	if (PQntuples(rows) != NR_ACCOUNTS)
		app_fail("%d accounts", PQntuples(rows));
	for (i = 0; i < NR_ACCOUNTS; i++) {
		if (atol(PQgetvalue(rows, i, 0)) != balance[i])
			app_fail("account %d has %s, and ought to have %ld", i,
				 PQgetvalue(rows, i, 0), balance[i]);
		sum += balance[i];
	}
	if (sum != (long)NR_ACCOUNTS * START_BALANCE)
		app_fail("the sum is %ld", sum);
	PQclear(rows);
}

static void check_none_lost(void)
{
	uint32_t m, seq;

	for (m = 0; m < NR_MEMBERS; m++)
		for (seq = 0; seq < nr_transfers[m]; seq++)
			if (outcomes[m][seq] == DONE)
				app_fail("transfer %u of %u was committed, and "
					 "is not in the ledger", seq, m);
}

static void end(void)
{
	PGconn *conn;

	if (nr_pool != NR_CONNECTIONS)
		app_fail("%d connections in the pool", nr_pool);
	while (nr_pool)
		PQfinish(pool[--nr_pool]);
	conn = must_connect();
	/* A connection that was dropped may be about to commit. */
	PQclear(must_sql(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
	check_accounts(conn);
	check_none_lost();
	PQfinish(conn);
	printf("libpq: %ld transfers, %ld unknown, %ld connections lost\n",
	       (long)nr_done, (long)nr_maybe, (long)nr_lost);
}

static bool is_under_way(void)
{
	return nr_done > ENOUGH;
}

/* This thread is none of the runtime's: it may block. */
static void restart(void)
{
	char line[16];

	/* On a busy machine there may be no connection yet to be lost. */
	app_wait(is_under_way, "transfers before the restart");
	puts("restart");
	if (!fgets(line, sizeof(line), stdin))
		app_fail("nothing restarted the server");
	is_restarted = true;
}

static bool is_done(void)
{
	return nr_lost && nr_done_since > ENOUGH;
}

static uint32_t flags(uint32_t nr)
{
	return nr % NR_KINDS == SPAWNED_BLOCKING ? PL_SPAWN_BLOCKING : 0;
}

int main(int argc, char **argv)
{
	static const struct app libpq = {
		.name = "libpq", .cancel_ns = 20 * NSEC_PER_MSEC,
		.begin = begin, .work = transfer_once, .flags = flags,
		.halfway = restart, .is_done = is_done, .end = end,
	};

	return app_main(argc, argv, &libpq);
}
