/* A store that is damaged or changed by others is refused, with file, table and row, or says what it said before: no
 * flipped bit, no value that SQL put there and no half of a store becomes an answer. Everyday a tenth of the flips. */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "eval/survey/store.h"
#include "tests/common/survey.h"
#include "tests/common/test.h"

static const int64_t start = 1768608000000;

/* Three participants: one submitted, one half-way, one who only entered. */
static void open_store(struct test_survey *t, const char *name) {
    struct lk_survey_visitor who;
    enum lk_survey_verdict verdict;
    char token[65];
    test_survey_open(t, name, 4, "\"tasks\":1,\"places\":3,\"min_seconds\":0,");
    for (int p = 0; p < 2; p++) {
        test_survey_person(t, p ? "p2" : "p1", 0, start, token, &who);
        int n = (int)lk_survey_task_length(t->study, 0);
        for (int i = 0; i < (p ? n / 2 : n); i++)
            assert_int_equal(test_survey_answer_all(t, &who, i, i % 5, start + i * 1000), LK_SURVEY_DONE);
        if (!p) assert_ok(lk_survey_submit(t->survey, &who, start + 100000, &verdict));
        if (!p) assert_int_equal(verdict, LK_SURVEY_DONE);
    }
    assert_ok(lk_survey_enter(t->survey, "p3", false, start, token));
    assert_ok(lk_survey_event(t->survey, &who, "error", start));
}

/* All that a store is exported as; NULL with the thread's message when it is refused. */
static char *export_of(struct test_survey *t) {
    struct lk_text out = {0};
    enum lk_code rc = lk_survey_open(&t->survey, t->study, t->store, false);
    for (int i = 0; !rc && i < 2; i++) rc = lk_survey_export_answers(t->survey, i, true, &out);
    if (!rc) rc = lk_survey_export_participants(t->survey, &out);
    if (rc) {
        assert_int_equal(lk_exit_code(rc), 3);
        assert_non_null(strstr(lk_error_text(), t->store));
    }
    lk_survey_close(t->survey);
    t->survey = NULL;
    if (rc) lk_text_free(&out);
    return rc ? NULL : out.bytes;
}

static void put_back(const struct test_survey *t, const char *bytes, size_t n) {
    char path[700];
    snprintf(path, sizeof path, "%s/answers.db", t->store);
    test_write(path, bytes, n);
    snprintf(path, sizeof path, "%s/answers.db-journal", t->store);
    unlink(path);
}

static void a_flipped_bit_is_found(void **state) {
    struct test_survey t;
    char path[700];
    size_t n;
    int n_flips = getenv("LIKENESS_TEST_FULL") ? 3000 : 300, n_same = 0;
    (void)state;
    open_store(&t, "damage-flips");
    lk_survey_close(t.survey);
    snprintf(path, sizeof path, "%s/answers.db", t.store);
    char *bytes = test_read(path, &n), *expected = export_of(&t);
    assert_non_null(expected);
    uint64_t random = 7;
    for (int i = 0; i < n_flips; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t at = (size_t)(random >> 33) % n;
        int bit = (int)(random >> 20 & 7);
        while (i % 2 && !bytes[at]) at = (at + 1) % n; /* much of a small file is room */
        bytes[at] = (char)(bytes[at] ^ 1 << bit);
        put_back(&t, bytes, n);
        char *got = export_of(&t);
        if (got && strcmp(got, expected) != 0) fail_msg("byte %zu, bit %d: another export, exit 0", at, bit);
        n_same += got != NULL;
        lk_free(got);
        bytes[at] = (char)(bytes[at] ^ 1 << bit);
    }
    print_message("%d flips: %d refused, %d in bytes that say nothing\n", n_flips, n_flips - n_same, n_same);
    assert_true(n_same <= n_flips / 2);
    free(bytes);
    lk_free(expected);
    t.survey = NULL;
    test_survey_close(&t);
}

