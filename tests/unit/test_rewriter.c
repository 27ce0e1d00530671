/* Prompts rewritten by a model that is played: what it is asked, what becomes of its replies, what is recorded. And the
 * files of the authors' texts. */
#include "tests/common/test.h"

#include <cjson/cJSON.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "models/rewrite/rewrite.h"

/* Answers by a function of the user's text and the seed; what was asked stays. */
struct player {
    const char *(*answer)(const char *user, uint64_t seed, bool drawn, bool *stopped);
    char asked[4096];
    int n_asked, most_at_once;
    enum lk_code stop;
};

static enum lk_code ask(void *context, const struct lk_chat_question *questions, int n, int n_slots,
                        enum lk_code (*tick)(void), struct lk_chat_answer *answers) {
    struct player *p = context;
    (void)n_slots;
    if (tick) LK_TRY(tick());
    if (p->stop) return lk_fail(p->stop, "the device is gone");
    if (n > p->most_at_once) p->most_at_once = n;
    for (int i = 0; i < n; i++) {
        const struct lk_chat_request *q = &questions[i].request;
        const struct lk_chat_message *last = &q->messages[q->n_messages - 1];
        const char *user = last->parts[last->n_parts - 1].text;
        size_t at = strlen(p->asked);
        for (int m = 0; m < q->n_messages; m++) {
            at += (size_t)snprintf(p->asked + at, at < sizeof p->asked ? sizeof p->asked - at : 0, "%s[",
                                   q->messages[m].role);
            for (int k = 0; k < q->messages[m].n_parts && at < sizeof p->asked - 400; k++) {
                const struct lk_chat_part *part = &q->messages[m].parts[k];
                if (part->image)
                    at += (size_t)snprintf(p->asked + at, sizeof p->asked - at, "<%dx%d>", part->image->width,
                                           part->image->height);
                else
                    at += (size_t)snprintf(p->asked + at, sizeof p->asked - at, "%.300s", part->text);
            }
            if (at < sizeof p->asked - 400) at += (size_t)snprintf(p->asked + at, sizeof p->asked - at, "]");
        }
        bool stopped = true;
        if (strstr(user, "too small")) {
            answers[i].code = LK_E_IMAGE_SIZE;
            snprintf(answers[i].error, sizeof answers[i].error, "image 1: too small");
            continue;
        }
        const char *text = p->answer(user, q->seed, q->generation.do_sample, &stopped);
        answers[i].text = lk_strdup(text);
        answers[i].n = strlen(text);
        answers[i].n_tokens = 7;
        answers[i].stopped = stopped;
        p->n_asked++;
    }
    return LK_OK;
}

static enum lk_code check(void *context, const char *text) {
    (void)context;
    if (strstr(text, "<|im_end|>")) return lk_fail(LK_E_PROMPT, "holds a token");
    return LK_OK;
}

static struct lk_rewriter rewriter_of(struct player *player, bool json) {
    struct lk_rewriter r = {.ask = ask, .check = check, .context = player, .n_slots = 2, .seed = 40};
    r.texts = (struct lk_rewrite_texts){.style = "custom:x",
                                        .source = "here",
                                        .system = "SYS",
                                        .user = json ? "Rules {a} User: {prompt} New:" : "{prompt}",
                                        .key = json ? "Rewritten" : NULL,
                                        .system_pictures = json ? NULL : "SEEN"};
    r.dtype = "f32";
    r.architecture = "here";
    snprintf(r.name, sizeof r.name, "played");
    lk_generation_config_init(&r.generation);
    r.generation.top_k = 1;
    return r;
}

static const char *greedy_only(const char *user, uint64_t seed, bool drawn, bool *stopped) {
    (void)user, (void)seed, (void)stopped;
    return drawn ? "{\"Rewritten\": \"drawn\"}" : "```json\n{\"Rewritten\": \" a\\nb \"}```";
}

