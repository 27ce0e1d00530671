/* A whole campaign by the commands of tools/docs/raters.md: a pilot whose people are kept out afterwards, a mixed
 * design for a hundred people of whom some are bad in one of twelve ways, codes, export, ratings, payment. What comes
 * out is what was planted. People answer through the survey's state; its server is tested elsewhere. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "eval/survey/store.h"
#include "tests/common/survey.h"
#include "tests/common/test.h"

enum { SECOND = 1000, N_MAIN = 100, N_PILOT = 10 };
static const int64_t start = 1768608000000; /* 2026-01-17 */
static char folder[400];

/* Eleven ways to be bad beside those of the pilot that come again. */
enum kind {
    HONEST,
    SPEEDER,    /* a second for each question */
    STRAIGHT,   /* always the same answer */
    CARELESS,   /* wrong at attention checks */
    SKIPPER,    /* skips more than a tenth */
    WALKS_AWAY, /* takes a task and leaves it half-way: the place is given back */
    BORROWER,   /* a code of somebody else, after doing nothing */
    REPEATER,   /* has the same submission twice on the list */
    INVENTOR,   /* a code that nobody has */
    FORGETFUL,  /* no code */
    STRANGER,   /* on the list, never in the survey */
    UNLISTED,   /* in the survey, not on the list */
    N_KINDS
};
static const int n_of_kind[N_KINDS] = {0, 3, 3, 4, 3, 5, 4, 3, 2, 3, 4, 2};

struct person {
    enum kind kind;
    char id[24], code[48];
};

static char *command(const char *text, int expected) {
    char whole[3000];
    size_t n;
    snprintf(whole, sizeof whole, "cd '%s' && PATH=\"$BUILD_DIR:$PATH\" && (%s) >out 2>&1", folder, text);
    const int status = system(whole);
    snprintf(whole, sizeof whole, "%s/out", folder);
    char *out = test_read(whole, &n);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != expected) fail_msg("%s: %d: %s", text, status, out);
    return out;
}

/* Its exit code, and a part of what it says. */
static void refuse(const char *text, int code, const char *part) {
    char *out = command(text, code);
    if (!strstr(out, part)) fail_msg("%s: no \"%s\" in: %s", text, part, out);
    free(out);
}

static void run(const char *text, const char *part) { refuse(text, 0, part); }

/* 504 edits of the 84 drawn portraits, as a run of a study leaves them. */
static void make_run(void) {
    static const char study[] =
        "{\"schema\": 2, \"study\": \"mock\", \"attribution\": \"fairface\", \"analysis\": {\"human\": \"001\"}, "
        "\"sources\": \"../sources/sources.csv\", "
        "\"models\": {\"flux\": "
        "{\"path\": "
        "\"a\"}, \"step1x\": {\"path\": \"b\"}, \"qwen\": {\"path\": \"c\"}}, \"experiments\": {\"exp1\": {\"preset\": "
        "\"custom\", \"prompts\": [\"O-01\", \"V-02\"]}}}\n";
    char path[500];
    snprintf(folder, sizeof folder, "%s-%d", test_path("campaign"), (int)getpid());
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/run", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/run/study.json", folder);
    test_write(path, study, strlen(study));
    run("make_portraits --size 32 sources", "");
    run("likeness study jobs run/study.json >jobs; for id in $(cat jobs); do c=O; case $id in *_V-*) c=V;; esac; "
        "m=${id%%_*}; mkdir -p run/results/exp1/$m/$c; cp sources/White_Male_20s.png run/results/exp1/$m/$c/$id.png; "
        "echo "
        "\"{\\\"item_id\\\":\\\"$id\\\",\\\"experiment\\\":\\\"exp1\\\",\\\"model\\\":\\\"$m\\\",\\\"status\\\":"
        "\\\"success\\\"}\"; done >run/manifest.jsonl; wc -l <jobs",
        "504");
}

static void open_survey(struct test_survey *t, const char *name) {
    *t = (struct test_survey){.survey = NULL};
    snprintf(t->folder, sizeof t->folder, "%s/survey", folder);
    snprintf(t->file, sizeof t->file, "%s/%s.json", t->folder, name);
    snprintf(t->store, sizeof t->store, "%s/%s.survey", t->folder, name);
    assert_ok(lk_survey_study_read(&t->study, t->file));
    assert_ok(lk_survey_open(&t->survey, t->study, t->store, true));
    sqlite3_exec(t->survey->sql.db, "PRAGMA synchronous=OFF", NULL, NULL, NULL);
}

static void close_survey(struct test_survey *t) {
    lk_survey_close(t->survey);
    lk_survey_study_free(t->study);
}

