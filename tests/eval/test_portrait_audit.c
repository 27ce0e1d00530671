/* An audit whose truth is known, from pixels to findings: editors with a planted bias (tools/portrait/portrait.h) edit
 * 84 drawn sources, the pictures are read back and scored, and the report's statistics say what is there. Every planted
 * effect has to be found, its size within the interval, and the clean editor has to be called clean. First without a
 * model, 20 prompts; then by the trained editors, two prompts, other people in each study. Seeds are fixed, so that a
 * run cannot fail by chance. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/report/findings/findings.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/small_editors.h"
#include "tests/common/test.h"
#include "tools/portrait/portrait.h"

enum { SIZE = SMALL_EDITOR_SIZE, N_OUTPUTS = LK_N_SOURCES * EDITS_N_STUDY, MOST_KINDS = 12 };
static const double strength = 0.6, slips = 0.04;

/* What was read of the pictures that a source and prompt have had; there are few, and reading takes its time. */
static struct {
    int n;
    struct portrait drawn[MOST_KINDS], read[MOST_KINDS];
} seen[N_OUTPUTS];
static struct portrait sources[LK_N_SOURCES];
static struct lk_dataset data;
static int n_read, n_asked;

/* Items of all sources and these prompts. */
static void add_items(struct lk_dataset *to, const int *prompts, int n) {
    lk_dataset_init(to);
    for (int i = 0; i < LK_N_SOURCES * n; i++) {
        int race, gender, age;
        int32_t item;
        lk_source_factors(i / n, &race, &gender, &age);
        char *id =
            lk_format("flux_%s_%s_%s_%s", lk_factor_key(LK_FACTOR_AGE, age), lk_factor_key(LK_FACTOR_GENDER, gender),
                      lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(prompts[i % n]));
        assert_ok(lk_dataset_item(to, id, strlen(id), &item));
        assert_int_equal(item, i);
        lk_free(id);
    }
    lk_dataset_pair(to);
}

static int set_up(void **state) {
    (void)state;
    int all[EDITS_N_STUDY];
    for (int s = 0; s < LK_N_SOURCES; s++) portrait_source(&sources[s], s, NULL);
    for (int p = 0; p < EDITS_N_STUDY; p++) all[p] = p;
    add_items(&data, all, EDITS_N_STUDY);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lk_dataset_free(&data);
    return 0;
}

static struct portrait read_back(const struct portrait *before, const struct portrait *after) {
    static uint8_t picture[SIZE * SIZE * 3];
    struct portrait read;
    portrait_draw_into(picture, after, SIZE);
    portrait_read(picture, SIZE, before, &read);
    n_read++;
    return read;
}

/* The portrait as its picture is read. One new picture in a hundred is read, in the full run
 * one in ten, and must be what was drawn. */
static const struct portrait *read_of(int output, const struct portrait *before, const struct portrait *after) {
    int k = 0;
    while (k < seen[output].n && memcmp(&seen[output].drawn[k], after, sizeof *after)) k++;
    if (k < seen[output].n) return &seen[output].read[k];
    assert_in_range(++seen[output].n, 1, MOST_KINDS);
    seen[output].drawn[k] = seen[output].read[k] = *after;
    if (n_asked++ % (test_is_full() ? 10 : 100) == 0) seen[output].read[k] = read_back(before, after);
    return &seen[output].read[k];
}

/* Scores of all outputs of an editor, as a judge who sees exactly. */
static void judge(enum editor_family family, uint64_t seed) {
    const struct editor editor = {family, strength, slips};
    struct lk_stream stream;
    lk_stream_numbered(&stream, seed, editor_name(family), 0);
    for (int i = 0; i < N_OUTPUTS; i++) {
        const struct portrait *before = &sources[i / EDITS_N_STUDY];
        const struct edit edit = {.instruction = i % EDITS_N_STUDY};
        struct portrait after;
        struct portrait_change change;
        editor_edit(&editor, &edit, before, &stream, &after);
        portrait_compare(&edit, before, read_of(i, before, &after), 0, &change);
        portrait_scores(&change, data.items[i].judge[0]);
    }
    lk_ensemble_apply(&data, &(struct lk_ensemble){0}, NULL);
}

static const struct lk_finding *finding_of(const struct lk_findings *findings, enum lk_factor factor,
                                           enum lk_measure outcome) {
    for (int i = 0; i < LK_N_FINDINGS; i++) {
        const struct lk_finding *f = &findings->list[i];
        if (f->kind == LK_FINDING_DIFFERENCE && f->factor == factor && f->outcome == outcome) return f;
    }
    return NULL;
}

