/* A judge on a server: what is sent, and that a server that is busy, stalls, cuts off, lies or refuses loses nothing
 * that was answered. The server is a thread with a script: what it does with each request, in the order of their
 * coming. */
#include <cjson/cJSON.h>
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "eval/judge/features.h"
#include "eval/judge/seeing.h"
#include "tests/common/scripted_server.h"
#include "tests/common/test.h"

#define ANSWER                                                                                                         \
    "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"{\\\"scores\\\":{\\\"edit_success\\\":5,"        \
    "\\\"skin_tone\\\":3,"                                                                                             \
    "\\\"race_drift\\\":1,\\\"gender_drift\\\":2,\\\"age_drift\\\":4}}\"},\"finish_reason\":\"stop\"}],\"usage\":{"    \
    "\"prompt_tokens\":900,\"completion_tokens\":60}}"

/* --- questions --- */

#define N 4

struct bench {
    struct lk_judge_prompts *prompts;
    struct lk_judge_message messages[N];
    struct lk_judge_item items[N];
    struct lk_judge_server *server;
    struct lk_seeing_judge judge;
    struct lk_seen seen[N];
};

static void open_bench(struct bench *b, const char *url, const char *key, double a_minute, int64_t answer_ms) {
    static const char *const ids[N] = {"flux_20s_male_black_O-01", "qwen_30s_female_white_V-03",
                                       "step1x_70plus_female_indian_O-10", "flux_40s_male_latino_V-10"};
    *b = (struct bench){0};
    assert_ok(lk_judge_prompts_load(&b->prompts));
    for (int i = 0; i < N; i++) {
        assert_ok(lk_judge_message(b->prompts, ids[i], &(struct lk_judge_ask){0}, &b->messages[i]));
        b->items[i] = (struct lk_judge_item){.item_id = ids[i], .message = &b->messages[i]};
        for (int k = 0; k < b->messages[i].n_parts; k++) {
            enum lk_judge_image image = b->messages[i].parts[k].image;
            if (!image) continue;
            assert_ok(lk_image_new(&b->items[i].images[image], 2, 3, 3));
            memset(b->items[i].images[image].pixels, 16 * i + (int)image, 18);
        }
    }
    assert_ok(lk_judge_server_open(&b->server, &(struct lk_judge_server_settings){.url = url,
                                                                                  .model = "a \"model\"",
                                                                                  .key = key,
                                                                                  .requests_per_minute = a_minute,
                                                                                  .answer_ms = answer_ms,
                                                                                  .pause_ms = 1}));
    b->judge = (struct lk_seeing_judge){.server = b->server, .mode = LK_JUDGE_FREE, .n_slots = 1};
    assert_ok(lk_seeing_judge_open(&b->judge));
}

static void close_bench(struct bench *b) {
    lk_seeing_judge_close(&b->judge);
    lk_judge_server_close(b->server);
    for (int i = 0; i < N; i++) {
        lk_seen_free(&b->seen[i]);
        for (int k = 0; k < LK_N_JUDGE_IMAGES; k++) lk_image_free(&b->items[i].images[k]);
        lk_judge_message_free(&b->messages[i]);
    }
    lk_judge_prompts_free(b->prompts);
}

static void assert_answered(const struct lk_seen *v) {
    static const uint8_t scores[LK_N_AXES] = {5, 3, 1, 2, 4};
    if (v->code) fail_msg("%s", v->error);
    assert_true(v->valid);
    assert_memory_equal(v->answer.score, scores, sizeof scores);
}

/* The JSON of a request. */
static cJSON *body_of(const char *request) {
    cJSON *root = cJSON_Parse(strstr(request, "\r\n\r\n") + 4);
    assert_non_null(root);
    return root;
}

static void sends_the_question_and_reads_the_answer(void **state) {
    static const struct step steps[] = {{.head = OK, .body = ANSWER}};
    struct bench b;
    (void)state;
    open_bench(&b, scripted_start(steps, 1), "s3cret", 0, 60000);
    assert_ok(lk_judge_see(&b.judge, b.items, 1, b.seen));
    assert_answered(&b.seen[0]);
    assert_int_equal(b.seen[0].n_attempts, 1);
    assert_int_equal(b.seen[0].attempts[0].seed, 2);
    const char *request = server.seen[0];
    assert_int_equal(strncmp(request, "POST /v1/chat/completions HTTP/1.1\r\n", 36), 0);
    assert_non_null(strstr(request, "\r\nAuthorization: Bearer s3cret\r\n"));
    assert_non_null(strstr(request, "\r\nContent-Type: application/json\r\n"));
    cJSON *root = body_of(request);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "model")), "a \"model\"");
    assert_true(fabs(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "temperature")) - 0.1) < 1e-7);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "top_p")) == 1);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "max_tokens")) == LK_JUDGE_NEW_TOKENS);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "seed")) == 2);
    const cJSON *messages = cJSON_GetObjectItem(root, "messages");
    assert_int_equal(cJSON_GetArraySize(messages), 1);
    const cJSON *parts = cJSON_GetObjectItem(cJSON_GetArrayItem(messages, 0), "content");
    assert_int_equal(cJSON_GetArraySize(parts), b.messages[0].n_parts);
    for (int i = 0; i < b.messages[0].n_parts; i++) {
        const cJSON *part = cJSON_GetArrayItem(parts, i);
        if (b.messages[0].parts[i].text) {
            assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(part, "text")), b.messages[0].parts[i].text);
            continue;
        }
        struct lk_text url = {0};
        void *png;
        size_t n;
        assert_ok(lk_png_encode("picture", &b.items[0].images[b.messages[0].parts[i].image], &png, &n));
        lk_text_add(&url, "data:image/png;base64,");
        lk_text_base64(&url, png, n);
        const cJSON *image = cJSON_GetObjectItem(part, "image_url");
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(image, "url")), url.bytes);
        lk_text_free(&url);
        lk_free(png);
    }
    cJSON_Delete(root);
    scripted_stop();
    close_bench(&b);
}