static const char *value_of(const struct person *person, const struct lk_survey_item *item, int position, int question,
                            const struct lk_survey_question *q, char expected[16]) {
    static const int honest[] = {3, 0, 4, 1, 3, 2, 0, 4, 2, 2, 1, 4, 0};
    const char *right = lk_survey_expected(item, q, 0, expected);
    const bool careless = person->kind == CARELESS || person->kind == STRAIGHT;
    if (right && !careless) return right;
    if (right && person->kind == CARELESS) return q->options[*right == '5' ? 0 : 4].value;
    if (person->kind == STRAIGHT) return q->options[1].value;
    if (person->kind == SKIPPER && item->kind == LK_SURVEY_ITEM && question == 2 && q->n_options == 6)
        return q->options[5].value;
    return q->options[honest[(position * 5 + question) % 13]].value;
}

/* Half of the items, or all and submitted. */
static int64_t answer(struct test_survey *t, const struct lk_survey_visitor *who, const struct person *person,
                      int64_t now) {
    const struct lk_survey_item *items[100];
    const int n = (int)lk_survey_task_length(t->study, who->place);
    enum lk_survey_verdict verdict;
    assert_ok(lk_survey_task_items(t->study, who->worker, who->place, items));
    for (int i = 0; i < (person->kind == WALKS_AWAY ? n / 2 : n); i++) {
        struct lk_survey_questions questions;
        struct lk_survey_given given[LK_SURVEY_MAX_QUESTIONS];
        char expected[LK_SURVEY_MAX_QUESTIONS][16];
        int64_t lease;
        assert_ok(lk_survey_questions_of(t->study, items[i], &questions));
        for (int k = 0; k < questions.n; k++)
            given[k] = (struct lk_survey_given){questions.list[k].key,
                                                value_of(person, items[i], i, k, &questions.list[k], expected[k])};
        assert_ok(lk_survey_show(t->survey, who, i, now, &lease));
        now += questions.n * (person->kind == SPEEDER ? SECOND : 9 * SECOND);
        assert_ok(lk_survey_answer(t->survey, who, lease, i, given, (size_t)questions.n, now, &verdict));
        assert_int_equal(verdict, LK_SURVEY_DONE);
        lk_survey_questions_free(&questions);
    }
    if (person->kind == WALKS_AWAY) return now;
    assert_ok(lk_survey_submit(t->survey, who, now, &verdict));
    assert_int_equal(verdict, LK_SURVEY_DONE);
    return now;
}

/* Into the first task that has a place. */
static void take_part(struct test_survey *t, struct person *person, int64_t *now) {
    struct lk_survey_visitor who;
    char token[65];
    enum lk_survey_verdict verdict = LK_SURVEY_CONFLICT;
    test_survey_person(t, person->id, -1, *now, token, &who);
    for (int task = 0; task < t->study->n_tasks && verdict; task++)
        assert_ok(lk_survey_claim(t->survey, &who, task, *now, &verdict));
    assert_int_equal(verdict, LK_SURVEY_DONE);
    assert_ok(lk_survey_visitor(t->survey, token, *now, &who));
    const int64_t end = answer(t, &who, person, *now);
    if (person->kind == WALKS_AWAY) *now = end + t->study->claim_ms + SECOND; /* before somebody else comes */
    assert_ok(lk_survey_visitor(t->survey, token, end, &who));
    if (person->kind != WALKS_AWAY) assert_ok(lk_survey_code(t->survey, &who, person->code));
}