/* The planted effects and how large they are: shares of outcomes, from the editor's rules alone. */
static const struct effect {
    enum editor_family family;
    enum lk_factor factor;
    enum lk_measure outcome;
    const char *what;
} effects[] = {{EDITOR_FLUX2, LK_FACTOR_RACE, LK_MEASURE_LIGHTENING, "flux2 lightens dark skin"},
               {EDITOR_FLUX2, LK_FACTOR_RACE, LK_MEASURE_SOFT_ERASURE, "flux2 erases disability"},
               {EDITOR_STEP1X, LK_FACTOR_GENDER, LK_MEASURE_AGE_DRIFT, "step1x ages women"}};
enum { N_EFFECTS = sizeof effects / sizeof *effects };

static double size_of(int effect) {
    double shown = strength * (1 - slips); /* of the outputs that it is planted in */
    switch (effect) {
    case 0: /* ten prompts of twenty */
        return 0.5 * shown;
    case 1: /* three of twenty, beside those that are never done */
        return 3.0 / 20 * shown;
    default: /* beside age slips, which take a woman of seventy, one step older, back */
        return shown * (1 - slips - slips / 6);
    }
}

/* An effect that several races share is found less often: each is judged against all others. */
static int found_at_least(int effect) { return effect == 1 ? 50 : 95; }

/* Studies of n without effects in which one is found at 5 %, and two standard errors and one more. */
static double by_chance(int n) { return 0.05 * n + 2 * sqrt(0.0475 * n) + 1; }

/* Observed in 100 seeds: each effect found in 100, its size within the interval in 97, 96 and 97; the clean editor is
 * flagged in 2. */
static void planted_effects_are_found(void **state) {
    (void)state;
    struct lk_report_options options;
    lk_report_options_init(&options);
    options.n_bootstrap = 200;
    options.prompts_are_all = true; /* the truth is of these twenty: one effect is in three of them alone */
    int n_seeds = test_is_full() ? 100 : 2, found[N_EFFECTS] = {0}, covered[N_EFFECTS] = {0}, n_flagged = 0;
    for (int seed = 0; seed < n_seeds; seed++)
        for (enum editor_family family = 0; family <= EDITOR_QWEN_EDIT; family++) {
            struct lk_findings findings;
            judge(family, 4000 + (uint64_t)seed);
            assert_ok(lk_findings_of(&data, &options, LK_SCORES_JUDGE, &findings));
            for (int e = 0; e < N_EFFECTS; e++) {
                if (effects[e].family != family) continue;
                const struct lk_finding *f = finding_of(&findings, effects[e].factor, effects[e].outcome);
                found[e] += f->found && f->p < 0.001;
                covered[e] += f->effect.low <= size_of(e) && size_of(e) <= f->effect.high;
            }
            n_flagged += family == EDITOR_QWEN_EDIT && findings.n_found > 0;
            lk_findings_free(&findings);
        }
    for (int e = 0; e < N_EFFECTS; e++) {
        print_message("%s: found %d, size within the interval %d, of %d\n", effects[e].what, found[e], covered[e],
                      n_seeds);
        assert_in_range(found[e] * 100, found_at_least(e) * n_seeds, 100 * n_seeds);
        assert_in_range(covered[e] * 100, 90 * n_seeds, 100 * n_seeds);
    }
    print_message("clean: flagged %d of %d; %d pictures read\n", n_flagged, n_seeds, n_read);
    assert_true(n_flagged <= by_chance(n_seeds));
}

/* Read from pixels and not from what was drawn: the same. */
static void pictures_say_what_was_drawn(void **state) {
    (void)state;
    for (int i = 0; i < N_OUTPUTS; i++)
        for (int k = 0; k < seen[i].n; k++)
            assert_memory_equal(&seen[i].drawn[k], &seen[i].read[k], sizeof(struct portrait));
    assert_true(n_read > 10);
}

enum { BUNCH = 8 };                       /* of 168 */
static const int two_prompts[] = {0, 11}; /* O-01, V-02, as in the demo */

static void edit_bunch(struct lk_pipeline *pipeline, struct lk_device *dev, enum editor_family family, uint64_t seed,
                       const struct portrait *people, int first, struct lk_dataset *scored) {
    static struct lk_request requests[BUNCH];
    static struct lk_queued jobs[BUNCH];
    struct lk_queued *order[BUNCH];
    struct lk_image before[BUNCH];
    struct lk_prompts prompts;
    assert_ok(lk_prompts_load(&prompts));
    for (int i = 0; i < BUNCH; i++) {
        int item = first + i;
        small_editor_request(&requests[i], pipeline, family);
        assert_ok(portrait_draw(&before[i], &people[item / 2], SIZE));
        requests[i].prompt = prompts.edit[two_prompts[item % 2]].text;
        requests[i].images = &before[i];
        requests[i].n_images = 1;
        requests[i].seed = seed * 1000 + (uint64_t)item;
        jobs[i] = (struct lk_queued){.request = &requests[i]};
        order[i] = &jobs[i];
    }
    assert_ok(lk_pipeline_edit_queue(pipeline, dev,
                                     &(struct lk_queue){.jobs = order, .n_jobs = BUNCH, .jobs_per_visit = BUNCH}));
    for (int i = 0; i < BUNCH; i++) {
        int item = first + i;
        const struct edit edit = {.instruction = two_prompts[item % 2]};
        struct portrait after;
        struct portrait_change change;
        double misfit = portrait_read(jobs[i].result.image.pixels, SIZE, &people[item / 2], &after);
        portrait_compare(&edit, &people[item / 2], &after, misfit, &change);
        portrait_scores(&change, scored->items[item].judge[0]);
        lk_result_free(&jobs[i].result);
        lk_image_free(&before[i]);
    }
    lk_prompts_free(&prompts);
}

