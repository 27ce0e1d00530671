/* A study whose model is asked over the network: what came of each job stands in journal and manifest, refusals are
 * asked once, order knows no group, and the key is nowhere. */
#include <cjson/cJSON.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/image/image.h"
#include "eval/design/study.h"
#include "eval/study/journal.h"
#include "tests/common/scripted_server.h"
#include "tests/common/test.h"
#include "tests/common/tiny_study.h"
#include "tools/cli/cli.h"

#define KEY     "sk-very-s3cret"
#define BAD     "HTTP/1.1 400 Bad Request\r\n"
#define REFUSAL "{\"error\":{\"code\":\"moderation_blocked\",\"message\":\"Your request " KEY " was rejected\"}}"

enum { SIDE = 16, N_SOURCES = 6, N_PROMPTS = 2, N_JOBS = N_SOURCES * N_PROMPTS };
static char folder[1100];
static char *pictures[N_JOBS];

static char *reply_with(unsigned seed, int spread) {
    struct lk_image image;
    struct lk_text text = {0};
    void *png;
    size_t n;
    uint64_t random = seed + 1;
    assert_ok(lk_image_new(&image, SIDE, SIDE, 3));
    for (int i = 0; i < SIDE * SIDE * 3; i++) image.pixels[i] = spread ? (uint8_t)(test_random(&random) % spread) : 0;
    assert_ok(lk_png_encode("picture", &image, &png, &n));
    lk_text_add(&text, "{\"data\":[{\"b64_json\":\"");
    lk_text_base64(&text, png, n);
    lk_text_add(&text, "\"}]}");
    lk_free(png);
    lk_image_free(&image);
    assert_int_equal(text.rc, LK_OK);
    return text.bytes;
}

/* Sources of two groups, in the order of the groups. */
static void make_study(const char *url, const char *experiments) {
    struct lk_text study = {0};
    char path[1200];
    tiny_study_remove(folder, "");
    assert_int_equal(mkdir(folder, 0777), 0);
    lk_text_add(&study, "{\"schema\": 2, \"study\": \"asked\", \"attributes\": [{\"name\": \"group\", \"levels\": "
                        "[\"a\", \"b\"]}], \"sources\": [");
    for (int i = 0; i < N_SOURCES; i++) {
        struct lk_image image;
        assert_ok(lk_image_new(&image, SIDE, SIDE, 3));
        memset(image.pixels, 10 + i, SIDE * SIDE * 3);
        snprintf(path, sizeof path, "%s/s%d.png", folder, i);
        assert_ok(lk_png_write(path, &image, NULL, 0));
        lk_image_free(&image);
        lk_text_add(&study, "%s{\"id\": \"s%d\", \"path\": \"s%d.png\", \"group\": \"%s\"}", i ? ", " : "", i, i,
                    2 * i < N_SOURCES ? "a" : "b");
    }
    lk_text_add(&study,
                "], \"prompts\": [{\"id\": \"p0\", \"text\": \"Red hair\", \"category\": \"H\"}, {\"id\": \"p1\", "
                "\"text\": \"A hat\", \"category\": \"H\"}], \"models\": {\"far\": {\"label\": \"Far\", \"hosted\": "
                "{\"images_url\": \"%s\", \"model\": \"gpt-image-1\", \"set\": {\"quality\": \"low\"}, "
                "\"repeat_refused\": 1}}}, \"experiments\": %s}",
                url, experiments);
    snprintf(path, sizeof path, "%s/study.json", folder);
    test_write(path, study.bytes, study.n);
    lk_text_free(&study);
}

static int begin(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_path("hosted-study"));
    setenv("OPENAI_API_KEY", KEY, 1);
    for (unsigned i = 0; i < N_JOBS; i++) pictures[i] = reply_with(i, 256);
    return 0;
}

static int end(void **state) {
    (void)state;
    for (int i = 0; i < N_JOBS; i++) lk_free(pictures[i]);
    return 0;
}

