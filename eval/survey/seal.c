/* Each row of answers.db carries a digest under the store's key, and each table a count of its rows, so that no flipped
 * bit, no changed value and no row that is gone is read as what a participant did. The connection writes them by itself
 * (temporary triggers, which no other program has) and looks at them whenever a row is read (the views read_TABLE),
 * changed or taken away. */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>

#include "engine/base/text.h"
#include "eval/survey/store.h"

static const struct {
    const char *name, *columns; /* each as "$name", what a row's digest is of */
} tables[] = {
    {"about", "$name, $value"},
    {"participants", "$id, $worker, $pilot, $entered_at, $guided_at, $check_right, $consent_at, $consent_sha256"},
    {"sessions", "$token_sha256, $participant, $at"},
    {"claims", "$id, $participant, $task, $state, $claimed_at, $active_at, $last_at, $submitted_at, $lease"},
    {"answers", "$id, $claim, $position, $key, $value, $item, $left_arm, $ms, $at"},
    {"events", "$id, $participant, $kind, $at"}};
enum { N_TABLES = sizeof tables / sizeof *tables, MAC_HEX = 32 };

/* HMAC-SHA256 of a table's name and values, each with its type and length; half of it as hex. */
static bool digest_of(const struct lk_survey *s, sqlite3_value **values, int n, char out[MAC_HEX + 1]) {
    unsigned char mac[32] = {0};
    size_t n_mac = 0;
    bool ok = EVP_MAC_init(s->mac, NULL, 0, NULL) == 1; /* the key stays */
    for (int i = 0; i < n; i++) {
        int type = sqlite3_value_type(values[i]), n_bytes = sqlite3_value_bytes(values[i]);
        const void *bytes = type == SQLITE_BLOB ? sqlite3_value_blob(values[i]) : sqlite3_value_text(values[i]);
        char head[32];
        int n_head = snprintf(head, sizeof head, "%d:%d:", type, n_bytes);
        ok = ok && EVP_MAC_update(s->mac, (unsigned char *)head, (size_t)n_head) == 1;
        if (n_bytes) ok = ok && EVP_MAC_update(s->mac, bytes, (size_t)n_bytes) == 1;
    }
    ok = ok && EVP_MAC_final(s->mac, mac, &n_mac, sizeof mac) == 1;
    for (int i = 0; i < MAC_HEX; i++) out[i] = "0123456789abcdef"[mac[i / 2] >> (i % 2 ? 0 : 4) & 15];
    out[MAC_HEX] = '\0';
    return ok;
}

/* lk_seal(TABLE, COLUMN...) */
static void seal(sqlite3_context *context, int n, sqlite3_value **values) {
    char mac[MAC_HEX + 1];
    if (digest_of(sqlite3_user_data(context), values, n, mac))
        sqlite3_result_text(context, mac, MAC_HEX, SQLITE_TRANSIENT);
    else
        sqlite3_result_error_nomem(context);
}

/* lk_intact(ROW, DIGEST, TABLE, COLUMN...): 1, or the failure of the statement. */
static void intact(sqlite3_context *context, int n, sqlite3_value **values) {
    char mac[MAC_HEX + 1], text[200];
    const char *kept = (const char *)sqlite3_value_text(values[1]);
    if (!digest_of(sqlite3_user_data(context), values + 2, n - 2, mac)) {
        sqlite3_result_error_nomem(context);
    } else if (kept && lk_survey_same(mac, kept)) {
        sqlite3_result_int(context, 1);
    } else {
        snprintf(text, sizeof text, "table %s, row %lld: not what this server wrote", sqlite3_value_text(values[2]),
                 (long long)sqlite3_value_int64(values[0]));
        sqlite3_result_error(context, text, -1);
        sqlite3_result_error_code(context, SQLITE_CORRUPT);
    }
}

/* The columns with what stands before each: "", "NEW." or "OLD.". */
static void columns(struct lk_text *out, int table, const char *before) {
    for (const char *at = tables[table].columns; *at; at++)
        if (*at == '$')
            lk_text_add(out, "%s", before);
        else
            lk_text_bytes(out, at, 1);
}

static void call_seal(struct lk_text *sql, int table, const char *before) {
    lk_text_add(sql, "lk_seal('%s', ", tables[table].name);
    columns(sql, table, before);
    lk_text_add(sql, ")");
}

static void call_intact(struct lk_text *sql, int table, const char *before) {
    lk_text_add(sql, "lk_intact(%srowid, %smac, '%s', ", before, before, tables[table].name);
    columns(sql, table, before);
    lk_text_add(sql, ")");
}