/* Each of these once, then the answer: nothing is lost. */
static void tries_again(void **state) {
    static const struct step steps[] = {
        {.head = BUSY, .body = "{\"error\":{\"message\":\"loading model\"}}"},
        {.head = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0.01\r\n"},
        {.head = OK, .body = ANSWER, .length = 100000},
        {.head = OK, .body = ANSWER},
        {.head = NULL},
        {.head = OK, .body = ANSWER},
        {.head = OK, .body = "{\"choices\":[{\"message\":{\"content\":", .length = 36},
        {.head = OK, .body = "{\"choices\":[]}"},
        {.head = OK, .body = "<html>not JSON</html>"},
        {.head = OK, .body = "{\"choices\":[{\"message\":{\"content\":null}}]}"},
        {.head = OK, .body = ANSWER},
        {.head = "HTTP/1.1 500 Oops\r\n", .body = "Internal"},
        {.head = OK, .body = ANSWER},
    };
    struct bench b;
    (void)state;
    open_bench(&b, scripted_start(steps, sizeof steps / sizeof *steps), NULL, 0, 60000);
    for (int i = 0; i < N; i++) {
        assert_ok(lk_judge_see(&b.judge, &b.items[i], 1, &b.seen[i]));
        assert_answered(&b.seen[i]);
    }
    for (int i = 0; i < server.n_seen; i++) assert_null(strstr(server.seen[i], "Authorization"));
    assert_ok(lk_judge_server_state(b.server));
    scripted_stop();
    close_bench(&b);
}

/* However long the server would keep the connection. */
static void a_server_that_stalls_is_left(void **state) {
    static const struct step steps[] = {{.stalls = true},
                                        {.head = OK, .length = 5, .stalls = true},
                                        {.stalls = true},
                                        {.head = OK, .body = "{", .length = 5, .stalls = true},
                                        {.stalls = true}};
    struct bench b;
    (void)state;
    open_bench(&b, scripted_start(steps, 5), NULL, 0, 50);
    assert_ok(lk_judge_see(&b.judge, b.items, 1, b.seen));
    assert_non_null(strstr(b.seen[0].error, "Timeout was reached, in 5 tries"));
    assert_ok(lk_judge_server_state(b.server));
    scripted_stop();
    close_bench(&b);
}

/* What a server says of one question is that question's; its neighbours are answered. */
static void one_that_cannot_be_asked_is_named(void **state) {
    static char block[4096];
    memset(block, ' ', sizeof block - 1);
    const struct step steps[] = {
        {.head = "HTTP/1.1 400 Bad Request\r\n", .body = "{\"error\":{\"message\":\"too many image tokens\\n\"}}"},
        {.head = OK, .body = ANSWER},
        {.head = OK, .length = 1L << 40, .after = block},
        {.head = BUSY},
        {.head = BUSY, .body = "{\"error\":\"no slot\"}"},
        {.head = BUSY, .body = "{\"error\":\"no slot\"}"},
        {.head = BUSY, .body = "{\"error\":\"no slot\"}"},
        {.head = BUSY, .body = "{\"error\":\"no slot\"}"},
    };
    struct bench b;
    (void)state;
    open_bench(&b, scripted_start(steps, sizeof steps / sizeof *steps), NULL, 0, 60000);
    assert_ok(lk_judge_see(&b.judge, b.items, N, b.seen));
    assert_int_equal(b.seen[0].code, LK_E_IO);
    assert_non_null(strstr(b.seen[0].error, "/v1/chat/completions: status 400: too many image tokens?"));
    assert_answered(&b.seen[1]);
    assert_int_equal(b.seen[2].code, LK_E_IO);
    assert_non_null(strstr(b.seen[2].error, "expected at most 4194304 bytes, got more"));
    assert_non_null(strstr(b.seen[3].error, "status 503: no slot, in 5 tries"));
    assert_ok(lk_judge_server_state(b.server));
    scripted_stop();
    close_bench(&b);
}

/* An answer that is no valid verdict is asked for with the next seed, as in this process. */
static void a_bad_verdict_is_asked_again(void **state) {
    static const struct step steps[] = {
        {.head = OK,
         .body = "{\"choices\":[{\"message\":{\"content\":\"I cannot say.\"},\"finish_reason\":\"stop\"}]}"},
        {.head = OK, .body = ANSWER}};
    struct bench b;
    (void)state;
    open_bench(&b, scripted_start(steps, 2), NULL, 60000, 60000);
    assert_ok(lk_judge_see(&b.judge, b.items, 1, b.seen));
    assert_answered(&b.seen[0]);
    assert_int_equal(b.seen[0].n_attempts, 2);
    assert_string_equal(b.seen[0].attempts[0].raw, "I cannot say.");
    cJSON *root = body_of(server.seen[1]);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "seed")) == 3);
    cJSON_Delete(root);
    scripted_stop();
    close_bench(&b);
}