/* Statements of another program, as an attacker or a helpful colleague would run them. */
static const char *const statements[] = {
    "UPDATE claims SET task=-1",
    "UPDATE claims SET task=7",
    "UPDATE claims SET task=100000",
    "UPDATE claims SET task=-2147483648",
    "UPDATE claims SET task='x'",
    "UPDATE claims SET task=1e300",
    "UPDATE claims SET lease='x'",
    "UPDATE claims SET lease=-1",
    "UPDATE claims SET lease=9223372036854775807",
    "UPDATE claims SET state='zzz'",
    "UPDATE claims SET state=''",
    "UPDATE claims SET state=x'ff'",
    "UPDATE claims SET state='abandoned'",
    "UPDATE OR IGNORE claims SET state='submitted'",
    "UPDATE claims SET active_at=-9223372036854775808",
    "UPDATE claims SET active_at='x'",
    "UPDATE claims SET last_at=9223372036854775807",
    "UPDATE claims SET participant=99 WHERE id=1",
    "UPDATE OR IGNORE claims SET participant=3",
    "UPDATE claims SET mac=NULL",
    "UPDATE claims SET mac='00000000000000000000000000000000'",
    "UPDATE claims SET id=id+10",
    "UPDATE answers SET position=-1",
    "UPDATE answers SET position=1000000",
    "UPDATE answers SET position=1099511627776",
    "UPDATE answers SET position='x'",
    "UPDATE answers SET position=position+1",
    "UPDATE answers SET value='<b>'",
    "UPDATE answers SET value='5'",
    "UPDATE answers SET value=5 WHERE id=1",
    "UPDATE answers SET value=hex(zeroblob(100000))",
    "UPDATE answers SET value=x'fffe'",
    "UPDATE answers SET value=''",
    "UPDATE answers SET key='a\"><i>'",
    "UPDATE answers SET key='comment'",
    "UPDATE answers SET item='flux_20s_male_black_O-01'",
    "UPDATE answers SET left_arm=1-left_arm",
    "UPDATE answers SET ms=-5",
    "UPDATE answers SET at=0",
    "UPDATE answers SET claim=2",
    "UPDATE answers SET claim=99",
    "UPDATE answers SET value=(SELECT value FROM answers b WHERE b.id=15) WHERE id=1",
    "UPDATE answers SET mac=(SELECT mac FROM answers b WHERE b.id=15), "
    "value=(SELECT value FROM answers b WHERE b.id=15) WHERE id=1",
    "UPDATE participants SET worker='x' WHERE id=1",
    "UPDATE participants SET worker=hex(zeroblob(32)) WHERE id=1",
    "UPDATE participants SET consent_at=NULL",
    "UPDATE participants SET consent_sha256='x'",
    "UPDATE participants SET pilot=1",
    "UPDATE sessions SET participant=1",
    "UPDATE sessions SET at=1",
    "UPDATE events SET kind='x'",
    "UPDATE about SET value='x'",
    "UPDATE about SET value=value-1 WHERE name='rows of answers'",
    "DELETE FROM about",
    "DELETE FROM answers",
    "DELETE FROM answers WHERE id=1",
    "DELETE FROM claims WHERE id=2",
    "DELETE FROM participants WHERE id=3",
    "DELETE FROM sessions WHERE participant=1",
    "INSERT INTO answers(claim,position,key,value,item,left_arm,ms,at) SELECT "
    "claim,position,key,value,item,left_arm,ms,at "
    "FROM answers WHERE id=1",
    "INSERT INTO answers SELECT id+1000,claim,position,key,value,item,left_arm,ms,at,mac FROM answers WHERE id=1",
    "INSERT INTO claims(participant,task,state,claimed_at,active_at,last_at) VALUES(3,0,'submitted',1,1,1)",
    "DROP TABLE events",
    "DROP TABLE answers",
    "DROP INDEX one_claim",
    "DROP INDEX answers_of_claim",
    "CREATE TABLE more(x)",
    "CREATE TRIGGER t AFTER INSERT ON answers BEGIN DELETE FROM answers; END",
    "ALTER TABLE answers ADD COLUMN x",
    "ALTER TABLE answers RENAME COLUMN ms TO at2",
    "PRAGMA user_version=0",
    "PRAGMA user_version=3",
};
enum { N_STATEMENTS = sizeof statements / sizeof *statements };