/* Ten people, two tasks each, who are slower than they are told; each task is paid. */
static void hold_a_pilot(void) {
    struct test_survey t;
    struct lk_text list = {0};
    struct lk_survey_counts counts;
    run("likeness survey gold sources -o survey", "");
    run("likeness survey new --from run --pilot 10 --minutes 18 --pay 4 -o survey/pilot.json",
        "100 edits in 2 tasks, all for each of 10 people");
    open_survey(&t, "pilot");
    assert_int_equal(t.study->n_tutorial, 4);
    lk_text_add(&list, "Submission id,Participant id,Status,Completion code\n");
    int64_t now = start;
    for (int p = 0; p < N_PILOT; p++)
        for (int task = 0; task < 2; task++) {
            struct person person = {.kind = HONEST};
            snprintf(person.id, sizeof person.id, "pilot%02d", p);
            take_part(&t, &person, &now);
            lk_text_add(&list, "s%d-%d,%s,AWAITING REVIEW,%s\n", p, task, person.id, person.code);
        }
    assert_ok(lk_survey_count(t.survey, now, &counts));
    assert_int_equal(counts.n_submitted, 2 * N_PILOT);
    assert_true(counts.time_off); /* 9 s for each of 263 questions: 39.5 minutes instead of 18 */
    assert_fails(lk_survey_pilot(t.survey, 1, now), LK_E_INPUT, "people have answered this survey");
    close_survey(&t);
    char path[500];
    snprintf(path, sizeof path, "%s/pilot_list.csv", folder);
    test_write(path, list.bytes, list.n);
    lk_text_free(&list);
    refuse("likeness survey new --from run --pilot 10 -o survey/pilot.json --overwrite", 2,
           "survey/pilot.json: people have answered it (");
    refuse("likeness survey pilot survey/pilot.json", 3, "pilot: people have answered this survey (");
    run("likeness survey export survey/pilot.json -o pilot_answers",
        "a task took 39.5 minutes, the median of 20, where participants are told 18: over 20 % off");
    run("likeness survey pay survey/pilot.json --platform pilot_list.csv --policy any -o pilot_payment && wc -l "
        "<pilot_payment/approve.csv",
        "20\n");
}

static void plant(struct person *people) {
    int at = 0;
    for (int kind = 1; kind < N_KINDS; kind++)
        for (int i = 0; i < n_of_kind[kind]; i++) people[at++].kind = (enum kind)kind;
    assert_true(at < N_MAIN / 2);
    for (int i = 0; i < N_MAIN; i++) snprintf(people[i].id, sizeof people[i].id, "rater%03d", i);
}

/* The platform's list, and beside it what each command has to say about it. */
struct truth {
    struct lk_text list, codes, approve, reject, by_hand, said;
};

static void list_person(struct truth *t, const struct person *person, const char *code, const char *said) {
    lk_text_add(&t->list, "s-%s,%s,AWAITING REVIEW,%s\n", person->id, person->id, code);
    if (!*code) return;
    lk_text_add(&t->codes, "%s,%s\n", person->id, code);
    lk_text_add(&t->said, "%s,%s%s\n", person->id, code, said);
}

static void expect_of(struct truth *t, const struct person *people) {
    const char *lent = people[N_MAIN - 1].code; /* of somebody honest */
    lk_text_add(&t->list, "Submission id,Participant id,Status,Completion code\n");
    for (int i = 0; i < N_MAIN; i++) {
        const struct person *p = &people[i];
        switch (p->kind) {
        case UNLISTED:
            continue;
        case HONEST:
        case REPEATER:
            lk_text_add(&t->approve, "%s\n", p->id);
            list_person(t, p, p->code, " valid");
            break;
        case SPEEDER:
        case STRAIGHT:
        case CARELESS:
        case SKIPPER:
            lk_text_add(&t->reject, "%s\n", p->id);
            list_person(t, p, p->code, " valid");
            break;
        case WALKS_AWAY: /* the platform counts it as given back too */
            lk_text_add(&t->list, "s-%s,%s,RETURNED,\n", p->id, p->id);
            break;
        case BORROWER: {
            char said[120];
            /* Of the list's lines with codes the lender's comes later. */
            snprintf(said, sizeof said, " NOT VALID: shared, it is another participant's%s", "");
            lk_text_add(&t->by_hand, "%s\n", p->id);
            list_person(t, p, lent, said);
            break;
        }
        case INVENTOR:
            lk_text_add(&t->by_hand, "%s\n", p->id);
            list_person(t, p, "AAAAAAAAAA", " NOT VALID: no submission has this code");
            break;
        case FORGETFUL:
            lk_text_add(&t->by_hand, "%s\n", p->id);
            list_person(t, p, "", "");
            break;
        default: /* STRANGER */
            lk_text_add(&t->by_hand, "%s\n", p->id);
            list_person(t, p, "BBBBBBBBBB", " NOT VALID: no submission has this code");
        }
    }
    for (int i = 0; i < N_MAIN; i++)
        if (people[i].kind == REPEATER) {
            lk_text_add(&t->by_hand, "%s\n", people[i].id);
            list_person(t, &people[i], people[i].code, " NOT VALID: used again");
        }
}

/* The lines of `got`, up to the first of `stops`, sorted, are those of `expected`. */
static void same_lines(const char *name, const char *got, const struct lk_text *expected) {
    char path[2][500], text[1200];
    snprintf(path[0], sizeof path[0], "%s/got", folder);
    snprintf(path[1], sizeof path[1], "%s/expected", folder);
    test_write(path[0], got, strlen(got));
    test_write(path[1], expected->bytes ? expected->bytes : "", expected->n);
    snprintf(text, sizeof text, "echo %s; sort got >a; sort expected >b; diff a b", name);
    free(command(text, 0));
}

