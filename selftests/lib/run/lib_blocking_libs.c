/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Libraries that block their callers: tasks may call them all the same.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/auxv.h>
#include <sys/socket.h>

BLOCKED_FIXTURE(blocking_libs)

/* Nothing can be loaded then, which both libraries take. */
static bool is_static(void)
{
	return !getauxval(AT_BASE);
}

/* ---- a database that another connection has locked ---- */

/* Of sqlite3.h, which is not needed to call it. */
struct sqlite3;

static struct {
	int (*open)(const char *path, struct sqlite3 **db);
	int (*close)(struct sqlite3 *db);
	int (*busy_timeout)(struct sqlite3 *db, int ms);
	int (*exec)(struct sqlite3 *db, const char *sql, void *row, void *arg,
		    char **error);
} sqlite;

static struct sqlite3 *locked;
static char database[] = "/tmp/parklot-blocking-XXXXXX";

static bool load_sqlite(void)
{
	void *lib = dlopen("libsqlite3.so.0", RTLD_NOW);

	if (!lib)
		return false;
	*(void **)&sqlite.open = dlsym(lib, "sqlite3_open");
	*(void **)&sqlite.close = dlsym(lib, "sqlite3_close");
	*(void **)&sqlite.busy_timeout = dlsym(lib, "sqlite3_busy_timeout");
	*(void **)&sqlite.exec = dlsym(lib, "sqlite3_exec");
	return true;
}

static struct sqlite3 *open_database(void)
{
	struct sqlite3 *db = NULL;

	EXPECT_EQ(0, sqlite.open(database, &db));
	EXPECT_EQ(0, sqlite.busy_timeout(db, (int)(stuck_ns() /
						   NSEC_PER_MSEC)));
	return db;
}

static void do_sql(struct sqlite3 *db, const char *sql)
{
	EXPECT_EQ(0, sqlite.exec(db, sql, NULL, NULL, NULL));
}

static void insert(void *arg)
{
	struct sqlite3 *db = open_database();

	(void)arg;
	atomic_fetch_add(&nr_begun, 1);
	do_sql(db, "INSERT INTO numbers VALUES (1)");
	EXPECT_EQ(0, sqlite.close(db));
}

static void unlock_database(void)
{
	do_sql(locked, "COMMIT");
}

TEST_F(blocking_libs, busy_database_of_sqlite3_blocks_no_other_task)
{
	if (is_static())
		SKIP(return, "the program is static");
	ASSERT_TRUE(load_sqlite());
	close(mkostemp(database, O_CLOEXEC));
	locked = open_database();
	do_sql(locked, "CREATE TABLE numbers (n INTEGER)");
	do_sql(locked, "BEGIN EXCLUSIVE");
	check_call(insert, unlock_database);
	EXPECT_EQ(0, sqlite.close(locked));
	unlink(database);
}

/* ---- a name server that does not answer ---- */

#ifdef __GLIBC__
# include <nss.h>
# include <resolv.h>

static struct sockaddr_in address;
static int server;
static pthread_t answering;

/* Says to each question that there is no such name, until one is too short. */
static void *answer(void *arg)
{
	unsigned char message[512];
	struct sockaddr_in from;
	socklen_t len;
	ssize_t n;

	for (;;) {
		len = sizeof(from);
		n = recvfrom(server, message, sizeof(message), 0,
			     (struct sockaddr *)&from, &len);
		if (n < NS_HFIXEDSZ)
			return arg;
		message[2] |= 0x80;
		message[3] = ns_r_nxdomain;
		sendto(server, message, (size_t)n, 0, (struct sockaddr *)&from,
		       len);
	}
}

static void let_server_answer(void)
{
	ASSERT_EQ(0, pthread_create(&answering, NULL, answer, NULL));
}

static void ask_server(void *arg)
{
	struct addrinfo *found;

	(void)arg;
	ASSERT_EQ(0, res_init());
	_res.retrans = 30;
	_res.retry = 5;
	_res.nscount = 1;
	_res.nsaddr_list[0] = address;
	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(EAI_NONAME, getaddrinfo("parklot.invalid.", NULL, NULL,
					  &found));
}

static bool open_server(void)
{
	socklen_t len = sizeof(address);
	char byte = 0;

	server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (server < 0)
		return false;
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(server, (struct sockaddr *)&address, len) ||
	    getsockname(server, (struct sockaddr *)&address, &len))
		return false;
	/* Whether it can be reached at all. */
	return sendto(server, &byte, 1, 0, (struct sockaddr *)&address,
		      len) == 1 && recv(server, &byte, 1, 0) == 1;
}

TEST_REAL(silent_name_server_blocks_no_other_task,
	  "the C library's resolver waits by itself")
TEST_F(blocking_libs, silent_name_server_blocks_no_other_task)
{
	char byte = 0;

	if (is_static())
		SKIP(return, "the program is static");
	ASSERT_TRUE(open_server());
	ASSERT_EQ(0, __nss_configure_lookup("hosts", "dns"));
	check_call(ask_server, let_server_answer);
	EXPECT_EQ(1, sendto(server, &byte, 1, 0, (struct sockaddr *)&address,
			    sizeof(address)));
	pthread_join(answering, NULL);
}
#else
/* What it asks is only in a file of the machine's. */
TEST_F(blocking_libs, silent_name_server_blocks_no_other_task)
{
	SKIP(return, "the name server cannot be chosen here");
}
#endif

TEST_HARNESS_MAIN