static void run_elsewhere(const struct test_survey *t, const char *sql) {
    char path[700];
    sqlite3 *db;
    snprintf(path, sizeof path, "%s/answers.db", t->store);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL)) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* A server that has the store open meets each change at its next read or write: an error or what was so before, never
 * a crash; whoever opens the store refuses it. */
static void a_changed_value_is_refused(void **state) {
    struct test_survey t;
    char path[700], token[65];
    size_t n;
    (void)state;
    open_store(&t, "damage-values");
    struct lk_text before = {0};
    assert_ok(lk_survey_export_answers(t.survey, false, true, &before));
    lk_survey_close(t.survey);
    snprintf(path, sizeof path, "%s/answers.db", t.store);
    char *bytes = test_read(path, &n);
    for (int i = 0; i < N_STATEMENTS; i++) {
        struct lk_survey_visitor who;
        struct lk_survey_place places[1];
        struct lk_survey_counts counts;
        struct lk_survey_answer *answers = NULL;
        struct lk_text out = {0};
        size_t n_answers, first_open;
        int64_t lease;
        enum lk_survey_verdict verdict;
        put_back(&t, bytes, n);
        assert_ok(lk_survey_open(&t.survey, t.study, t.store, false));
        assert_ok(lk_survey_enter(t.survey, "p2", false, start + 1, token));
        run_elsewhere(&t, statements[i]);
        enum lk_code rc = lk_survey_visitor(t.survey, token, start + 2, &who);
        if (!rc) assert_true(who.task >= -1 && who.task < 1 && strlen(who.worker) == 64);
        if (!rc && who.claim) rc = lk_survey_answers(t.survey, &who, &answers, &n_answers, &first_open);
        lk_free(answers);
        if (!rc && who.claim) rc = lk_survey_show(t.survey, &who, 0, start + 3, &lease);
        if (!rc) rc = lk_survey_submit(t.survey, &who, start + 4, &verdict);
        if (!rc) rc = lk_survey_places(t.survey, &who, start + 5, places);
        if (!rc) rc = lk_survey_count(t.survey, start + 6, &counts);
        rc = lk_survey_export_answers(t.survey, false, true, &out);
        bool rows = (!strncmp(statements[i], "UPDATE answers", 14) && !strstr(statements[i], "claim=")) ||
                    !strncmp(statements[i], "UPDATE claims SET task", 22);
        if (rows && !rc) fail_msg("%s: exported while it was served", statements[i]);
        lk_text_free(&out);
        lk_survey_close(t.survey);
        rc = lk_survey_open(&t.survey, t.study, t.store, true);
        if (!rc) fail_msg("%s: opened", statements[i]);
        if (lk_exit_code(rc) != 3) fail_msg("%s: %s", statements[i], lk_error_text());
        assert_non_null(strstr(lk_error_text(), "answers.db"));
    }
    print_message("%d statements refused\n", N_STATEMENTS);
    free(bytes);
    lk_text_free(&before);
    t.survey = NULL;
    test_survey_close(&t);
}

