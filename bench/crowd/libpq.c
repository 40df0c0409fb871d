// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A crowd of connections to PostgreSQL, in PQexec(): each waits 20 ms in the
 * server at a time, or increments a row of its own.  libpq's environment says
 * where the server is; bench/crowd/crowd starts one.
 */
#include <libpq-fe.h>

#include "crowd.h"

#define ROWS		"crowd"		/* the table */

static PGconn *connections[CROWD_MOST];

static void exec_sql(PGconn *conn, const char *sql, ExecStatusType wanted)
{
	PGresult *result = PQexec(conn, sql);

	if (PQresultStatus(result) != wanted)
		die("libpq: %s: %s", sql, PQerrorMessage(conn));
	PQclear(result);
}

static void wait_in_server(uint32_t member)
{
	exec_sql(connections[member], "SELECT pg_sleep(0.02)", PGRES_TUPLES_OK);
}

static void increment_row(uint32_t member)
{
	char sql[80];

	snprintf(sql, sizeof(sql), "UPDATE " ROWS " SET n = n + 1 WHERE id = %u",
		 member);
	exec_sql(connections[member], sql, PGRES_COMMAND_OK);
}

static void create_rows(PGconn *conn, uint32_t nr)
{
	char sql[100];

	exec_sql(conn, "SET client_min_messages = warning", PGRES_COMMAND_OK);
	exec_sql(conn, "DROP TABLE IF EXISTS " ROWS, PGRES_COMMAND_OK);
	exec_sql(conn, "CREATE TABLE " ROWS " (id int PRIMARY KEY, n int)",
		 PGRES_COMMAND_OK);
	snprintf(sql, sizeof(sql), "INSERT INTO " ROWS
		 " SELECT id, 0 FROM generate_series(0, %u) id", nr - 1);
	exec_sql(conn, sql, PGRES_COMMAND_OK);
}

static void among_clients(void (*call)(uint32_t member))
{
	uint32_t nr = crowd_nr_of_case(), i;

	for (i = 0; i < nr; i++) {
		connections[i] = PQconnectdb("");
		if (PQstatus(connections[i]) != CONNECTION_OK)
			die("libpq: %s", PQerrorMessage(connections[i]));
	}
	create_rows(connections[0], nr);
	crowd_run(call);
	for (i = 0; i < nr; i++)
		PQfinish(connections[i]);
}

static void among_waiters(void)
{
	among_clients(wait_in_server);
}

static void among_updates(void)
{
	among_clients(increment_row);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "pq_sleep:200", among_waiters },
		{ "pq_update:200", among_updates },
		{ NULL, NULL },
	};

	return crowd_main(argc, argv, cases);
}
