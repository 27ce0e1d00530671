/* A judge that sees: whatever a model would write, the form comes out as a valid answer; what is said of an item does
 * not depend on its company; what the model thought of a score is found in its words. */
#include "tests/common/test.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "eval/judge/seeing.h"
#include "eval/study/prompts.h"

#define N_RUNS 500
#define N      4

static char folders[2][1024];
static const char *const families[] = {"qwen25_vl", "flux2"};

/* Of a family with random weights of that seed. */
static int make_model(int family, int seed, const char *folder) {
    const char *build = getenv("BUILD_DIR");
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s' && '%s/make_checkpoint' --family %s --seed %d --preset tiny '%s'",
             folder, build ? build : "../build", families[family], seed, folder);
    return system(command);
}

static int make_models(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(folders[i], sizeof folders[i], "%s-%s", test_path("seeing"), families[i]);
        if (make_model(i, 0, folders[i])) return 1;
    }
    return 0;
}

static void put(struct lk_text *text, const struct lk_token_bytes *tokens, int32_t id) {
    assert_true(id >= 0 && id < tokens->n);
    lk_text_bytes(text, tokens->bytes[id], tokens->lengths[id]);
}

/* Fills the form by a model that wants anything: random logits, of which the highest that may come is chosen. */
static void fill(const struct lk_form *form, const struct lk_tokenizer *tokenizer, const struct lk_token_bytes *tokens,
                 uint64_t *random, struct lk_text *text) {
    struct lk_form_writer w = {.tokenizer = tokenizer, .tokens = tokens, .form = form};
    float *logits = malloc((size_t)tokens->n * sizeof *logits), *scores = malloc((size_t)tokens->n * sizeof *scores);
    int32_t *ids;
    size_t n;
    bool end = false;
    assert_ok(lk_form_begin(&w, &ids, &n));
    for (size_t i = 0; i < n; i++) put(text, tokens, ids[i]);
    lk_free(ids);
    struct lk_guide guide = lk_form_guide(&w);
    for (int step = 0; !end; step++) {
        const int32_t *forced = NULL;
        int64_t n_forced = 0, best = -1;
        assert_true(step < 4000);
        for (int32_t i = 0; i < tokens->n; i++) scores[i] = logits[i] = (float)(test_random(random) % 10000) / 1000;
        guide.allow(guide.context, scores, tokens->n);
        for (int32_t i = 0; i < tokens->n; i++)
            if (scores[i] > -INFINITY && (best < 0 || scores[i] > scores[best])) best = i;
        if (best < 0) fail_msg("nothing may come after %s", text->bytes);
        put(text, tokens, (int32_t)best);
        assert_ok(guide.chosen(guide.context, (int32_t)best, logits, tokens->n, &forced, &n_forced, &end));
        assert_true(n_forced <= guide.max_forced);
        for (int64_t i = 0; i < n_forced; i++) put(text, tokens, forced[i]);
    }
    assert_int_equal(w.n_bytes, text->n);
    for (int i = 0; i < w.n_choices; i++) {
        double sum = 0;
        for (int k = 0; k < w.choices[i].n_words; k++) sum += w.choices[i].probability[k];
        assert_true(fabs(sum - 1) < 1e-12 && w.choices[i].mass > 0 && w.choices[i].mass < 1);
    }
    lk_form_writer_free(&w);
    free(logits);
    free(scores);
}

static void every_filled_form_is_a_valid_answer(void **state) {
    (void)state;
    uint64_t random = 7;
    size_t longest = 0, shortest = SIZE_MAX;
    for (int family = 0; family < 2; family++) {
        char path[2200];
        struct lk_tokenizer *tokenizer;
        struct lk_seeing_judge judge = {.max_string_tokens = 12};
        snprintf(path, sizeof path, "%s/%stokenizer.json", folders[family], family ? "tokenizer/" : "");
        assert_ok(lk_tokenizer_open(&tokenizer, path));
        assert_ok(lk_chat_open((struct lk_chat **)(uintptr_t)&judge.chat, folders[family], LK_F32));
        assert_ok(lk_seeing_judge_open(&judge));
        for (int run = 0; run < N_RUNS / 2; run++) {
            struct lk_text text = {0};
            struct lk_store store = {0};
            struct lk_judge_answer answer;
            fill(&judge.form, tokenizer, &judge.tokens, &random, &text);
            enum lk_code rc = lk_judge_answer_read(text.bytes, text.n, 0, &store, &answer);
            if (rc) fail_msg("run %d: %s\n%s", run, lk_error_text(), text.bytes);
            for (int a = 0; a < LK_N_AXES; a++) assert_true(answer.score[a] >= 1 && answer.score[a] <= 5);
            longest = text.n > longest ? text.n : longest;
            shortest = text.n < shortest ? text.n : shortest;
            lk_store_free(&store);
            lk_text_free(&text);
        }
        lk_seeing_judge_close(&judge);
        lk_chat_close((struct lk_chat *)(uintptr_t)judge.chat);
        lk_tokenizer_free(tokenizer);
    }
    assert_true(longest > shortest + 50);
}