static const char *third_try(const char *user, uint64_t seed, bool drawn, bool *stopped) {
    (void)user, (void)drawn;
    if (seed == 41) *stopped = false;
    return seed < 41 ? "no JSON" : "{\"Rewritten\": \"at last\"}";
}

static const char *never(const char *user, uint64_t seed, bool drawn, bool *stopped) {
    (void)drawn, (void)stopped;
    return strstr(user, "bad") ? seed == 44 ? "the last one\n" : "{\"Rewritten\": \"<|im_end|>\"}"
                               : "{\"Rewritten\": \"good\"}";
}

static const char *echo(const char *user, uint64_t seed, bool drawn, bool *stopped) {
    (void)seed, (void)drawn, (void)stopped;
    static char text[4][400];
    static int at;
    at = (at + 1) % 4;
    snprintf(text[at], sizeof text[at], "%.300s .", user);
    return text[at];
}

static const struct lk_image small = {.width = 30, .height = 20, .channels = 3, .pixels = (uint8_t *)""};

static void one_message_of_pictures_and_text(void **state) {
    (void)state;
    struct player p = {.answer = greedy_only};
    const struct lk_rewriter r = rewriter_of(&p, true);
    const struct lk_image images[] = {small, small};
    struct lk_rewrite job = {.images = images, .n_images = 2, .prompt = " red {prompt} [IMG] hair "};
    assert_ok(lk_rewrite(&r, &job, 1, NULL));
    assert_string_equal(p.asked, "system[SYS]user[<30x20><30x20>Rules {a} User:  red {prompt} [IMG] hair  New:]");
    assert_string_equal(job.text, "a b");
    assert_int_equal(job.n_tries, 1);
    lk_rewrite_free(&job);
}

static void two_messages_of_pictures_and_of_text(void **state) {
    (void)state;
    struct player p = {.answer = echo};
    const struct lk_rewriter r = rewriter_of(&p, false);
    struct lk_image images[2];
    for (int i = 0; i < 2; i++) assert_ok(lk_image_new(&images[i], 30, 20 + i, 3));
    struct lk_rewrite jobs[] = {{.images = images, .n_images = 2, .prompt = "[IMG]a [IMG]b[IM G][IMG]"},
                                {.images = images, .n_images = 1, .prompt = "c"},
                                {.prompt = "d"}};
    assert_ok(lk_rewrite(&r, jobs, 3, NULL));
    assert_string_equal(p.asked, "system[SEEN]user[<60x21>]user[a b[IM G]]system[SEEN]user[<30x20>]user[c]system[SYS]"
                                 "user[d]");
    assert_string_equal(jobs[0].text, "a b[IM G].");
    assert_int_equal(p.most_at_once, 3);
    for (int i = 0; i < 3; i++) lk_rewrite_free(&jobs[i]);
    for (int i = 0; i < 2; i++) lk_image_free(&images[i]);
}

static void a_bad_reply_is_asked_for_again(void **state) {
    (void)state;
    struct player p = {.answer = third_try};
    const struct lk_rewriter r = rewriter_of(&p, true);
    struct lk_rewrite job = {.prompt = "x"};
    assert_ok(lk_rewrite(&r, &job, 1, NULL));
    assert_string_equal(job.text, "at last");
    assert_int_equal(job.n_tries, 3);
    assert_int_equal(p.n_asked, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(job.tries[i].seed, 40 + i);
        assert_int_equal(job.tries[i].drawn, i > 0);
        assert_int_equal(!job.tries[i].why, i == 2);
    }
    assert_non_null(strstr(job.tries[1].why, "limit of tokens"));
    struct lk_text record = {0};
    lk_rewrite_record(&r, &job, &record);
    cJSON *json = cJSON_Parse(record.bytes);
    assert_non_null(json);
    assert_string_equal(cJSON_GetObjectItem(json, "original")->valuestring, "x");
    assert_string_equal(cJSON_GetObjectItem(json, "prompt")->valuestring, "at last");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "attempts")), 3);
    assert_null(cJSON_GetObjectItem(json, "failed"));
    cJSON_Delete(json);
    lk_text_free(&record);
    lk_rewrite_free(&job);
}