/* Each column of each table with each of these values: refused, or, where it was so already, the export as it was. */
static void every_column_with_every_value(void **state) {
    static const char *const columns[] = {"participants.worker",
                                          "participants.pilot",
                                          "participants.entered_at",
                                          "participants.guided_at",
                                          "participants.check_right",
                                          "participants.consent_at",
                                          "participants.consent_sha256",
                                          "sessions.token_sha256",
                                          "sessions.participant",
                                          "sessions.at",
                                          "claims.participant",
                                          "claims.task",
                                          "claims.state",
                                          "claims.claimed_at",
                                          "claims.active_at",
                                          "claims.last_at",
                                          "claims.submitted_at",
                                          "claims.lease",
                                          "answers.claim",
                                          "answers.position",
                                          "answers.key",
                                          "answers.value",
                                          "answers.item",
                                          "answers.left_arm",
                                          "answers.ms",
                                          "answers.at",
                                          "events.participant",
                                          "events.kind",
                                          "events.at",
                                          "about.value",
                                          "about.name"};
    static const char *const values[] = {"NULL",  "-1", "0",   "1",       "9223372036854775807",
                                         "1e300", "''", "'x'", "x'ff00'", "hex(zeroblob(3000))"};
    struct test_survey t;
    char path[700];
    size_t n;
    int n_tried = 0, n_refused = 0;
    (void)state;
    open_store(&t, "damage-columns");
    lk_survey_close(t.survey);
    snprintf(path, sizeof path, "%s/answers.db", t.store);
    char *bytes = test_read(path, &n), *expected = export_of(&t);
    assert_non_null(expected);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            char sql[200];
            int n_table = (int)strcspn(columns[c], ".");
            snprintf(sql, sizeof sql, "UPDATE OR IGNORE %.*s SET %s=%s WHERE rowid=1", n_table, columns[c],
                     columns[c] + n_table + 1, values[v]);
            put_back(&t, bytes, n);
            run_elsewhere(&t, sql);
            char *got = export_of(&t);
            if (got && strcmp(got, expected) != 0) fail_msg("%s: another export, exit 0", sql);
            n_refused += !got;
            n_tried++;
            lk_free(got);
        }
    print_message("%d values: %d refused, the others were there already or not allowed\n", n_tried, n_refused);
    assert_true(n_tried >= 300 && n_refused > n_tried * 3 / 4);
    free(bytes);
    lk_free(expected);
    t.survey = NULL;
    test_survey_close(&t);
}

static bool there(const struct test_survey *t, const char *name) {
    char path[700];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", t->store, name);
    return !stat(path, &st);
}

static void move(const struct test_survey *from, const char *name, const struct test_survey *to, const char *as) {
    char a[700], b[700];
    snprintf(a, sizeof a, "%s/%s", from->store, name);
    snprintf(b, sizeof b, "%s/%s", to->store, as);
    assert_int_equal(rename(a, b), 0);
}

/* Of secrets.json and answers.db neither begins anew while the other is there. */
static void halves_are_refused(void **state) {
    struct test_survey t, other;
    (void)state;
    open_store(&t, "damage-halves");
    open_store(&other, "damage-other");
    lk_survey_close(t.survey);
    lk_survey_close(other.survey);
    for (int i = 0; i < 2; i++) {
        const char *names[] = {"answers.db", "secrets.json"};
        move(&t, names[i], &t, "away");
        assert_fails(lk_survey_open(&t.survey, t.study, t.store, true), LK_E_INPUT, "is missing beside");
        assert_non_null(strstr(lk_error_text(), names[i]));
        assert_false(there(&t, names[i]));
        move(&t, "away", &t, names[i]);
    }
    char path[700];
    size_t n;
    snprintf(path, sizeof path, "%s/answers.db", t.store);
    char *bytes = test_read(path, &n);
    static const size_t lengths[] = {0, 1, 99, 100, 4095, 4096, 8192};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        put_back(&t, bytes, lengths[i]);
        enum lk_code rc = lk_survey_open(&t.survey, t.study, t.store, true);
        if (lk_exit_code(rc) != 3) fail_msg("%zu bytes: %d", lengths[i], rc);
    }
    put_back(&t, bytes, n);
    free(bytes);
    assert_ok(lk_survey_open(&t.survey, t.study, t.store, true));
    lk_survey_close(t.survey);
    /* halves of two stores of one study */
    move(&t, "secrets.json", &t, "away");
    move(&other, "secrets.json", &t, "secrets.json");
    assert_fails(lk_survey_open(&t.survey, t.study, t.store, true), LK_E_INPUT, "not what this server wrote");
    t.survey = other.survey = NULL;
    test_survey_close(&t);
    test_survey_close(&other);
}

