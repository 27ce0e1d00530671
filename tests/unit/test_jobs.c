/* Lists of jobs: what a line says, what the command line says for all, and what is refused. */
#include "tests/common/test.h"
#include "tools/cli/edit/job.h"

static struct cli_job given;

static enum lk_code read_list(struct cli_jobs *jobs, const char *text) {
    jobs->file = test_path("jobs.jsonl");
    test_write(jobs->file, text, strlen(text));
    return cli_jobs_read(jobs, &given);
}

static void lines(void **state) {
    struct cli_jobs jobs = {0};
    (void)state;
    assert_ok(read_list(&jobs, "{\"output\": \"a\", \"prompt\": \"x\", \"images\": [\"p\", \"q\"]}\r\n"
                               "\n"
                               " {\"output\": \"b\", \"seed\": 9007199254740993, \"exif_transpose\": false}"));
    assert_int_equal(jobs.n, 2);
    const struct cli_job *a = &jobs.list[0], *b = &jobs.list[1];
    assert_string_equal(a->job.request.prompt, "x");
    assert_string_equal(b->job.request.prompt, "for all");
    assert_int_equal(a->job.request.seed, 5);
    assert_true(b->job.request.seed == 9007199254740993u);
    assert_true(a->job.run.exif_transpose && !b->job.run.exif_transpose);
    assert_int_equal(a->n_images, 2);
    assert_string_equal(a->images[1], test_path("q")); /* beside the list */
    assert_int_equal(b->n_images, 1);
    assert_string_equal(b->images[0], "face");
    assert_string_equal(b->output, test_path("b"));
    assert_string_equal(b->where, "line 3");
    assert_true(lk_job_given(&a->job, lk_parameter_named("prompt")));
    assert_false(lk_job_given(&a->job, lk_parameter_named("width")));
    cli_jobs_free(&jobs);
}

static void refused(void **state) {
    static const struct {
        const char *text, *part;
        enum lk_code code;
    } cases[] = {
        {"{\"output\": \"a\"}\n{\"output\": 1}", "line 2: field \"output\": expected a string", LK_E_CONFIG_TYPE},
        {"{\"prompt\": \"a\"}", "line 1: field \"output\"", LK_E_CONFIG_KEY},
        {"{\"output\": \"a\", \"dtype\": \"f32\"}", "field \"dtype\": is one for all jobs", LK_E_CONFIG_VALUE},
        {"{\"output\": \"a\", \"threads\": 2}", "field \"threads\": is one for all jobs", LK_E_CONFIG_VALUE},
        {"{\"output\": \"a\", \"steps\": 2}", "unknown field: \"steps\"", LK_E_CONFIG_KEY},
        {"\n\n{\"output\": \"a\", \"width\": 0}", "line 3: field \"width\"", LK_E_CONFIG_VALUE},
        {"[]", "line 1", LK_E_JSON},
        {"", "expected a JSON object a line", LK_E_INPUT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli_jobs jobs = {0};
        assert_fails(read_list(&jobs, cases[i].text), cases[i].code, cases[i].part);
        cli_jobs_free(&jobs);
    }
    given.job.request.prompt = NULL;
    struct cli_jobs jobs = {0};
    assert_fails(read_list(&jobs, "{\"output\": \"a\"}"), LK_E_CONFIG_KEY, "line 1: field \"prompt\": missing");
    cli_jobs_free(&jobs);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(refused)};
    lk_job_init(&given.job);
    given.job.request.seed = 5;
    given.job.request.prompt = "for all";
    given.images[0] = "face";
    given.n_images = 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