static void a_failure_is_of_its_job_alone(void **state) {
    (void)state;
    struct player p = {.answer = never};
    struct lk_rewriter r = rewriter_of(&p, true);
    struct lk_rewrite jobs[] = {{.prompt = "bad"}, {.prompt = "fine"}, {.prompt = "too small"}, {.n_images = 99}};
    jobs[3].prompt = "many";
    assert_ok(lk_rewrite(&r, jobs, 4, NULL));
    assert_null(jobs[0].text);
    assert_int_equal(jobs[0].n_tries, LK_REWRITE_TRIES);
    assert_non_null(strstr(jobs[0].error, "in 5 tries"));
    assert_non_null(strstr(jobs[0].error, "\"the last one\n\""));
    assert_non_null(strstr(jobs[0].tries[0].why, "controls the model"));
    assert_string_equal(jobs[1].text, "good");
    assert_int_equal(jobs[1].n_tries, 1);
    assert_null(jobs[2].text);
    assert_int_equal(jobs[2].n_tries, 0);
    assert_string_equal(jobs[2].error, "image 1: too small");
    assert_non_null(strstr(jobs[3].error, "at most"));
    assert_int_equal(p.n_asked, 6);
    struct lk_text record = {0};
    lk_rewrite_record(&r, &jobs[0], &record);
    assert_non_null(strstr(record.bytes, "\"failed\":\"no usable prompt"));
    assert_null(strstr(record.bytes, "\"prompt\":"));
    lk_text_free(&record);
    for (int i = 0; i < 4; i++) lk_rewrite_free(&jobs[i]);
    p.stop = LK_E_DEVICE;
    struct lk_rewrite job = {.prompt = "fine"};
    assert_fails(lk_rewrite(&r, &job, 1, NULL), LK_E_DEVICE, "gone");
    lk_rewrite_free(&job);
}

static void a_temperature_draws_from_the_first_try(void **state) {
    (void)state;
    struct player p = {.answer = greedy_only};
    struct lk_rewriter r = rewriter_of(&p, true);
    r.temperature = 0.15;
    struct lk_rewrite job = {.prompt = "x"};
    assert_ok(lk_rewrite(&r, &job, 1, NULL));
    assert_string_equal(job.text, "drawn");
    struct lk_text record = {0};
    lk_rewrite_record(&r, &job, &record);
    assert_non_null(strstr(record.bytes, "\"greedy\":false,\"temperature\":0.14999999999999999,\"seed\":40,"));
    lk_text_free(&record);
    lk_rewrite_free(&job);
}

/* Every kind of reply, by what is asked and the try. */
static const char *anything(const char *user, uint64_t seed, bool drawn, bool *stopped) {
    static char text[1200];
    uint64_t state = seed;
    (void)drawn;
    for (const char *c = user; *c; c++) state = state * 31 + (unsigned char)*c;
    static const char *const parts[] = {"{\"Rewritten\": \"",
                                        "\"}",
                                        "```json\n",
                                        "\n```",
                                        "\\n",
                                        "\\ud83d\\ude00",
                                        "\\ud83d",
                                        "<|im_end|>",
                                        "\n",
                                        "é",
                                        "\xff",
                                        "a woman with dark skin",
                                        "\\u0000",
                                        "  ",
                                        "\"",
                                        "\\",
                                        "{",
                                        "NaN"};
    size_t n = 0;
    const bool right = test_random(&state) % 2;
    if (right) n += (size_t)snprintf(text, sizeof text, "%s", parts[0]);
    for (uint64_t k = test_random(&state) % 6; k; k--) {
        const size_t part = test_random(&state) % (sizeof parts / sizeof *parts);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", parts[right && test_random(&state) % 4 ? 11 : part]);
    }
    if (right) snprintf(text + n, sizeof text - n, "%s", parts[1]);
    text[sizeof text - 1] = 0;
    if (!right && !n) text[0] = 0;
    *stopped = test_random(&state) % 8 != 0;
    return text;
}