/* A first start that was killed goes on, at each of its steps; then it is whole. */
static void a_first_start_goes_on(void **state) {
    struct test_survey t;
    char path[700], token[65];
    (void)state;
    test_survey_open(&t, "damage-first", 4, "\"tasks\":1,");
    lk_survey_close(t.survey);
    for (int step = 0; step < 3; step++) {
        move(&t, "secrets.json", &t, "secrets.json.new");
        snprintf(path, sizeof path, "%s/answers.db", t.store);
        if (step == 0) assert_int_equal(unlink(path), 0);
        if (step == 1) assert_int_equal(truncate(path, 0), 0);
        assert_fails(lk_survey_open(&t.survey, t.study, t.store, false), LK_E_NOT_FOUND, "no survey was served");
        assert_ok(lk_survey_open(&t.survey, t.study, t.store, true));
        assert_ok(lk_survey_enter(t.survey, step ? "b" : "a", false, start, token));
        assert_true(there(&t, "secrets.json") && !there(&t, "secrets.json.new"));
        lk_survey_close(t.survey);
    }
    t.survey = NULL;
    test_survey_close(&t);
}

static int mode_of(const struct test_survey *t, const char *name) {
    char path[700];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", t->store, name);
    assert_int_equal(stat(path, &st), 0);
    return (int)(st.st_mode & 0777);
}

static void modes_are_enforced(void **state) {
    static const char *const names[] = {"answers.db", "secrets.json", "answers.db-journal"};
    struct test_survey t;
    char path[700];
    (void)state;
    mode_t before = umask(0);
    open_store(&t, "damage-modes");
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(mode_of(&t, "."), 0700);
        for (int i = 0; i < 3; i++) assert_int_equal(mode_of(&t, names[i]), 0600);
        lk_survey_close(t.survey);
        t.survey = NULL;
        if (pass) break;
        for (int i = 0; i < 3; i++) {
            snprintf(path, sizeof path, "%s/%s", t.store, names[i]);
            assert_int_equal(chmod(path, 0644), 0);
        }
        assert_int_equal(chmod(t.store, 0755), 0);
        assert_ok(lk_survey_open(&t.survey, t.study, t.store, false));
    }
    umask(before);
    test_survey_close(&t);
}

/* A store without digests, as older versions wrote it, gets them at the next start. */
static void an_older_store_is_taken_over(void **state) {
    static const char *const tables[] = {"about", "participants", "sessions", "claims", "answers", "events"};
    struct test_survey t;
    (void)state;
    open_store(&t, "damage-older");
    lk_survey_close(t.survey);
    char *expected = export_of(&t);
    run_elsewhere(&t, "DELETE FROM about WHERE name LIKE 'rows of %'; PRAGMA user_version=0");
    for (int i = 0; i < 6; i++) {
        char sql[100];
        snprintf(sql, sizeof sql, "ALTER TABLE %s DROP COLUMN mac", tables[i]);
        run_elsewhere(&t, sql);
    }
    char *got = export_of(&t);
    if (!got) fail_msg("%s", lk_error_text());
    assert_string_equal(got, expected);
    lk_free(got);
    /* One with digests, of the time when everybody had one task. */
    run_elsewhere(&t, "DROP INDEX one_claim; DROP INDEX claims_of_participant; CREATE UNIQUE INDEX one_claim ON "
                      "claims(participant) WHERE state IN ('open','submitted'); PRAGMA user_version=1");
    for (int i = 0; i < 2; i++) {
        got = export_of(&t);
        if (!got) fail_msg("%s", lk_error_text());
        assert_string_equal(got, expected);
        lk_free(got);
    }
    lk_free(expected);
    t.survey = NULL;
    test_survey_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flipped_bit_is_found),        cmocka_unit_test(a_changed_value_is_refused),
        cmocka_unit_test(every_column_with_every_value), cmocka_unit_test(halves_are_refused),
        cmocka_unit_test(a_first_start_goes_on),         cmocka_unit_test(modes_are_enforced),
        cmocka_unit_test(an_older_store_is_taken_over)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