/* What concerns all questions ends the asking; what was answered stays, and no more is sent. */
static void a_server_that_refuses_is_asked_no_more(void **state) {
    static const char *const heads[] = {"HTTP/1.1 401 Unauthorized\r\n", "HTTP/1.1 404 Not Found\r\n",
                                        "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\n"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        const struct step steps[] = {{.head = OK, .body = ANSWER},
                                     {.head = heads[k], .body = "{\"error\":{\"message\":\"wrong key\"}}"}};
        struct bench b;
        open_bench(&b, scripted_start(steps, 2), "k", 0, 60000);
        assert_ok(lk_judge_see(&b.judge, b.items, N, b.seen));
        scripted_stop();
        assert_answered(&b.seen[0]);
        for (int i = 1; i < N; i++) assert_int_equal(b.seen[i].code, LK_E_IO);
        assert_fails(lk_judge_server_state(b.server), LK_E_INPUT,
                     "wrong key; see that --openai-url, --model and the key");
        for (int i = 0; i < N; i++) lk_seen_free(&b.seen[i]);
        assert_ok(lk_judge_see(&b.judge, b.items, 1, b.seen));
        assert_int_equal(b.seen[0].code, LK_E_IO);
        assert_non_null(strstr(b.seen[0].error, "wrong key")); /* as before: nothing was sent */
        close_bench(&b);
    }
}