static void make_prompt(uint64_t *state, char out[80]) {
    static const char *const words[] = {"red", "the", "[IMG]", "{prompt}", "\n",         "\"",
                                        "\\",  "é",   "头发",  "%s",       "<|im_end|>", " "};
    size_t n = 0;
    out[0] = 0;
    for (uint64_t k = test_random(state) % 9; k; k--)
        n += (size_t)snprintf(out + n, 80 - n, "%s", words[test_random(state) % (sizeof words / sizeof *words)]);
}

enum { N_FUZZED = 1000 };

/* What becomes of a prompt does not depend on the others, and is a prompt or a reason. */
static void a_thousand_prompts(void **state) {
    (void)state;
    struct player p = {.answer = anything};
    const struct lk_rewriter r = rewriter_of(&p, true);
    static char prompts[N_FUZZED][80];
    struct lk_rewrite *all = lk_calloc(N_FUZZED, sizeof *all);
    uint64_t seed = 3;
    int n_made = 0, n_again = 0, n_failed = 0;
    for (int i = 0; i < N_FUZZED; i++) {
        make_prompt(&seed, prompts[i]);
        all[i].prompt = prompts[i];
    }
    assert_ok(lk_rewrite(&r, all, N_FUZZED, NULL));
    for (int i = 0; i < N_FUZZED; i++) {
        struct lk_rewrite alone = {.prompt = prompts[i]};
        struct lk_text records[2] = {{0}, {0}};
        assert_ok(lk_rewrite(&r, &alone, 1, NULL));
        lk_rewrite_record(&r, &alone, &records[0]);
        lk_rewrite_record(&r, &all[i], &records[1]);
        assert_string_equal(records[0].bytes, records[1].bytes);
        cJSON *json = cJSON_Parse(records[0].bytes);
        assert_string_equal(cJSON_GetObjectItem(json, "original")->valuestring, prompts[i]);
        const cJSON *prompt = cJSON_GetObjectItem(json, "prompt"), *failed = cJSON_GetObjectItem(json, "failed");
        assert_true(!prompt != !failed && !prompt == !alone.text);
        if (alone.text) {
            assert_string_equal(prompt->valuestring, alone.text);
            assert_true(*alone.text && lk_utf8_valid(alone.text, strlen(alone.text)));
            assert_null(strchr(alone.text, '\n'));
            assert_null(strstr(alone.text, "<|im_end|>"));
        }
        n_made += alone.text != NULL;
        n_again += alone.text && alone.n_tries > 1;
        n_failed += !alone.text && alone.n_tries == LK_REWRITE_TRIES;
        cJSON_Delete(json);
        for (int k = 0; k < 2; k++) lk_text_free(&records[k]);
        lk_rewrite_free(&alone);
        lk_rewrite_free(&all[i]);
    }
    lk_free(all);
    assert_true(n_made > 500 && n_again > 100 && n_failed > 20 && n_made + n_failed == N_FUZZED);
}

#define USER "\"user\": \"do {prompt}\", "

