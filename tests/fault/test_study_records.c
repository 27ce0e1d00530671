/* What is done with a run when it is over: shards put together, pictures compared with their digests, a sample made
 * again. */
#include "tests/common/test.h"

#include <unistd.h>

#include "tests/common/tiny_study.h"

static char folder[800];
#define FIRST "results/exp1/flux/O/flux_20s_male_white_O-01.png"

static int make(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_path("study-records"));
    tiny_study_make(folder, 1, 1); /* 4 jobs */
    if (tiny_study_run(folder, "whole", NULL)) fail_msg("see %s/whole.log", folder);
    for (int k = 1; k <= 2; k++) {
        char out[8], shard[8];
        const char *const more[] = {"--shard", shard, NULL};
        snprintf(out, sizeof out, "part%d", k);
        snprintf(shard, sizeof shard, "%d/2", k);
        if (tiny_study_run(folder, out, more)) fail_msg("see %s/%s.log", folder, out);
    }
    return 0;
}

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...) {
    char command[4000];
    va_list args;
    int n = snprintf(command, sizeof command, "cd '%s' && ", folder);
    va_start(args, format);
    vsnprintf(command + n, sizeof command - (size_t)n, format, args);
    va_end(args);
    if (system(command)) fail_msg("%s", command);
}

static void expect(int code, const char *action, const char *out, const char *const *more, const char *said) {
    shell("rm -f '%s.log'", out);
    int got = tiny_study_wait(tiny_study_start(folder, out, action, more));
    if (got != code) fail_msg("%s %s: exit code %d; see %s/%s.log", action, out, got, folder, out);
    shell("grep -q -e '%s' '%s.log'", said, out);
}

static void changed_pictures_are_named(void **state) {
    const char *const requeue[] = {"--requeue", NULL};
    (void)state;
    shell("cp -r whole verified");
    expect(0, "verify", "verified", NULL, "^4 pictures, 0 not as recorded$");
    shell("printf x | dd of=verified/" FIRST " seek=60 bs=1 conv=notrunc status=none"); /* as long as before */
    expect(3, "verify", "verified", NULL, "^flux_20s_male_white_O-01: changed$");
    shell("grep -q '^error: .*verified: 1 of 4 pictures are gone or changed' verified.log");
    expect(3, "verify", "verified", requeue, "^4 pictures, 1 not as recorded$");
    expect(0, "run", "verified", NULL, "success 2");
    tiny_study_same(folder, "verified", "whole");
    shell("rm verified/" FIRST);
    expect(3, "verify", "verified", NULL, "^flux_20s_male_white_O-01: gone$");
}

static void a_difference_is_found_by_making_it_again(void **state) {
    const char *const all[] = {"--sample", "100%", NULL};
    (void)state;
    shell("cp -r whole again");
    expect(0, "rerun", "again", all, "^4 pictures made again, 0 differ$");
    shell("sha=$(sha256sum <again/" FIRST " | cut -c 1-64); other=$(echo $sha | tr 0-9a-f 1-9a-f0); "
          "LC_ALL=C sed -i s/$sha/$other/g again/journal.sqlite");
    expect(3, "rerun", "again", all, "^4 pictures made again, 1 differ$");
    shell("grep -q '^flux_20s_male_white_O-01: differs, see .*/again/rerun/" FIRST "$' again.log && test -f "
          "again/rerun/" FIRST);
}

