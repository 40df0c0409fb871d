// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A crowd of connections to one database in a file, of which each inserts a row
 * at a time: all but one find it busy, and SQLite sleeps until it is not
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "crowd.h"

#define BUSY_MS		60000

static char path[] = "/tmp/parklot-bench-XXXXXX";
static sqlite3 *connections[CROWD_MOST];

static void sql(sqlite3 *db, const char *text)
{
	char *error = NULL;

	if (sqlite3_exec(db, text, NULL, NULL, &error))
		die("sqlite3: %s: %s", text, error);
}

static void insert(uint32_t member)
{
	sql(connections[member], "INSERT INTO numbers VALUES (1)");
}

static void among_writers(void)
{
	uint32_t nr = crowd_nr_of_case(), i;
	char journal[sizeof(path) + 16];

	close(mkostemp(path, O_CLOEXEC));
	for (i = 0; i < nr; i++) {
		if (sqlite3_open(path, &connections[i]))
			die("%s: %s", path, sqlite3_errmsg(connections[i]));
		sqlite3_busy_timeout(connections[i], BUSY_MS);
	}
	sql(connections[0], "CREATE TABLE numbers (n INTEGER)");
	crowd_run(insert);
	for (i = 0; i < nr; i++)
		sqlite3_close(connections[i]);
	snprintf(journal, sizeof(journal), "%s-journal", path);
	unlink(journal);
	unlink(path);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "sqlite:50", among_writers },
		{ NULL, NULL },
	};

	return crowd_main(argc, argv, cases);
}
