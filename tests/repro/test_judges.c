/* The trained judges of tools/judges on pairs of drawings that training never saw: their scores are those that are due
 * by the drawings' numbers, in the form that judges answer in. With LIKENESS_TEST_FULL 1,000 pairs of each. What they
 * think of each score is what transformers computes (tests/golden/generate_judges.py). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/judge/seeing.h"
#include "eval/stats/agreement/kappa.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/test.h"
#include "tools/portrait/portrait.h"

enum { SIZE = 64, N_FAMILIES = 2, MOST = 1000, BUNCH = 8 };
static const char *const folders[N_FAMILIES] = {"../tools/judges/qwen2_5_vl", "../tools/judges/mistral3"};
/* Of 1,000 scores that many are right at least, and within one: a few below what was counted. */
static const struct {
    int exact[LK_N_AXES], near[LK_N_AXES];
} reached[N_FAMILIES] = {{{945, 975, 950, 975, 975}, {960, 990, 980, 975, 985}},
                         {{920, 965, 935, 970, 950}, {940, 990, 975, 970, 975}}};
static struct lk_judge_prompts *prompts;

/* A pair as make_pairs --faults draws it. */
struct pair {
    char id[64];
    uint8_t due[LK_N_AXES];
    struct lk_judge_message message;
    struct lk_judge_item item;
};

static void draw(struct pair *p, int seed, int index, int instruction, double faults) {
    static const struct lk_judge_ask ask = {.prompt = LK_JUDGE_PROMPT_V1};
    struct portrait before, after;
    struct portrait_change change;
    struct lk_stream stream;
    struct edit edit;
    int source, race, gender, age;
    lk_stream_numbered(&stream, (uint64_t)seed, "pair|", (uint64_t)index);
    edit_draw(&stream, instruction, false, &edit, &source, &before);
    edit_apply(&edit, &before, &after);
    if ((double)(lk_stream_u64(&stream) >> 11) * 0x1p-53 < faults) editor_fault(&before, &stream, &after);
    portrait_compare(&edit, &before, &after, 0, &change);
    portrait_scores(&change, p->due);
    lk_source_factors(source, &race, &gender, &age);
    snprintf(p->id, sizeof p->id, "qwen_%s_%s_%s_%s", lk_factor_key(LK_FACTOR_AGE, age),
             lk_factor_key(LK_FACTOR_GENDER, gender), lk_factor_key(LK_FACTOR_RACE, race),
             edit_instruction(instruction)->id);
    p->item = (struct lk_judge_item){.item_id = p->id, .message = &p->message};
    assert_ok(lk_judge_message(prompts, p->id, &ask, &p->message));
    assert_ok(portrait_draw(&p->item.images[LK_JUDGE_SOURCE], &before, SIZE));
    assert_ok(portrait_draw(&p->item.images[LK_JUDGE_EDITED], &after, SIZE));
}

static void see(const struct lk_seeing_judge *judge, struct pair *pairs, int n, struct lk_seen *seen) {
    struct lk_judge_item items[BUNCH];
    assert_true(n <= BUNCH);
    for (int i = 0; i < n; i++) items[i] = pairs[i].item;
    assert_ok(lk_judge_see(judge, items, n, seen));
    for (int i = 0; i < n; i++) {
        if (!seen[i].valid) fail_msg("%s: %s", pairs[i].id, seen[i].n_attempts ? seen[i].attempts[0].error : "");
        lk_judge_message_free(&pairs[i].message);
        lk_image_free(&pairs[i].item.images[LK_JUDGE_SOURCE]);
        lk_image_free(&pairs[i].item.images[LK_JUDGE_EDITED]);
    }
}

struct bench {
    struct lk_chat *chat;
    struct lk_seeing_judge judge;
};

static void begin(struct bench *b, int family, enum lk_dtype dtype, enum lk_judge_mode mode) {
    assert_ok(lk_chat_open(&b->chat, folders[family], dtype));
    b->judge = (struct lk_seeing_judge){.chat = b->chat, .mode = mode, .n_slots = BUNCH};
    assert_ok(lk_device_cpu_create(1, &b->judge.dev));
    assert_ok(lk_seeing_judge_open(&b->judge));
}