static int run(const char *more) {
    const char *const list[] = {"--queue", "1", "--devices", "cpu", more, NULL};
    return tiny_study_run(folder, "out", list);
}

/* A path below the run, and the file's text. */
static char *read_of(const char *name) {
    char path[1400];
    size_t n;
    snprintf(path, sizeof path, "%s/out/%s", folder, name);
    return test_read(path, &n);
}

static bool shell(const char *format) {
    char command[3000];
    snprintf(command, sizeof command, format, folder, folder);
    return system(command) == 0;
}

static struct lk_journal_counts counts_of_run(void) {
    struct lk_journal *journal;
    struct lk_journal_counts counts;
    char path[1300];
    snprintf(path, sizeof path, "%s/out/journal.sqlite", folder);
    assert_ok(lk_journal_open(&journal, path, NULL));
    assert_ok(lk_journal_count(journal, &counts));
    lk_journal_close(journal);
    return counts;
}

/* How many lines of the manifest have a member of this value. */
static int n_with(const char *manifest, const char *text) {
    int n = 0;
    for (const char *at = manifest; (at = strstr(at, text)); at += strlen(text)) n++;
    return n;
}

struct ordered {
    char id[65];
    int source;
};

static int by_id(const void *a, const void *b) {
    return strcmp(((const struct ordered *)a)->id, ((const struct ordered *)b)->id);
}

/* Jobs are asked in the order of their digests, in which groups have no place; the second and third are asked twice. */
static void expect_order(void) {
    struct ordered list[N_JOBS];
    struct lk_study *study;
    struct lk_study_job job;
    char path[1200];
    snprintf(path, sizeof path, "%s/study.json", folder);
    assert_ok(lk_study_open(&study, path));
    for (size_t i = 0; i < N_JOBS; i++) {
        assert_ok(lk_study_job(study, i, &job));
        list[i].source = job.sources[0];
        strcpy(list[i].id, job.id);
    }
    lk_study_close(study);
    qsort(list, N_JOBS, sizeof *list, by_id);
    for (int i = 0; i < server.n_seen; i++) {
        const int at = i < 2 ? i : i < 4 ? (i + 1) / 2 : i - 2;
        const char *png = memmem(server.seen[i], server.n_seen_bytes[i], "image/png\r\n\r\n", 13);
        struct lk_image image;
        assert_non_null(png);
        assert_ok(lk_image_decode(&image, png + 13, server.n_seen_bytes[i] - (size_t)(png + 13 - server.seen[i]) - 57,
                                  "what was sent", 0, 0));
        assert_int_equal(image.pixels[0], 10 + list[at].source);
        lk_image_free(&image);
    }
}