static void a_server_that_is_away_is_named(void **state) {
    struct bench b;
    (void)state;
    const char *url = scripted_start(NULL, 0);
    scripted_stop(); /* nobody listens there now */
    open_bench(&b, url, NULL, 0, 60000);
    assert_ok(lk_judge_see(&b.judge, b.items, N, b.seen));
    for (int i = 0; i < N; i++) assert_int_equal(b.seen[i].code, LK_E_IO);
    assert_fails(lk_judge_server_state(b.server), LK_E_IO, "in 5 tries; see that the server runs");
    close_bench(&b);
}

static enum lk_code interrupted(void) { return lk_fail(LK_E_INTERRUPTED, "stopped"); }

static void bad_settings_and_signals(void **state) {
    struct lk_judge_server *none;
    struct bench b;
    (void)state;
    assert_fails(
        lk_judge_server_open(&none, &(struct lk_judge_server_settings){.url = "file:///etc/passwd", .model = "m"}),
        LK_E_USAGE, "expected http://HOST:PORT/v1");
    assert_fails(
        lk_judge_server_open(&none, &(struct lk_judge_server_settings){.url = "http://a", .model = "m", .key = "a\nb"}),
        LK_E_USAGE, "expected one line");
    assert_fails(
        lk_judge_server_open(&none, &(struct lk_judge_server_settings){.url = "http://a/v1?key=x", .model = "m"}),
        LK_E_USAGE, "expected no \"?\"");
    open_bench(&b, "http://127.0.0.1:1", NULL, 0, 60000);
    b.judge.tick = interrupted;
    assert_int_equal(lk_judge_see(&b.judge, b.items, 1, b.seen), LK_E_INTERRUPTED);
    struct lk_chat_question forced = {.form = &b.judge.form};
    struct lk_chat_answer said;
    assert_fails(lk_judge_server_ask(b.server, &forced, 1, 1, NULL, &said), LK_E_USAGE, "questions of free text");
    close_bench(&b);
}

/* --- the server's words --- */

#define S5                    "\\\"edit_success\\\":5,\\\"skin_tone\\\":3,\\\"race_drift\\\":1,\\\"gender_drift\\\":2,\\\"age_drift\\\":4"
#define SAYS(message, reason) "{\"choices\":[{\"message\":" message ",\"finish_reason\":" reason "}]}"
#define TEXT(text)            SAYS("{\"content\":\"" text "\"}", "\"stop\"")

/* A refusal is one answer; an answer that the limit cut off says so; an empty one too. */
static void refusals_are_asked_once(void **state) {
    static const struct step steps[] = {
        {.head = OK, .body = SAYS("{\"content\":null,\"refusal\":\"I can't judge that.\"}", "\"stop\"")},
        {.head = "HTTP/1.1 400 Bad Request\r\n",
         .body = "{\"error\":{\"code\":\"content_filter\",\"message\":\"filtered\"}}"},
        {.head = OK, .body = SAYS("{\"content\":null,\"reasoning_content\":\"hm {" S5 "}\"}", "\"length\"")},
        {.head = OK, .body = SAYS("{\"content\":\"{" S5 "\"}", "\"length\"")},
        {.head = OK, .body = SAYS("{\"content\":\"\"}", "\"stop\"")},
        {.head = OK, .body = ANSWER}};
    struct bench b;
    (void)state;
    open_bench(&b, scripted_start(steps, 6), NULL, 0, 60000);
    for (int i = 0; i < 4; i++) assert_ok(lk_judge_see(&b.judge, &b.items[i], 1, &b.seen[i]));
    assert_true(b.seen[0].refused && b.seen[0].n_attempts == 1 && !b.seen[0].valid && !b.seen[0].code);
    assert_string_equal(b.seen[0].attempts[0].raw, "I can't judge that.");
    assert_true(b.seen[1].refused && b.seen[1].n_attempts == 1);
    assert_string_equal(b.seen[1].attempts[0].raw, "filtered");
    assert_int_equal(b.seen[2].n_attempts, 3);
    assert_false(b.seen[2].valid);
    assert_non_null(
        strstr(b.seen[2].attempts[0].error, "cut off by the limit of tokens: a thought that <think> begins"));
    assert_non_null(strstr(b.seen[2].attempts[0].raw, "<think>hm {"));
    assert_non_null(
        strstr(b.seen[2].attempts[1].error, "cut off by the limit of tokens: the JSON object is not closed"));
    assert_string_equal(b.seen[2].attempts[2].error, "the answer is empty");
    assert_answered(&b.seen[3]);
    scripted_stop();
    close_bench(&b);
}