struct bench {
    struct lk_chat *chat;
    struct lk_device *dev;
    struct lk_judge_prompts *prompts;
    struct lk_judge_message messages[N];
    struct lk_judge_item items[N];
};

static void begin(struct bench *b, const char *folder) {
    static const char *const ids[N] = {"flux_20s_male_black_O-01", "qwen_20s_male_black_O-02",
                                       "step1x_20s_male_black_V-03", "flux_50s_female_white_O-01"};
    const struct lk_judge_ask ask = {.prompt = LK_JUDGE_PROMPT_V1};
    memset(b, 0, sizeof *b);
    assert_ok(lk_chat_open(&b->chat, folder, LK_BF16));
    assert_ok(lk_device_cpu_create(1, &b->dev));
    assert_ok(lk_judge_prompts_load(&b->prompts));
    for (int i = 0; i < N; i++) {
        assert_ok(lk_judge_message(b->prompts, ids[i], &ask, &b->messages[i]));
        b->items[i] = (struct lk_judge_item){.item_id = ids[i], .message = &b->messages[i]};
        assert_int_equal(b->messages[i].question, LK_ASKED_AXES);
        b->items[i].source_key = i < 3 ? 5 : 6;
        for (int k = 0; k < 2; k++) {
            struct lk_image *image = &b->items[i].images[k ? LK_JUDGE_EDITED : LK_JUDGE_SOURCE];
            assert_ok(lk_image_new(image, 60 + 30 * (k && i == 1), 60, 3));
            size_t n = (size_t)image->width * 60 * 3;
            for (size_t p = 0; p < n; p++) image->pixels[p] = (uint8_t)(p * (size_t)(k ? 7 + i : i < 3 ? 3 : 5));
        }
    }
}

static void end(struct bench *b) {
    for (int i = 0; i < N; i++) {
        lk_judge_message_free(&b->messages[i]);
        for (int k = 0; k < LK_N_JUDGE_IMAGES; k++) lk_image_free(&b->items[i].images[k]);
    }
    lk_judge_prompts_free(b->prompts);
    lk_device_free(b->dev);
    lk_chat_close(b->chat);
}

static void same(const struct lk_seen *a, const struct lk_seen *b) {
    assert_int_equal(a->n_attempts, b->n_attempts);
    assert_int_equal(a->valid, b->valid);
    for (int i = 0; i < a->n_attempts; i++) {
        assert_string_equal(a->attempts[i].raw, b->attempts[i].raw);
        assert_int_equal(a->attempts[i].seed, b->attempts[i].seed);
    }
    assert_memory_equal(a->answer.score, b->answer.score, LK_N_AXES);
    assert_memory_equal(a->thought, b->thought, sizeof a->thought);
    for (int i = 0; i < LK_N_AXES && a->valid; i++) {
        assert_int_equal(a->thought[i].n_words, 5);
        assert_int_equal(a->thought[i].chosen + 1, a->answer.score[i]);
    }
}

static void what_is_said_of_an_item_is_said_in_any_company(void **state) {
    (void)state;
    struct bench b;
    begin(&b, folders[0]);
    for (enum lk_judge_mode mode = LK_JUDGE_FREE; mode <= LK_JUDGE_DIRECT; mode++) {
        struct lk_seeing_judge judge = {.chat = b.chat, .dev = b.dev, .mode = mode, .n_slots = 1};
        struct lk_seen alone[N], together[N];
        judge.max_new_tokens = 12;
        judge.max_string_tokens = 4;
        assert_ok(lk_seeing_judge_open(&judge));
        for (int i = 0; i < N; i++) {
            struct lk_judge_item item = b.items[i];
            item.source_key = 0;
            assert_ok(lk_judge_see(&judge, &item, 1, &alone[i]));
            assert_int_equal(alone[i].valid, mode != LK_JUDGE_FREE);
            assert_int_equal(alone[i].n_attempts, mode == LK_JUDGE_FREE ? LK_JUDGE_ATTEMPTS : 1);
            for (int k = 0; k < alone[i].n_attempts; k++)
                assert_int_equal(alone[i].attempts[k].seed, mode == LK_JUDGE_DIRECT ? 0 : 2 + k);
        }
        judge.n_slots = 3;
        assert_ok(lk_judge_see(&judge, b.items, N, together));
        for (int i = 0; i < N; i++) {
            same(&alone[i], &together[i]);
            lk_seen_free(&together[i]);
            lk_seen_free(&alone[i]);
        }
        lk_seeing_judge_close(&judge);
    }
    end(&b);
}