static void edits(void **state) {
    (void)state;
    char *black = reply_with(0, 0), *soft = reply_with(9, 8);
    struct step steps[N_JOBS + 2];
    int n = 0;
    for (int i = 0; i < N_JOBS; i++) steps[n++] = (struct step){.head = OK, .body = pictures[i]};
    steps[1] = (struct step){.head = BAD, .body = REFUSAL};
    steps[2] = (struct step){.head = OK, .body = pictures[2]}; /* the refusal, asked about again: made this time */
    steps[3] = (struct step){.head = OK, .body = black};
    steps[4] = (struct step){.head = BAD, .body = REFUSAL}; /* the placeholder, again */
    steps[6] = (struct step){.head = BAD, .body = "{\"error\":{\"message\":\"too long\"}}"};
    for (int i = 7; i < N_JOBS + 2; i++) steps[i] = (struct step){.head = OK, .body = pictures[i < 12 ? 0 : i - 5]};
    steps[13].body = soft;
    make_study(scripted_start(steps, N_JOBS + 2), "{\"exp1\": {}}");

    assert_int_equal(run(NULL), 2); /* pictures of people are not sent without a word */
    assert_int_equal(server.n_seen, 0);
    assert_int_equal(run("--send-pictures"), 6);
    /* The first made picture came for five more jobs, of other sources: it is a filter's. */
    const struct lk_journal_counts counts = counts_of_run();
    const int64_t n_refused = counts.all[LK_JOB_REFUSED];
    assert_int_equal(counts.all[LK_JOB_FAILED], 1);
    assert_int_equal(counts.all[LK_JOB_DONE] + n_refused, N_JOBS - 1);
    assert_in_range(n_refused, 2 + 5, 2 + 6);
    char *manifest = read_of("manifest.jsonl");
    assert_int_equal(n_with(manifest, "\"status\":\"success\""), counts.all[LK_JOB_DONE]);
    assert_int_equal(n_with(manifest, "\"status\":\"refused\""), 1);
    assert_int_equal(n_with(manifest, "\"status\":\"placeholder\""), n_refused - 1);
    assert_int_equal(n_with(manifest, "\"status\":\"failed\""), 1);
    assert_int_equal(n_with(manifest, "\"code\":\"black\""), 1);
    assert_int_equal(n_with(manifest, "\"code\":\"repeated\""), n_refused - 2);
    assert_int_equal(n_with(manifest, "\"n_asked\":2,\"n_refused\":1,\"repeats\":[{\"outcome\":\"made\""), 1);
    assert_int_equal(n_with(manifest, "\"n_asked\":2,\"n_refused\":2,\"repeats\":[{\"outcome\":\"refused\""), 1);
    assert_int_equal(n_with(manifest, "\"output_path\":\"placeholders/exp1/far/"), n_refused - 1);
    free(manifest);
    assert_true(shell("test $(find '%s/out/results' -name '*.png' | wc -l) = $(grep -c '\"success\"' "
                      "'%s/out/manifest.jsonl')"));
    assert_true(shell("test $(wc -l <'%s/out/answers.jsonl') = 12"));
    assert_true(shell("test $(grep -c 'far less sharp' '%s/out.log') = 1"));
    assert_false(shell("grep -rq '" KEY "' '%s'"));
    assert_true(shell("grep -q '\\*\\*\\*\\*\\*\\*' '%s/out/answers.jsonl'"));

    for (int i = 0; i < server.n_seen; i++) /* what is not said is false */
        assert_null(memmem(server.seen[i], server.n_seen_bytes[i], "name=\"seed\"", 11));
    char *resolved = read_of("study.json");
    assert_non_null(strstr(resolved, "\"seed_field\": false, \"repeat_refused\": 1, \"fetch_urls\": false"));
    free(resolved);

    expect_order();
    scripted_stop();
    /* Nobody is asked again. */
    assert_int_equal(run("--send-pictures"), 6);
    lk_free(black);
    lk_free(soft);
}

static enum lk_code expect_no_attempt(void *context, const struct lk_journal_row *row) {
    (void)context;
    assert_int_equal(row->attempts, 0);
    return LK_OK;
}

/* A service that takes nobody stops the run; what was answered stays, and the same command goes on. */
static void a_lost_key(void **state) {
    (void)state;
    struct step steps[1 + N_JOBS] = {{.head = OK, .body = pictures[0]},
                                     {.head = "HTTP/1.1 401 No\r\n", .body = "{\"error\":{\"message\":\"" KEY "\"}}"}};
    make_study(scripted_start(steps, 2), "{\"exp1\": {}}");
    assert_int_equal(run("--send-pictures"), 3);
    struct lk_journal_counts counts = counts_of_run();
    assert_int_equal(counts.all[LK_JOB_DONE], 1);
    assert_int_equal(counts.all[LK_JOB_QUEUED] + counts.all[LK_JOB_LEASED], N_JOBS - 1);
    assert_false(shell("grep -rq '" KEY "' '%s'"));
    assert_true(shell("grep -q 'OPENAI_API_KEY' '%s/out.log'"));
    struct lk_journal *journal;
    char path[1300];
    snprintf(path, sizeof path, "%s/out/journal.sqlite", folder);
    assert_ok(lk_journal_open(&journal, path, NULL));
    assert_ok(lk_journal_each(journal, LK_JOB_QUEUED, false, expect_no_attempt, NULL)); /* it is no fault of a job's */
    lk_journal_close(journal);
    scripted_stop();
}

