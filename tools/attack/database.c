/* A value of an SQLite file, changed as another program would: by a statement. The file stays whole. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/attack/mutate.h"

static size_t below(uint64_t *state, size_t n) { return n ? (size_t)(attack_random(state) % n) : 0; }

/* The rows of a query, one text each; one of them at random. "" without any. */
static void one_of(sqlite3 *db, const char *sql, uint64_t *state, char out[80]) {
    sqlite3_stmt *q;
    size_t n = 0;
    *out = '\0';
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL)) return;
    while (sqlite3_step(q) == SQLITE_ROW)
        if (!below(state, ++n)) snprintf(out, 80, "%s", (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
}

static void change_value(sqlite3 *db, uint64_t *state) {
    static const char *const values[] = {"NULL",
                                         "-1",
                                         "0",
                                         "1",
                                         "7",
                                         "1e300",
                                         "''",
                                         "'x'",
                                         "x'ff00c3'",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "'<b>'",
                                         "hex(zeroblob(5000))"};
    char table[80], column[80], row[80], sql[500];
    one_of(db, "SELECT name FROM sqlite_master WHERE type='table'", state, table);
    snprintf(sql, sizeof sql, "SELECT name FROM pragma_table_info('%s')", table);
    one_of(db, sql, state, column);
    snprintf(sql, sizeof sql, "SELECT rowid FROM \"%s\"", table);
    one_of(db, sql, state, row);
    if (below(state, 8))
        snprintf(sql, sizeof sql, "UPDATE OR IGNORE \"%s\" SET \"%s\"=%s WHERE rowid=%s", table, column,
                 values[below(state, sizeof values / sizeof *values)], row);
    else
        snprintf(sql, sizeof sql, "DELETE FROM \"%s\" WHERE rowid=%s", table, row);
    sqlite3_exec(db, sql, NULL, NULL, NULL);
}

void attack_mutate_database(struct attack_bytes *b, uint64_t *state) {
    sqlite3 *db;
    sqlite3_int64 n = 0;
    unsigned char *copy = sqlite3_malloc64(b->n + 1), *after = NULL;
    if (!copy || sqlite3_open(":memory:", &db)) abort();
    memcpy(copy, b->data, b->n);
    if (!sqlite3_deserialize(db, "main", copy, (sqlite3_int64)b->n, (sqlite3_int64)b->n,
                             SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)) {
        change_value(db, state);
        after = sqlite3_serialize(db, "main", &n, 0);
    }
    if (after && n) {
        uint8_t *data = realloc(b->data, (size_t)n + 1);
        if (!data) abort();
        memcpy(data, after, (size_t)n);
        *b = (struct attack_bytes){data, (size_t)n};
    }
    sqlite3_free(after);
    sqlite3_close(db);
}