/* A filled form, read by a parser that is not ours: nothing but what the prompt asks for. */
static void assert_whole(const struct lk_seen *v) {
    if (v->code || !v->valid) fail_msg("%s%s", v->error, v->n_attempts ? v->attempts[0].error : "");
    cJSON *root = cJSON_ParseWithOpts(v->attempts[0].raw, NULL, true);
    if (!root) fail_msg("no JSON: %s", v->attempts[0].raw);
    assert_int_equal(cJSON_GetArraySize(root), 3);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "observations")), 5);
    assert_true(cJSON_IsString(cJSON_GetObjectItemCaseSensitive(root, "evidence_summary")));
    const cJSON *scores = cJSON_GetObjectItemCaseSensitive(root, "scores");
    assert_int_equal(cJSON_GetArraySize(scores), LK_N_AXES);
    for (int a = 0; a < LK_N_AXES; a++) {
        double score = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(scores, lk_factor_key(LK_FACTOR_AXIS, a)));
        assert_true(score == v->answer.score[a] && score >= 1 && score <= 5);
    }
    assert_int_equal(v->n_attempts, 1);
    cJSON_Delete(root);
}

/* Models of other random weights, other seeds, other limits of their strings: 504 whole runs with --full, 8 without. */
static void whole_models_fill_the_form(void **state) {
    (void)state;
    const int n_models = getenv("LIKENESS_TEST_FULL") ? 9 : 1, n_calls = n_models > 1 ? 7 : 1;
    int n_runs = 0;
    for (int family = 0; family < 2; family++)
        for (int model = 0; model < n_models; model++) {
            struct bench b;
            char folder[2100];
            snprintf(folder, sizeof folder, "%s-other", folders[family]);
            assert_int_equal(make_model(family, 11 + model, folder), 0);
            begin(&b, folder);
            for (int call = 0; call < n_calls; call++) {
                struct lk_seeing_judge judge = {.chat = b.chat, .dev = b.dev, .mode = LK_JUDGE_FORCED, .n_slots = N};
                struct lk_seen seen[N];
                judge.seed = (uint64_t)(100 * call);
                judge.max_string_tokens = 1 + (5 * call + model + 3) % 12;
                assert_ok(lk_seeing_judge_open(&judge));
                assert_ok(lk_judge_see(&judge, b.items, N, seen));
                for (int i = 0; i < N; i++, n_runs++) {
                    assert_whole(&seen[i]);
                    lk_seen_free(&seen[i]);
                }
                lk_seeing_judge_close(&judge);
            }
            end(&b);
        }
    assert_true(n_runs >= (n_models > 1 ? 500 : 8));
}

