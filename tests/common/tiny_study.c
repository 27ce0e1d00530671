#include "tests/common/tiny_study.h"

#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/image/image.h"
#include "eval/study/factors.h"
#include "tests/common/test.h"
#include "tools/cli/cli.h"

struct tiny_faults *tiny_faults;

void tiny_study_make(const char *folder, int n_sources, int n_steps) {
    char path[1200], here[PATH_MAX];
    struct lk_text sources = {0}, names = {0}, study = {0};
    if (!tiny_faults)
        tiny_faults = mmap(NULL, sizeof *tiny_faults, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(tiny_faults, MAP_FAILED);
    assert_non_null(getcwd(here, sizeof here));
    tiny_study_remove(folder, "");
    assert_int_equal(mkdir(folder, 0777), 0);
    lk_text_add(&sources, "path,race,gender,age\n");
    for (int i = 0; i < n_sources; i++) {
        int race, gender, age;
        char id[48];
        struct lk_image image;
        lk_source_factors(7 * i, &race, &gender, &age);
        lk_source_id(7 * i, id);
        lk_text_add(&sources, "%s.png,%s,%s,%s\n", id, lk_factor_key(LK_FACTOR_RACE, race),
                    lk_factor_key(LK_FACTOR_GENDER, gender), lk_factor_key(LK_FACTOR_AGE, age));
        lk_text_add(&names, "%s\"%s\"", i ? ", " : "", id);
        assert_ok(lk_image_new(&image, 64, 64, 3));
        uint64_t random = (uint64_t)i + 1;
        for (int k = 0; k < 64 * 64 * 3; k++) image.pixels[k] = (uint8_t)test_random(&random);
        snprintf(path, sizeof path, "%s/%s.png", folder, id);
        assert_ok(lk_png_write(path, &image, NULL, 0));
        lk_image_free(&image);
    }
    snprintf(path, sizeof path, "%s/sources.csv", folder);
    test_write(path, sources.bytes, sources.n);
    lk_text_add(&study,
                "{\"schema\": 1, \"study\": \"tiny\", \"sources\": \"sources.csv\", \"models\": {\"flux\": {\"path\": "
                "\"%s/golden/data/flux2/rich/checkpoint\", \"num_inference_steps\": %d, \"max_sequence_length\": 40, "
                "\"allow_cut\": true, "
                "\"text_encoder_out_layers\": [1, 2, 3], \"width\": 32, \"height\": 32}, \"step1x\": {\"path\": "
                "\"%s/golden/data/step1x/plain/checkpoint\", \"num_inference_steps\": %d, \"allow_steps\": true, "
                "\"size_level\": 32}}, \"experiments\": {\"exp1\": {\"preset\": \"custom\", \"prompts\": [\"O-01\", "
                "\"V-01\"], \"sources\": [%s]}}}",
                here, n_steps, here, n_steps, names.bytes);
    snprintf(path, sizeof path, "%s/study.json", folder);
    test_write(path, study.bytes, study.n);
    lk_text_free(&sources);
    lk_text_free(&names);
    lk_text_free(&study);
}

pid_t tiny_study_start(const char *folder, const char *out, const char *action, const char *const *more) {
    char study[1200], output[1200], log[1200];
    const bool makes = !strcmp(action, "run") || !strcmp(action, "rerun");
    const char *argv[32] = {"likeness", "study", action, study, "-o", output, "--threads", "1"};
    int argc = makes ? 8 : 6;
    struct cli_arguments arguments;
    snprintf(study, sizeof study, "%s/study.json", folder);
    snprintf(output, sizeof output, "%s/%s", folder, out);
    if (!strcmp(action, "verify") || !strcmp(action, "status")) argv[3] = output, argc = 4;
    snprintf(log, sizeof log, "%s/%s.log", folder, out);
    while (more && *more) argv[argc++] = *more++;
    fflush(NULL);
    pid_t child = fork();
    if (child) return child;
    setpgid(0, 0);
    if (!freopen(log, "a", stdout) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0) _exit(99);
    lk_log_open(false, false);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGSEGV, SIG_DFL); /* cmocka has its own */
    enum lk_code rc = cli_arguments_parse(&arguments, argc, argv);
    if (!rc) rc = cli_study(&arguments);
    if (rc) lk_log(LK_LOG_ERROR, "%s", lk_error_text());
    fflush(NULL);
    _exit(cli_exit_code(rc));
}

int tiny_study_wait(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int tiny_study_run(const char *folder, const char *out, const char *const *more) {
    return tiny_study_wait(tiny_study_start(folder, out, "run", more));
}

static void shell(const char *what, const char *format, const char *folder, const char *a, const char *b) {
    char command[4000];
    snprintf(command, sizeof command, format, folder, a, b);
    if (system(command)) fail_msg("%s: %s", what, command);
}

void tiny_study_same(const char *folder, const char *out, const char *expected) {
    shell("pictures differ", "cd '%s' && diff -r '%s/results' '%s/results'", folder, out, expected);
    shell("manifests differ",
          "cd '%s' && for f in '%s' '%s'; do sed -E 's/\"seconds\":[0-9.]+,\"started_at\":\"[^\"]*\"//' "
          "$f/manifest.jsonl >$f.plain || exit 1; done && cmp *.plain && rm *.plain",
          folder, out, expected);
}

void tiny_study_remove(const char *folder, const char *out) { shell("", "rm -rf '%s'/%s'%s'", folder, out, ""); }