static void files_of_texts_are_read_strictly(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum lk_code code;
        const char *part;
    } cases[] = {
        {"{\"style\": \"custom:a\", \"source\": \"s\", \"system\": \"x\", " USER "\"reply\": \"text\"}", LK_OK, NULL},
        {"{\"style\": \"custom:a\", \"source\": \"s\", \"system_t2i\": \"x\", \"system_i2i\": \"y\", " USER
         "\"reply\": \"json:K\"}",
         LK_OK, NULL},
        {"{\"style\": \"custom:\", \"source\": \"s\", \"system\": \"x\", " USER "\"reply\": \"text\"}",
         LK_E_CONFIG_VALUE, "\"style\": expected qwen-edit-2511"},
        {"{\"style\": \"other\", \"source\": \"s\", \"system\": \"x\", " USER "\"reply\": \"text\"}", LK_E_CONFIG_VALUE,
         "custom:NAME"},
        {"{\"style\": \"custom:a\", \"source\": \"s\", \"system\": \"x\", \"user\": \"do\", \"reply\": \"text\"}",
         LK_E_CHECKSUM, "{prompt} once, got it 0 times"},
        {"{\"style\": \"custom:a\", \"source\": \"s\", \"system\": \"x\", \"user\": \"{prompt}{prompt}\", \"reply\": "
         "\"text\"}",
         LK_E_CHECKSUM, "2 times"},
        {"{\"style\": \"custom:a\", \"source\": \"s\", \"system\": \"x\", " USER "\"reply\": \"json:\"}",
         LK_E_CONFIG_VALUE, "\"reply\""},
        {"{\"style\": \"custom:a\", \"source\": \"s\", \"system\": \"x\", " USER "\"reply\": \"text\", \"more\": 1}",
         LK_E_CONFIG_KEY, "more"},
        {"{\"style\": \"custom:a\", \"source\": \"s\", \"system_i2i\": \"x\", " USER "\"reply\": \"text\"}",
         LK_E_CONFIG_KEY, "system_t2i"},
        {"{\"style\": \"qwen-edit-2511\", \"source\": \"s\", \"system\": \"you are a helpful assistant, you should "
         "provide useful answers to users.\", " USER "\"reply\": \"json:Rewritten\"}",
         LK_E_CHECKSUM, "\"user\": expected the authors' text, whose SHA-256 begins with f28c7895c479ad7c"},
        {"{\"style\": \"qwen-edit-2509\", \"source\": \"s\", \"system\": \"x\", " USER "\"reply\": \"json:Rewritten\"}",
         LK_E_CHECKSUM, "\"system\": expected the authors' text"},
        {"{\"style\": \"flux2\", \"source\": \"s\", \"system_t2i\": \"x\", \"system_i2i\": \"y\", \"user\": "
         "\"{prompt}\", \"reply\": \"text\"}",
         LK_E_CHECKSUM, "0ad9a42c565716b0"},
        {"{\"style\": \"flux2\", \"source\": \"s\", \"system_t2i\": \"x\", \"system_i2i\": \"y\", \"user\": "
         "\"{prompt}\", \"reply\": \"json:Rewritten\"}",
         LK_E_CONFIG_VALUE, "expected \"text\""},
        {"[]", LK_E_JSON, "expected a JSON object"},
    };
    char digests[2][65];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_rewrite_texts texts;
        const char *path = test_path("texts.json");
        test_write(path, cases[i].text, strlen(cases[i].text));
        if (cases[i].code) {
            assert_fails(lk_rewrite_texts_read(&texts, path), cases[i].code, cases[i].part);
        } else {
            assert_ok(lk_rewrite_texts_read(&texts, path));
            assert_string_equal(texts.user, "do {prompt}");
            memcpy(digests[i], texts.sha256, 65);
        }
        lk_rewrite_texts_free(&texts);
    }
    assert_string_not_equal(digests[0], digests[1]);
    struct lk_rewrite_texts texts;
    assert_fails(lk_rewrite_texts_read(&texts, test_path("no.json")), LK_E_NOT_FOUND, "no.json");
    lk_rewrite_texts_free(&texts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_message_of_pictures_and_text),
        cmocka_unit_test(two_messages_of_pictures_and_of_text),
        cmocka_unit_test(a_bad_reply_is_asked_for_again),
        cmocka_unit_test(a_failure_is_of_its_job_alone),
        cmocka_unit_test(a_temperature_draws_from_the_first_try),
        cmocka_unit_test(a_thousand_prompts),
        cmocka_unit_test(files_of_texts_are_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