static void runs_of_other_folders_are_put_together(void **state) {
    char one[900], two[900], other[900];
    const char *const both[] = {one, two, NULL}, *const wrong[] = {other, NULL};
    (void)state;
    snprintf(one, sizeof one, "%s/part1", folder);
    snprintf(two, sizeof two, "%s/part2", folder);
    snprintf(other, sizeof other, "%s/other/out", folder);
    expect(6, "merge", "sum", &both[1], "2 of 4 jobs were not made by any shard");
    expect(0, "merge", "sum", both, "^step1x   nominal 2  success 2  failed 0$");
    tiny_study_same(folder, "sum", "whole");
    expect(0, "verify", "sum", NULL, "^4 pictures, 0 not as recorded$");
    shell("cmp sum/study.json whole/study.json");
    /* What is here stays as it is; a picture that is not what was recorded does not get in. */
    shell("printf x >>part1/" FIRST);
    expect(0, "merge", "sum", both, "success 2");
    tiny_study_same(folder, "sum", "whole");
    expect(3, "merge", "sum2", both, "O-01.png: is not as recorded");
    shell("test ! -e sum2/" FIRST);
    shell("mkdir other && cp *.png sources.csv other && sed 's/\"num_inference_steps\": 1/\"num_inference_steps\": 2/' "
          "study.json >other/study.json");
    snprintf(folder + strlen(folder), 8, "/other");
    int code = tiny_study_run(folder, "out", NULL);
    *strrchr(folder, '/') = 0;
    assert_int_equal(code, 0);
    expect(6, "merge", "sum3", wrong,
           "made with other settings than this study asks for: models.*num_inference_steps: 2 and 1");
    shell("test ! -e sum3 && mkdir sum4");
    expect(3, "merge", "sum4", NULL, "no shard was run here");
    shell("rmdir sum4"); /* nothing is in it */
    shell("mkdir again2 && cp -r other/out/journal.sqlite again2");
    expect(3, "rerun", "again2", NULL, "is of another study");
}

/* Two whole runs, each as its journal says, with different pictures of one job. */
static void runs_that_contradict_are_not_put_together(void **state) {
    char one[900], two[900];
    const char *const orders[2][3] = {{one, two, NULL}, {two, one, NULL}};
    (void)state;
    snprintf(one, sizeof one, "%s/whole", folder);
    snprintf(two, sizeof two, "%s/changed", folder);
    shell("cp -r whole changed && old=$(sha256sum <changed/" FIRST " | cut -c 1-64); printf x | dd of=changed/" FIRST
          " seek=60 bs=1 conv=notrunc status=none; new=$(sha256sum <changed/" FIRST " | cut -c 1-64); "
          "LC_ALL=C sed -i s/$old/$new/g changed/journal.sqlite");
    expect(0, "verify", "changed", NULL, "^4 pictures, 0 not as recorded$");
    for (int k = 0; k < 2; k++) {
        const char *const *order = orders[k];
        expect(6, "merge", "conflict", order, ": field .sha256. of flux_20s_male_white_O-01: expected ");
        shell("test ! -e conflict && grep -q '^error: .*whole/journal.sqlite.*(1 jobs have two pictures' conflict.log");
        const char *const prefer[] = {order[0], order[1], "--prefer", two, NULL};
        expect(0, "merge", "preferred", prefer, "^step1x   nominal 2  success 2  failed 0$");
        expect(0, "verify", "preferred", NULL, "^4 pictures, 0 not as recorded$");
        shell("cmp preferred/" FIRST " changed/" FIRST " && rm -r preferred");
    }
    /* Into a folder that has one of them already. */
    const char *const first[] = {one, NULL}, *const second[] = {two, NULL};
    const char *const prefer[] = {two, "--prefer", two, NULL}, *const stranger[] = {two, "--prefer", one, NULL};
    expect(0, "merge", "kept", first, "success 2");
    expect(6, "merge", "kept", second, "field .sha256. of flux_20s_male_white_O-01: expected ");
    shell("cmp kept/" FIRST " whole/" FIRST);
    expect(2, "merge", "kept", stranger, "^error: --prefer: expected one of the runs");
    expect(0, "merge", "kept", prefer, "success 2");
    expect(0, "verify", "kept", NULL, "^4 pictures, 0 not as recorded$");
    shell("cmp kept/" FIRST " changed/" FIRST);
}

/* One that was killed before it had its jobs is no run. */
static void a_journal_without_jobs_is_passed_over(void **state) {
    (void)state;
    shell("cp -r part2 begun && mkdir begun/shards/3-of-3 && : >begun/shards/3-of-3/journal.sqlite");
    expect(0, "status", "begun", NULL, "^flux     nominal 1  success 1 ");
    shell("rm -r begun/shards/2-of-2");
    expect(3, "status", "begun", NULL, "no study was run here");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_pictures_are_named),
        cmocka_unit_test(a_difference_is_found_by_making_it_again),
        cmocka_unit_test(runs_of_other_folders_are_put_together),
        cmocka_unit_test(runs_that_contradict_are_not_put_together),
        cmocka_unit_test(a_journal_without_jobs_is_passed_over),
    };
    return cmocka_run_group_tests(tests, make, NULL);
}