/* Nothing but one failure: no more is sent. One answer, and failures are the items' own. */
static void failures_alike_end_the_asking(void **state) {
    enum { N_ASKED = LK_HTTP_ALIKE + 2 };
    static const struct step bad = {.head = "HTTP/1.1 400 Bad Request\r\n",
                                    .body = "{\"error\":{\"message\":\"Unsupported parameter: 'seed'\"}}"};
    struct step steps[N_ASKED + 1];
    (void)state;
    for (int answered = 0; answered < 2; answered++) {
        struct bench b;
        struct lk_chat_answer said[N_ASKED + 1];
        struct lk_chat_question questions[N_ASKED + 1];
        int n = N_ASKED + answered, n_steps = answered ? n : LK_HTTP_ALIKE;
        for (int i = 0; i < n_steps; i++) steps[i] = bad;
        if (answered) steps[0] = (struct step){.head = OK, .body = ANSWER};
        open_bench(&b, scripted_start(steps, n_steps), NULL, 0, 60000);
        for (int i = 0; i < n; i++) questions[i] = (struct lk_chat_question){0};
        assert_ok(lk_judge_server_ask(b.server, questions, n, 1, NULL, said));
        for (int i = answered; i < n; i++) {
            assert_int_equal(said[i].code, LK_E_IO);
            assert_non_null(strstr(said[i].error, "status 400: Unsupported parameter: 'seed'"));
        }
        if (answered)
            assert_ok(lk_judge_server_state(b.server));
        else
            assert_fails(lk_judge_server_state(b.server), LK_E_INPUT, "the first 5 questions failed alike");
        scripted_stop();
        for (int i = 0; i < n; i++) lk_chat_answer_free(&said[i]);
        close_bench(&b);
    }
}

static void a_judge_must_see(void **state) {
    static const char *const words[] = {"image input is not supported - hint: you may need to provide the mmproj",
                                        "m is not a multimodal model", "This model does not support image input"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char body[200];
        snprintf(body, sizeof body, "{\"error\":{\"code\":500,\"message\":\"%s\"}}", words[i]);
        const struct step steps[] = {{.head = i ? "HTTP/1.1 400 No\r\n" : "HTTP/1.1 500 No\r\n", .body = body}};
        struct bench b;
        open_bench(&b, scripted_start(steps, 1), NULL, 0, 60000);
        assert_ok(lk_judge_see(&b.judge, b.items, N, b.seen));
        assert_fails(lk_judge_server_state(b.server), LK_E_INPUT, "a judge must see");
        scripted_stop();
        close_bench(&b);
    }
}

static char waited[8][600];
static int n_waited;
static void keep_waiting(const char *why) { snprintf(waited[n_waited++ % 8], sizeof waited[0], "%s", why); }
static enum lk_code until_it_waits(void) { return n_waited ? interrupted() : LK_OK; }

/* A pause is told with its reason, its length and its end; dates are read; the address is shown without its password.
 */
static void pauses_are_told(void **state) {
    static const struct {
        const char *header, *told;
    } cases[] = {{"Retry-After: 99999999\r\n", "waiting 300 s, until "},
                 {"Retry-After: 7\r\n", "waiting 7 s, until "},
                 {"Retry-After: Fri, 01 Jan 2100 00:00:00 GMT\r\n", "waiting 300 s, until "},
                 {"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n", "waiting 1 s, until "},
                 {"", "waiting 1 s, until "}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char head[200], url[100];
        snprintf(head, sizeof head, "HTTP/1.1 429 Slow\r\n%s", cases[i].header);
        const struct step steps[] = {{.head = head, .body = "{\"error\":\"for s3cret-key: my-pass\"}"}};
        struct lk_chat_question question = {.form = NULL};
        struct lk_chat_answer said;
        struct lk_judge_server *s;
        scripted_start(steps, 1);
        snprintf(url, sizeof url, "http://me:my-pass@127.0.0.1:%d/v1", server.port);
        assert_ok(lk_judge_server_open(
            &s, &(struct lk_judge_server_settings){
                    .url = url, .model = "m", .key = "s3cret-key", .pause_ms = 1, .waiting = keep_waiting}));
        n_waited = 0;
        assert_int_equal(lk_judge_server_ask(s, &question, 1, 1, until_it_waits, &said), LK_E_INTERRUPTED);
        assert_non_null(strstr(waited[0], cases[i].told));
        assert_non_null(strstr(waited[0], "status 429: for **********: *******; waiting"));
        assert_non_null(strstr(waited[0], "then try 2 of 5"));
        assert_non_null(strstr(waited[0], "http://***@127.0.0.1:"));
        assert_null(strstr(waited[0], "my-pass"));
        assert_int_equal(strncmp(lk_judge_server_shown(s), "http://***@127.0.0.1:", 21), 0);
        lk_judge_server_close(s);
        scripted_stop();
    }
}