static void keep_table(struct lk_text *sql, int table) {
    const char *name = tables[table].name;
    /* Looked at as a row of its own: SQLite would put what a query compares a column with in the column's place. */
    lk_text_add(sql, "CREATE TEMP VIEW read_%s AS SELECT ", name);
    columns(sql, table, "");
    lk_text_add(sql, " FROM main.%s AS r WHERE (SELECT ", name);
    call_intact(sql, table, "c.");
    lk_text_add(sql, " FROM main.%s AS c WHERE c.rowid=r.rowid)", name);
    lk_text_add(sql, ";CREATE TEMP TRIGGER changing_%s BEFORE UPDATE OF ", name);
    columns(sql, table, "");
    lk_text_add(sql, " ON main.%s BEGIN SELECT ", name);
    call_intact(sql, table, "OLD.");
    lk_text_add(sql, ";END;CREATE TEMP TRIGGER changed_%s AFTER UPDATE OF ", name);
    columns(sql, table, "");
    lk_text_add(sql, " ON main.%s BEGIN UPDATE %s SET mac=", name, name);
    call_seal(sql, table, "");
    lk_text_add(
        sql, " WHERE rowid=NEW.rowid;END;CREATE TEMP TRIGGER added_%s AFTER INSERT ON main.%s BEGIN UPDATE %s SET mac=",
        name, name, name);
    call_seal(sql, table, "");
    lk_text_add(sql, " WHERE rowid=NEW.rowid;");
    if (table) lk_text_add(sql, "UPDATE about SET value=CAST(value+1 AS TEXT) WHERE name='rows of %s';", name);
    lk_text_add(sql, "END;");
    if (table)
        lk_text_add(sql,
                    "CREATE TEMP TRIGGER taken_%s AFTER DELETE ON main.%s BEGIN UPDATE about SET value=CAST(value-1 AS "
                    "TEXT) WHERE name='rows of %s';END;",
                    name, name, name);
}

/* What a store has on its first day, or gets that an older version wrote. */
static void begin_table(struct lk_text *sql, int table) {
    const char *name = tables[table].name;
    lk_text_add(sql, "ALTER TABLE %s ADD COLUMN mac TEXT;", name);
    if (table) lk_text_add(sql, "INSERT INTO about(name,value) SELECT 'rows of %s', count(*) FROM %s;", name, name);
}

static enum lk_code execute(struct lk_survey *s, struct lk_text *sql) {
    enum lk_code rc = sql->rc;
    if (!rc) rc = lk_sql_execute(&s->sql, sql->bytes);
    lk_text_free(sql);
    return rc;
}

enum lk_code lk_survey_seal_new(struct lk_survey *s) {
    struct lk_text sql = {0};
    for (int i = 0; i < N_TABLES; i++) begin_table(&sql, i);
    for (int i = 0; i < N_TABLES; i++) {
        lk_text_add(&sql, "UPDATE %s SET mac=", tables[i].name);
        call_seal(&sql, i, "");
        lk_text_add(&sql, ";");
    }
    lk_text_add(&sql, "PRAGMA user_version=2;");
    return execute(s, &sql);
}

enum lk_code lk_survey_seal_functions(struct lk_survey *s) {
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    const OSSL_PARAM sha256[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){"SHA256"}, 0),
                                 OSSL_PARAM_END};
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    s->mac = EVP_MAC_CTX_new(hmac);
    bool ok = s->mac && EVP_MAC_init(s->mac, (unsigned char *)s->key, sizeof s->key - 1, sha256) == 1;
    EVP_MAC_free(hmac);
    if (!ok || sqlite3_create_function_v2(s->sql.db, "lk_seal", -1, flags, s, seal, NULL, NULL, NULL) ||
        sqlite3_create_function_v2(s->sql.db, "lk_intact", -1, flags, s, intact, NULL, NULL, NULL))
        return lk_fail(LK_E_NOMEM, "out of memory for a survey");
    return lk_sql_execute(&s->sql, "PRAGMA temp_store=MEMORY");
}

enum lk_code lk_survey_seal_keep(struct lk_survey *s) {
    struct lk_text sql = {0};
    for (int i = 0; i < N_TABLES; i++) keep_table(&sql, i);
    return execute(s, &sql);
}

/* Every row is intact, and as many are there as were written. */
enum lk_code lk_survey_seal_check(struct lk_survey *s) {
    for (int i = 0; i < N_TABLES; i++) {
        char sql[200];
        int64_t n, expected;
        snprintf(sql, sizeof sql, "SELECT count(*) FROM read_%s", tables[i].name);
        LK_TRY(lk_sql_number(&s->sql, &n, 0, sql, ""));
        if (!i) continue;
        snprintf(sql, sizeof sql, "SELECT value FROM read_about WHERE name='rows of %s'", tables[i].name);
        LK_TRY(lk_sql_number(&s->sql, &expected, -1, sql, ""));
        if (n != expected)
            return lk_fail(LK_E_INPUT, "%s: table %s: expected %lld rows, got %lld: the file is damaged; %s", s->path,
                           tables[i].name, (long long)expected, (long long)n, lk_survey_advice);
    }
    return LK_OK;
}
