#include "tests/common/survey.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "eval/study/pairs500.h"
#include "eval/study/factors.h"
#include "eval/study/prompts.h"
#include "eval/survey/store.h"
#include "tests/common/test.h"

static void write_study(struct test_survey *t, const char *name, int n_items, const char *more) {
    struct lk_pair pairs[LK_N_PAIRS];
    struct lk_text text = {0};
    static const char *const ages[] = {"20s", "30s", "40s", "50s", "60s", "70plus"};
    static const char *const races[] = {"white",  "black",         "eastasian", "southeastasian",
                                        "indian", "middleeastern", "latino"};
    char sentence[8];
    bool scene = strstr(more, "\"experiment\":3") != NULL;
    lk_pairs500(42, pairs);
    lk_text_add(&text, "{\"study\":\"%s\",%s\"items\":[", name, more);
    for (int i = 0; i < n_items; i++) {
        int race, gender, age;
        snprintf(sentence, sizeof sentence, "W-%02d", i % LK_N_W_PROMPTS + 1);
        lk_source_factors(pairs[i].source, &race, &gender, &age);
        lk_text_add(&text, "%s{\"id\":\"%s_%s_%s_%s_%s\",\"source\":\"s.png\",\"edited\":\"e.png\",", i ? "," : "",
                    lk_factor_key(LK_FACTOR_MODEL, pairs[i].model), ages[age], gender ? "female" : "male", races[race],
                    scene ? sentence : lk_prompt_id(pairs[i].prompt));
        lk_text_add(&text, "\"preserved\":\"p.png\",\"second_source\":\"t.png\"}");
    }
    lk_text_add(&text, "]}");
    assert_ok(text.rc);
    test_write(t->file, text.bytes, text.n);
    lk_text_free(&text);
}

void test_survey_open(struct test_survey *t, const char *name, int n_items, const char *more) {
    static const char *const pictures[] = {"s.png", "t.png", "e.png", "p.png"};
    char path[700];
    memset(t, 0, sizeof *t);
    snprintf(t->folder, sizeof t->folder, "%s-%d", test_path(name), (int)getpid());
    snprintf(path, sizeof path, "rm -rf '%s'", t->folder);
    assert_int_equal(system(path), 0);
    mkdir(t->folder, 0700);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", t->folder, pictures[i]);
        test_write(path, pictures[i], 5);
    }
    snprintf(t->file, sizeof t->file, "%s/study.json", t->folder);
    snprintf(t->store, sizeof t->store, "%s/store", t->folder);
    write_study(t, name, n_items, more);
    assert_ok(lk_survey_study_read(&t->study, t->file));
    assert_ok(lk_survey_open(&t->survey, t->study, t->store, true));
    /* This store need not survive a power cut; a test of what does opens it again. */
    sqlite3_exec(t->survey->sql.db, "PRAGMA synchronous=OFF", NULL, NULL, NULL);
}

void test_survey_close(struct test_survey *t) {
    char command[700];
    lk_survey_close(t->survey);
    lk_survey_study_free(t->study);
    snprintf(command, sizeof command, "rm -rf '%s'", t->folder);
    assert_int_equal(system(command), 0);
}

void test_survey_person(struct test_survey *t, const char *id, int task, int64_t now, char token[65],
                        struct lk_survey_visitor *who) {
    char *text, sha256[65];
    enum lk_survey_verdict verdict;
    assert_ok(lk_survey_enter(t->survey, id, false, now, token));
    assert_ok(lk_survey_visitor(t->survey, token, now, who));
    assert_ok(lk_survey_guided(t->survey, who, true, now));
    assert_ok(lk_survey_consent_text(t->study, &text, sha256));
    lk_free(text);
    assert_ok(lk_survey_consent(t->survey, who, sha256, now));
    if (task < 0) return;
    assert_ok(lk_survey_claim(t->survey, who, task, now, &verdict));
    assert_int_equal(verdict, LK_SURVEY_DONE);
    assert_ok(lk_survey_visitor(t->survey, token, now, who));
}

enum lk_survey_verdict test_survey_answer_all(struct test_survey *t, const struct lk_survey_visitor *who, int position,
                                              int option, int64_t now) {
    const struct lk_survey_item *items[2000];
    struct lk_survey_questions questions;
    struct lk_survey_given given[LK_SURVEY_MAX_QUESTIONS];
    enum lk_survey_verdict verdict;
    int64_t lease;
    assert_ok(lk_survey_task_items(t->study, who->worker, who->task, items));
    assert_ok(lk_survey_questions_of(t->study, items[position], &questions));
    for (int i = 0; i < questions.n; i++) {
        int n = questions.list[i].n_options;
        given[i] = (struct lk_survey_given){questions.list[i].key,
                                            questions.list[i].options[option < n ? option : n - 1].value};
    }
    assert_ok(lk_survey_show(t->survey, who, position, now, &lease));
    assert_ok(lk_survey_answer(t->survey, who, lease, position, given, (size_t)questions.n, now, &verdict));
    lk_survey_questions_free(&questions);
    return verdict;
}

bool test_survey_store_has(const struct test_survey *t, const char *what) {
    DIR *folder = opendir(t->store);
    bool found = false;
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));) {
        char path[900];
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", t->store, e->d_name);
        size_t n;
        char *bytes = test_read(path, &n);
        found = found || memmem(bytes, n, what, strlen(what));
        free(bytes);
    }
    closedir(folder);
    return found;
}

char *test_http(int port, const char *request, size_t n) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = 30};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    size_t room = 1 << 18, got = 0;
    char *reply = malloc(room + 1);
    assert_non_null(reply);
    assert_int_equal(connect(s, (struct sockaddr *)&where, sizeof where), 0);
    for (size_t sent = 0; sent < n;) {
        ssize_t k = send(s, request + sent, n - sent, MSG_NOSIGNAL);
        if (k <= 0) break;
        sent += (size_t)k;
    }
    for (ssize_t k; got < room && (k = recv(s, reply + got, room - got, 0)) > 0;) got += (size_t)k;
    close(s);
    reply[got] = '\0';
    return reply;
}