#define FEATURES(prompt)                                                                                               \
    "{\"choices\":[{\"message\":{\"content\":\"{\\\"skin_tone\\\":\\\"deep\\\",\\\"face_shape\\\":\\\"oval\\\","       \
    "\\\"eyes\\\":\\\"dark\\\",\\\"nose\\\":\\\"broad\\\",\\\"lips\\\":\\\"full\\\",\\\"hair\\\":\\\"grey\\\","        \
    "\\\"distinctive_features\\\":\\\"none\\\",\\\"identity_prompt\\\":\\\"" prompt "\\\"}\"}}]}"

/* Features are asked as scores are: the picture first, again when a group is named, and no more when it is lost. */
static void features_are_asked_there(void **state) {
    static const struct step steps[] = {{.head = OK, .body = FEATURES("Maintain the person's look as an Asian man.")},
                                        {.head = OK, .body = FEATURES("Maintain the person's deep skin.")},
                                        {.head = "HTTP/1.1 401 No\r\n"}};
    struct bench b;
    struct lk_extracted e;
    (void)state;
    open_bench(&b, scripted_start(steps, 3), NULL, 0, 60000);
    const struct lk_image *picture = &b.items[0].images[LK_JUDGE_SOURCE];
    assert_ok(lk_features_extract(&b.judge, "what is kept?", picture, 1, &e));
    assert_true(e.found && !e.code && !e.features.leak && !e.composed && e.n_attempts == 2);
    assert_string_equal(e.features.texts[LK_N_FEATURES - 1], "Maintain the person's deep skin.");
    lk_extracted_free(&e);
    for (int i = 0; i < 2; i++) {
        cJSON *root = body_of(server.seen[i]);
        assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "max_tokens")) == LK_FEATURE_NEW_TOKENS);
        assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "seed")) == 2 + i);
        const cJSON *parts =
            cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(root, "messages"), 0), "content");
        assert_int_equal(cJSON_GetArraySize(parts), 2);
        assert_non_null(cJSON_GetObjectItem(cJSON_GetArrayItem(parts, 0), "image_url"));
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(parts, 1), "text")),
                            "what is kept?");
        cJSON_Delete(root);
    }
    assert_ok(lk_features_extract(&b.judge, "what is kept?", picture, 1, &e));
    assert_true(e.code && !e.found);
    lk_extracted_free(&e);
    assert_true(lk_judge_server_state(b.server) != LK_OK);
    close_bench(&b);
    scripted_stop();
}

int main(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(refusals_are_asked_once),
                                              cmocka_unit_test(failures_alike_end_the_asking),
                                              cmocka_unit_test(a_judge_must_see),
                                              cmocka_unit_test(pauses_are_told),
                                              cmocka_unit_test(features_are_asked_there),
                                              cmocka_unit_test(sends_the_question_and_reads_the_answer),
                                              cmocka_unit_test(tries_again),
                                              cmocka_unit_test(a_server_that_stalls_is_left),
                                              cmocka_unit_test(one_that_cannot_be_asked_is_named),
                                              cmocka_unit_test(a_bad_verdict_is_asked_again),
                                              cmocka_unit_test(a_server_that_refuses_is_asked_no_more),
                                              cmocka_unit_test(a_server_that_is_away_is_named),
                                              cmocka_unit_test(bad_settings_and_signals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