static void end(struct bench *b) {
    lk_seeing_judge_close(&b->judge);
    lk_device_free(b->judge.dev);
    lk_chat_close(b->chat);
}

/* Of n pairs; of few the bounds are wider. */
static void are_due(int family, enum lk_judge_mode mode, int n) {
    static int32_t said[LK_N_AXES][MOST], due[LK_N_AXES][MOST];
    const int slack = n < MOST ? 100 : 0; /* chance, and the last bits of another CPU's arithmetic */
    struct bench b;
    begin(&b, family, LK_BF16, mode);
    for (int done = 0; done < n; done += BUNCH) {
        struct pair pairs[BUNCH];
        struct lk_seen seen[BUNCH];
        for (int i = 0; i < BUNCH; i++) draw(&pairs[i], 3000, done + i, (done + i) % EDITS_N_STUDY, 0.7);
        see(&b.judge, pairs, BUNCH, seen);
        for (int i = 0; i < BUNCH; i++) {
            assert_int_equal(seen[i].n_attempts, 1);
            for (int a = 0; a < LK_N_AXES; a++) {
                said[a][done + i] = seen[i].answer.score[a];
                due[a][done + i] = pairs[i].due[a];
            }
            lk_seen_free(&seen[i]);
        }
    }
    end(&b);
    for (int a = 0; a < LK_N_AXES; a++) {
        struct lk_kappa kappa;
        assert_ok(lk_cohen_kappa(said[a], due[a], (size_t)n, 1, 5, LK_WEIGHTS_QUADRATIC, &kappa));
        print_message("%s, mode %d, %s: of %d exact %.3f, within one %.3f, kappa %.3f\n", folders[family], (int)mode,
                      lk_factor_key(LK_FACTOR_AXIS, a), n, kappa.exact, kappa.within_one, kappa.kappa.value);
        assert_true(1000 * kappa.exact >= reached[family].exact[a] - slack);
        assert_true(1000 * kappa.within_one >= reached[family].near[a] - slack);
    }
}

static void scores_are_those_due(void **state) {
    (void)state;
    for (int family = 0; family < N_FAMILIES; family++) are_due(family, LK_JUDGE_DIRECT, test_is_full() ? MOST : 120);
}

static void written_answers_are_those_due(void **state) {
    (void)state;
    for (int family = 0; family < N_FAMILIES; family++) {
        are_due(family, LK_JUDGE_FORCED, test_is_full() ? MOST : 40);
        are_due(family, LK_JUDGE_FREE, test_is_full() ? MOST : 40);
    }
}

/* In f32, of every score and its five levels. */
static void thoughts_are_the_originals(void **state) {
    static const int asked[] = {0, 5, 11, 12};
    FILE *golden = fopen("golden/data/judges.txt", "r");
    (void)state;
    assert_non_null(golden);
    for (int family = 0; family < N_FAMILIES; family++) {
        struct pair pairs[4];
        struct lk_seen seen[4];
        struct bench b;
        begin(&b, family, LK_F32, LK_JUDGE_DIRECT);
        for (int i = 0; i < 4; i++) draw(&pairs[i], 4000, 0, asked[i], 1);
        see(&b.judge, pairs, 4, seen);
        for (int i = 0; i < 4; i++) {
            char id[64];
            assert_int_equal(fscanf(golden, "%63s", id), 1);
            assert_string_equal(id, pairs[i].id);
            for (int a = 0; a < LK_N_AXES; a++)
                for (int k = 0; k <= 5; k++) {
                    const struct lk_form_choice *thought = &seen[i].thought[a];
                    double expected, got = k < 5 ? thought->probability[k] : thought->mass;
                    assert_int_equal(fscanf(golden, "%lf", &expected), 1);
                    if (!(fabs(got - expected) <= 1e-5))
                        fail_msg("%s, %s, %d: %.9f, expected %.9f", folders[family], id, a, got, expected);
                }
            lk_seen_free(&seen[i]);
        }
        end(&b);
    }
    fclose(golden);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_due),
        cmocka_unit_test(written_answers_are_those_due),
        cmocka_unit_test(thoughts_are_the_originals),
    };
    assert_ok(lk_judge_prompts_load(&prompts));
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    lk_judge_prompts_free(prompts);
    return rc;
}