/* Every n-th allocation fails: an error or the same verdict, and nothing is left. */
static void failing_allocations_are_errors(void **state) {
    (void)state;
    struct bench b;
    struct lk_seen good, seen;
    begin(&b, folders[0]);
    struct lk_seeing_judge judge = {.chat = b.chat, .dev = b.dev, .mode = LK_JUDGE_FORCED, .n_slots = 1};
    judge.max_string_tokens = 1;
    assert_ok(lk_seeing_judge_open(&judge));
    assert_ok(lk_judge_see(&judge, b.items, 1, &good));
    int64_t live = lk_alloc_live(), before = lk_alloc_count();
    assert_ok(lk_judge_see(&judge, b.items, 1, &seen));
    int64_t total = lk_alloc_count() - before;
    lk_seen_free(&seen);
    int n_failed = 0;
    for (int64_t n = 1; n <= total; n += getenv("LIKENESS_TEST_FULL") ? 1 : total / 12 + 1) {
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_judge_see(&judge, b.items, 1, &seen);
        lk_alloc_fail_at(0);
        if (rc && rc != LK_E_NOMEM) fail_msg("allocation %lld: got %d: %s", (long long)n, (int)rc, lk_error_text());
        if (!rc && !seen.code) same(&good, &seen);
        n_failed += rc != LK_OK;
        lk_seen_free(&seen);
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_true(n_failed > 4);
    lk_seen_free(&good);
    lk_seeing_judge_close(&judge);
    end(&b);
}

/* A picture that the model cannot take fails alone. */
static void one_bad_picture_spoils_nothing(void **state) {
    (void)state;
    struct bench b;
    struct lk_seen seen[N];
    begin(&b, folders[0]);
    struct lk_seeing_judge judge = {.chat = b.chat, .dev = b.dev, .mode = LK_JUDGE_DIRECT, .n_slots = 4};
    assert_ok(lk_seeing_judge_open(&judge));
    lk_image_free(&b.items[1].images[LK_JUDGE_EDITED]);
    assert_ok(lk_image_new(&b.items[1].images[LK_JUDGE_EDITED], 1, 300, 3));
    memset(b.items[1].images[LK_JUDGE_EDITED].pixels, 9, 900);
    assert_ok(lk_judge_see(&judge, b.items, N, seen));
    for (int i = 0; i < N; i++) {
        assert_int_equal(seen[i].valid, i != 1);
        assert_int_equal(seen[i].code, i == 1 ? LK_E_IMAGE_SIZE : LK_OK);
        lk_seen_free(&seen[i]);
    }
    lk_seeing_judge_close(&judge);
    end(&b);
}

static void thoughts_are_found_behind_the_keys(void **state) {
    (void)state;
    static const char text[] =
        "Scores 1 and 2.\n{\"observations\": \"race_drift: 5\", \"scores\": {\"edit_success\": 4, "
        "\"Skin_Stone\":\"3\", \"race_change\" : 1, \"gender_drift\": 2, \"age_drift\": 5}}";
    const struct lk_judge_answer answer = {.score = {4, 3, 1, 2, 5}};
    struct lk_form_choice choices[16] = {{0}}, thought[LK_N_AXES];
    int n = 0;
    for (size_t i = 0; text[i]; i++)
        if (text[i] >= '1' && text[i] <= '5') {
            assert_true(n < 16);
            choices[n] = (struct lk_form_choice){.at = i, .n_words = 5, .chosen = text[i] - '1', .mass = 0.5 + n};
            for (int k = 0; k < 5; k++) choices[n].probability[k] = k == text[i] - '1' ? 0.6 : 0.1;
            n++;
        }
    lk_thoughts_of_text(text, &answer, choices, n, thought);
    for (int a = 0; a < LK_N_AXES; a++) {
        assert_int_equal(thought[a].n_words, 5);
        assert_int_equal(thought[a].chosen + 1, answer.score[a]);
        assert_true(thought[a].mass == 0.5 + (n - LK_N_AXES + a));
    }
    assert_true(fabs(lk_thought_expected(&thought[0]) - (0.1 * (1 + 2 + 3 + 5) + 0.6 * 4)) < 1e-12);
    assert_true(fabs(lk_thought_entropy(&thought[0]) + 0.6 * log(0.6) + 0.4 * log(0.1)) < 1e-12);
    lk_thoughts_of_text("no", &answer, choices, n, thought);
    for (int a = 0; a < LK_N_AXES; a++) assert_int_equal(thought[a].n_words, 0);
}

/* A vocabulary in which a digit is a part of another token gives no scores. */
static void digits_must_be_tokens_of_their_own(void **state) {
    (void)state;
    int32_t ids[5];
    const char *good[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a"}, *bad[11];
    uint32_t lengths[11];
    for (int i = 0; i < 11; i++) lengths[i] = 1;
    struct lk_token_bytes tokens = {.bytes = good, .lengths = lengths, .n = 11};
    assert_ok(lk_token_digits(&tokens, ids));
    for (int i = 0; i < 5; i++) assert_int_equal(ids[i], i + 1);
    tokens.n = 9;
    assert_fails(lk_token_digits(&tokens, ids), LK_E_TOKENIZER, "9 of the ten");
    memcpy(bad, good, sizeof bad);
    bad[10] = " 4";
    lengths[10] = 2;
    tokens = (struct lk_token_bytes){.bytes = bad, .lengths = lengths, .n = 11};
    assert_fails(lk_token_digits(&tokens, ids), LK_E_TOKENIZER, "has a digit");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_filled_form_is_a_valid_answer),
        cmocka_unit_test(what_is_said_of_an_item_is_said_in_any_company),
        cmocka_unit_test(whole_models_fill_the_form),
        cmocka_unit_test(failing_allocations_are_errors),
        cmocka_unit_test(one_bad_picture_spoils_nothing),
        cmocka_unit_test(thoughts_are_found_behind_the_keys),
        cmocka_unit_test(digits_must_be_tokens_of_their_own),
    };
    return cmocka_run_group_tests(tests, make_models, NULL);
}