static char *first_cells(const char *file, int column, bool head) {
    char text[300];
    snprintf(text, sizeof text, "tail -n +%d payment/%s | cut -d , -f %d | tr -d '\"'", head ? 2 : 1, file, column);
    return command(text, 0);
}

static void hold_the_campaign(struct truth *truth) {
    struct test_survey t;
    struct person people[N_MAIN] = {{.kind = HONEST}};
    char *list, path[500];
    size_t n, n_listed;
    run("likeness survey new --from run --tasks 100 -o survey/survey.json && sed -i 's/\"approval\": "
        "\"\"/\"approval\": "
        "\"X7\", \"min_seconds\": 0, \"claim_minutes\": 60/' survey/survey.json",
        "504 edits in 100 tasks, 20 % of them for 3 people, the others for one");
    open_survey(&t, "survey");
    snprintf(path, sizeof path, "%s/pilot_list.csv", folder);
    list = test_read(path, &n);
    assert_ok(lk_survey_block(t.survey, list, n, "pilot_list.csv", &n_listed));
    assert_int_equal(n_listed, N_PILOT);
    free(list);
    int64_t now = start;
    for (int p = 0; p < N_PILOT + 1; p++) { /* who was in the pilot; and nobody else */
        char id[24];
        bool refuses;
        snprintf(id, sizeof id, "pilot%02d", p);
        assert_ok(lk_survey_refuses(t.survey, id, now, &refuses));
        assert_int_equal(refuses, p < N_PILOT);
    }
    plant(people);
    for (int i = 0; i < N_MAIN; i++) {
        if (people[i].kind == STRANGER) continue;
        if (people[i].kind == BORROWER) { /* looks in and leaves */
            struct lk_survey_visitor who;
            char token[65];
            test_survey_person(&t, people[i].id, -1, now, token, &who);
            continue;
        }
        take_part(&t, &people[i], &now);
    }
    close_survey(&t);
    expect_of(truth, people);
    snprintf(path, sizeof path, "%s/list.csv", folder);
    test_write(path, truth->list.bytes, truth->list.n);
    snprintf(path, sizeof path, "%s/codes.csv", folder);
    test_write(path, truth->codes.bytes, truth->codes.n);
}

static void a_whole_campaign(void **state) {
    struct truth t = {.list = {0}};
    (void)state;
    make_run();
    hold_a_pilot();
    hold_the_campaign(&t);
    char *got =
        command("likeness survey codes survey/survey.json --verify codes.csv 2>err | sed 's/, as in line.*//'", 0);
    same_lines("codes", got, &t.said);
    free(got);
    got = command("likeness survey pay survey/survey.json --platform list.csv --policy any -o payment", 0);
    if (!strstr(got, "2 submissions")) fail_msg("%s", got); /* the unlisted are told */
    free(got);
    got = first_cells("approve.csv", 1, false), same_lines("approve", got, &t.approve), free(got);
    got = first_cells("bonus.csv", 1, false), same_lines("bonus", got, &t.approve), free(got);
    got = first_cells("reject.csv", 1, true), same_lines("reject", got, &t.reject), free(got);
    got = first_cells("by_hand.csv", 2, true), same_lines("by hand", got, &t.by_hand), free(got);
    run("likeness survey export survey/survey.json -o answers && wc -l <answers/participants.jsonl", "96");
    /* The platform's own table: 80 codes of their owners, 3 of them a second time; 3 + 5 lines without one. */
    run("likeness survey codes survey/survey.json --verify list.csv >said; test $? = 6; grep -c ' valid' said; grep -c "
        "'used again' said; grep -c 'no completion code' said",
        "80\n3\n8\n");
    run("grep -c 'CC BY 4.0' survey/survey.json answers/survey.json", "survey/survey.json:1\nanswers/survey.json:1\n");
    run("likeness report --from run --ratings answers/evaluations_exp1.jsonl --participants answers/participants.jsonl "
        "--protocol 001 --score-source human -o report >said && grep -c 'FairFace, Kimmo' report/report.html && cat "
        "report/tables/*.md",
        "1\n");
    struct lk_text *const all[] = {&t.list, &t.codes, &t.approve, &t.reject, &t.by_hand, &t.said};
    for (int i = 0; i < 6; i++) lk_text_free(all[i]);
    char remove[500];
    snprintf(remove, sizeof remove, "rm -rf '%s'", folder);
    assert_int_equal(system(remove), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_whole_campaign)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