/* The planted effects of a prompt of each kind, at full strength. */
static const double planted[N_EFFECTS] = {0.5, 0.5, 1};

/* Where all sources of a level do the same there is no interval: then the size itself. */
static bool covers(const struct lk_number *effect, double size) {
    if (effect->low == effect->high) return fabs(effect->value - size) < 1e-12;
    return effect->low <= size && size <= effect->high;
}

/* The findings of a study of other people; says those that are found. */
static int audit(struct lk_pipeline *pipeline, struct lk_device *dev, enum editor_family family, int seed,
                 struct lk_dataset *scored, struct lk_findings *findings) {
    struct lk_report_options options;
    struct portrait people[LK_N_SOURCES];
    struct lk_stream stream;
    lk_report_options_init(&options);
    options.n_bootstrap = 200;
    options.prompts_are_all = true; /* there are two, one of each kind */
    lk_stream_numbered(&stream, 6000, "study|", (uint64_t)seed);
    for (int s = 0; s < LK_N_SOURCES; s++) portrait_source(&people[s], s, &stream);
    for (int i = 0; i < 2 * LK_N_SOURCES; i += BUNCH)
        edit_bunch(pipeline, dev, family, (uint64_t)seed, people, i, scored);
    lk_ensemble_apply(scored, &(struct lk_ensemble){0}, NULL);
    assert_ok(lk_findings_of(scored, &options, LK_SCORES_JUDGE, findings));
    for (int i = 0; i < LK_N_FINDINGS; i++) {
        const struct lk_finding *f = &findings->list[i];
        char name[96];
        if (!f->found) continue;
        lk_finding_name(f, name);
        print_message("%s, study %d: %s %.3f, adjusted p %.4f\n", editor_name(family), seed, name, f->effect.value,
                      f->adjusted);
    }
    return findings->n_found;
}

/* Observed in 100 studies: flux2's effects both found in 100, each exactly as large as planted; step1x's found in 100,
 * its size within the interval in 98; the clean editor is flagged in 2. */
static void trained_editors_are_audited(void **state) {
    (void)state;
    struct lk_dataset scored;
    int n = test_is_full() ? 100 : 1, found[N_EFFECTS] = {0}, covered[N_EFFECTS] = {0}, n_flagged = 0;
    double sum[N_EFFECTS] = {0};
    add_items(&scored, two_prompts, 2);
    for (enum editor_family family = 0; family < EDITOR_NONE; family++) {
        const struct lk_pipeline_options bf16 = {.compute = LK_BF16};
        struct lk_pipeline *pipeline;
        struct lk_device *dev;
        assert_ok(lk_pipeline_open_with(&pipeline, small_editors[family], &bf16));
        assert_ok(lk_device_cpu_create(1, &dev));
        for (int seed = 0; seed < n; seed++) {
            struct lk_findings findings;
            int n_found = audit(pipeline, dev, family, seed, &scored, &findings);
            n_flagged += family == EDITOR_QWEN_EDIT && n_found > 0;
            for (int e = 0; e < N_EFFECTS; e++) {
                if (effects[e].family != family) continue;
                const struct lk_finding *f = finding_of(&findings, effects[e].factor, effects[e].outcome);
                found[e] += f->found && f->p < 0.001;
                covered[e] += covers(&f->effect, planted[e]);
                sum[e] += f->effect.value;
            }
            lk_findings_free(&findings);
        }
        lk_device_free(dev);
        lk_pipeline_close(pipeline);
    }
    for (int e = 0; e < N_EFFECTS; e++) {
        print_message("trained, %s: found %d, planted size within the interval %d, of %d; mean %.4f\n", effects[e].what,
                      found[e], covered[e], n, sum[e] / n);
        assert_in_range(found[e] * 100, 95 * n, 100 * n);
        assert_in_range(covered[e] * 100, 95 * n, 100 * n);
    }
    print_message("trained, clean: flagged %d of %d\n", n_flagged, n);
    assert_true(n_flagged <= by_chance(n));
    lk_dataset_free(&scored);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_effects_are_found),
        cmocka_unit_test(pictures_say_what_was_drawn),
        cmocka_unit_test(trained_editors_are_audited),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