/* A service is asked a table of prompts by one command; the log says what came of each. */
static void prompts_by_one_command(void **state) {
    (void)state;
    static const char table[] =
        "prompt_id,role_label,natural_prompt\n7,a thief,A thief runs.\n8,a juggler,A juggler.\n";
    const struct step steps[] = {{.head = OK, .body = pictures[0]},
                                 {.head = BAD, .body = REFUSAL},
                                 {.head = OK, .body = pictures[1]},
                                 {.head = OK, .body = pictures[2]}};
    char csv[1200], out[1200];
    const char *url = scripted_start(steps, 4);
    make_study(url, "{\"exp1\": {}}");
    snprintf(csv, sizeof csv, "%s/prompts.csv", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    test_write(csv, table, sizeof table - 1);
    const char *const argv[] = {"likeness", "t2i", "ask",   "--images-url",  url,  "-m", "dall-e-3", "--csv", csv,
                                "--seeds",  "0:1", "--set", "style=natural", "-o", out};
    fflush(NULL);
    const pid_t child = fork();
    if (!child) {
        struct cli_arguments arguments;
        if (!freopen("/dev/null", "w", stdout) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0) _exit(99);
        enum lk_code rc = cli_arguments_parse(&arguments, sizeof argv / sizeof *argv, argv);
        if (!rc) rc = cli_t2i(&arguments);
        _exit(cli_exit_code(rc));
    }
    assert_int_equal(tiny_study_wait(child), 0);
    for (int i = 0; i < 4; i++) assert_non_null(strstr(server.seen[i], "\"style\":\"natural\",\"response_format\":"));
    scripted_stop();
    char *log = read_of("generation_log.csv");
    assert_int_equal(n_with(log, ",dall-e-3,"), 4);
    assert_int_equal(n_with(log, ",made,,,200,"), 3);
    assert_int_equal(n_with(log, ",,none,,text,,,,,,,,refused,input,moderation_blocked,400,Your request ****"), 1);
    free(log);
    assert_false(shell("grep -rq '" KEY "' '%s'"));
}

static int ask_with_seeds(const char *url) {
    char study[700], path[1200];
    make_study(url, "{\"exp1\": {}}");
    snprintf(path, sizeof path, "%s/study.json", folder);
    snprintf(
        study, sizeof study,
        "{\"schema\": 2, \"study\": \"s\", \"models\": {\"far\": {\"hosted\": {\"images_url\": \"%s\", \"model\": "
        "\"qwen\", \"seed_field\": true}}}, \"experiments\": {\"t2i\": {\"table\": \"p.csv\", \"seeds\": \"7:8\"}}}",
        url);
    test_write(path, study, strlen(study));
    snprintf(path, sizeof path, "%s/p.csv", folder);
    static const char table[] = "prompt_id,role_label,natural_prompt\n7,a thief,A thief runs.\n";
    test_write(path, table, sizeof table - 1);
    return run(NULL);
}

/* A server that is said to take seeds is tried once: two requests with one seed, bytes equal or not. */
static void seeds_are_tried(void **state) {
    (void)state;
    for (int same = 0; same < 2; same++) {
        const struct step steps[] = {{.head = OK, .body = pictures[0]},
                                     {.head = OK, .body = pictures[same ? 0 : 2]},
                                     {.head = OK, .body = pictures[1]}};
        assert_int_equal(ask_with_seeds(scripted_start(steps, 3)), 0);
        const char *first = strstr(server.seen[0], "\"seed\":");
        assert_non_null(first);
        assert_non_null(strstr(server.seen[1], first)); /* the same question */
        assert_null(strstr(server.seen[2], first));
        scripted_stop();
        char *manifest = read_of("manifest.jsonl");
        assert_int_equal(n_with(manifest, same ? "\"seed_honoured\":true" : "\"seed_honoured\":false"), 1);
        assert_int_equal(n_with(manifest, "seed_honoured"), 1);
        free(manifest);
    }
}

/* Under the name of a model of the documents too: its report would not know of refusals. */
static void a_hosted_model_is_none_of_the_documents(void **state) {
    (void)state;
    static const char text[] = "{\"schema\": 2, \"study\": \"s\", \"models\": {\"flux\": {\"hosted\": {\"images_url\": "
                               "\"http://h/v1\", \"model\": \"m\"}}}, \"experiments\": {\"t2i\": {}}}";
    struct lk_study *study;
    make_study("http://h", "{\"exp1\": {}}");
    char path[1200];
    snprintf(path, sizeof path, "%s/study.json", folder);
    assert_ok(lk_study_parse(&study, text, sizeof text - 1, path));
    assert_true(lk_study_is_portrait(study));
    assert_false(lk_study_is_documented(study));
    lk_study_close(study);
}

static void what_a_study_file_may_not_say(void **state) {
    (void)state;
    static const struct {
        const char *hosted, *says;
    } cases[] = {
        {"\"hosted\": {\"model\": \"m\"}", "images_url"},
        {"\"hosted\": {\"images_url\": \"http://h/v1\"}", "hosted.model"},
        {"\"hosted\": {\"images_url\": \"https://me:key@h/v1\", \"model\": \"m\"}", "OPENAI_API_KEY"},
        {"\"hosted\": {\"images_url\": \"https://h/v1?key=1\", \"model\": \"m\"}", "OPENAI_API_KEY"},
        {"\"hosted\": {\"images_url\": \"ftp://h\", \"model\": \"m\"}", "expected http"},
        {"\"hosted\": {\"images_url\": \"http://h\", \"model\": \"m\", \"key\": \"k\"}", "key\": unknown"},
        {"\"hosted\": {\"images_url\": \"http://h\", \"model\": \"m\", \"set\": {\"n\": 4}}", "beside model"},
        {"\"hosted\": {\"images_url\": \"http://h\", \"model\": \"m\", \"set\": {\"size\": \"a\", \"seed\": 4}}",
         "hosted.set\": expected at most 32"},
        {"\"hosted\": {\"images_url\": \"http://h\", \"model\": \"m\", \"set\": {\"size\": [1]}}", "set.size"},
        {"\"path\": \"x\", \"hosted\": {\"images_url\": \"http://h\", \"model\": \"m\"}", "hosted alone"},
        {"\"num_inference_steps\": 4, \"hosted\": {\"images_url\": \"http://h\", \"model\": \"m\"}", "no such"},
    };
    make_study("http://h", "{\"exp1\": {}}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_study *study;
        char text[600], path[1200];
        snprintf(path, sizeof path, "%s/study.json", folder);
        snprintf(text, sizeof text,
                 "{\"schema\": 2, \"study\": \"s\", \"models\": {\"far\": {%s}}, \"experiments\": "
                 "{\"t2i\": {}}}",
                 cases[i].hosted);
        assert_int_not_equal(lk_study_parse(&study, text, strlen(text), path), LK_OK);
        if (!strstr(lk_error_text(), cases[i].says)) fail_msg("case %zu: %s", i, lk_error_text());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits),
        cmocka_unit_test(a_lost_key),
        cmocka_unit_test(prompts_by_one_command),
        cmocka_unit_test(seeds_are_tried),
        cmocka_unit_test(a_hosted_model_is_none_of_the_documents),
        cmocka_unit_test(what_a_study_file_may_not_say),

    };
    return cmocka_run_group_tests(tests, begin, end);
}
