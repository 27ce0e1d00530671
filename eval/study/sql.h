/* One SQLite file behind one lock, which survives a kill at any moment. Several processes may have it open, on a
 * network file system too: no write-ahead log, which needs memory that they share. */
#pragma once

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"

struct lk_sql {
    bool one_thread; /* set before lk_sql_attach: nobody else uses it */
    sqlite3 *db;
    pthread_mutex_t lock; /* its holder may take it again */
    int depth;            /* of transactions within each other */
    const char *name;     /* for messages */
    const char *advice;   /* what to do about a damaged file; NULL: a copy back, or begin anew */
    bool lockless;        /* its file system has no locks */
    int wait_ms;          /* how long another's lock is waited for; 0: a minute */
};

/* Told once when a lock has been waited for for two seconds; NULL: nobody. */
extern void (*lk_sql_waiting)(const char *text);

/* The file is made if it is not there, and so is what the statements of `schema` make. After a failure only
 * lk_sql_close. LK_E_IO, LK_E_DISK_FULL, LK_E_NOMEM, as for all that follow. */
enum lk_code lk_sql_attach(struct lk_sql *s, const char *path, const char *name, const char *schema);
void lk_sql_close(struct lk_sql *s);

/* Statements without values, one after the other. */
enum lk_code lk_sql_execute(struct lk_sql *s, const char *sql);
/* types: i int64_t, d double, t text (NULL: null). A statement without rows. */
enum lk_code lk_sql_run(struct lk_sql *s, const char *sql, const char *types, ...);
/* The first column of the first row, `otherwise` without one. */
enum lk_code lk_sql_number(struct lk_sql *s, int64_t *out, int64_t otherwise, const char *sql, const char *types, ...);
enum lk_code lk_sql_open(struct lk_sql *s, sqlite3_stmt **out, const char *sql, const char *types, ...);
enum lk_code lk_sql_step(struct lk_sql *s, sqlite3_stmt *statement, bool *row);
const char *lk_sql_text(sqlite3_stmt *statement, int column); /* "" for null; until the next step */

/* Takes the lock and begins a transaction; lk_sql_end commits it (rc 0) or takes all of it back, and gives rc or the
 * commit's failure. Between two calls of one thread another pair is a part of the whole: it is taken back alone, and
 * durable with the whole. */
enum lk_code lk_sql_begin(struct lk_sql *s);
enum lk_code lk_sql_end(struct lk_sql *s, enum lk_code rc);
