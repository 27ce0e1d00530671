/* A judge on a server: what is sent, and that a server that is busy, stalls, cuts off, lies or refuses loses nothing
 * that was answered. The server is a thread with a script: what it does with each request, in the order of their
 * coming. */
#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "eval/judge/features.h"
#include "eval/judge/seeing.h"
#include "tests/common/test.h"

#define ANSWER                                                                                                         \
    "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"{\\\"scores\\\":{\\\"edit_success\\\":5,"        \
    "\\\"skin_tone\\\":3,"                                                                                             \
    "\\\"race_drift\\\":1,\\\"gender_drift\\\":2,\\\"age_drift\\\":4}}\"},\"finish_reason\":\"stop\"}],\"usage\":{"    \
    "\"prompt_tokens\":900,\"completion_tokens\":60}}"

/* --- the server --- */

struct step {
    const char *head;  /* status line and headers but Content-Length; NULL: no answer at all */
    const char *body;  /* NULL: "" */
    long length;       /* that is told; 0: the body's */
    bool stalls;       /* the connection stays open until the client ends it */
    const char *after; /* sent in place of a body: blocks of it until nobody takes them */
};
#define OK       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define BUSY     "HTTP/1.1 503 Busy\r\n"
#define MAX_SEEN 64

static struct {
    const struct step *steps;
    int n_steps, listener, port, n_seen;
    char *seen[MAX_SEEN]; /* requests, whole */
    pthread_t thread;
} server;

static void send_all(int fd, const char *bytes, size_t n) {
    for (ssize_t sent; n && (sent = send(fd, bytes, n, MSG_NOSIGNAL)) > 0; bytes += sent) n -= (size_t)sent;
}

/* The request with as many bytes as its Content-Length says. */
static char *receive_request(int fd) {
    struct lk_text text = {0};
    char block[65536];
    for (ssize_t n; (n = recv(fd, block, sizeof block, 0)) > 0;) {
        lk_text_bytes(&text, block, (size_t)n);
        const char *length = strstr(text.bytes, "Content-Length: "), *end = strstr(text.bytes, "\r\n\r\n");
        if (end && length && text.n >= (size_t)(end + 4 - text.bytes) + strtoul(length + 16, NULL, 10)) break;
    }
    return text.bytes;
}

static void answer(int fd, const struct step *s) {
    char head[400];
    if (s->head) {
        const char *body = s->body ? s->body : "";
        snprintf(head, sizeof head, "%sContent-Length: %ld\r\nConnection: close\r\n\r\n", s->head,
                 s->length ? s->length : (long)strlen(body));
        send_all(fd, head, strlen(head));
        send_all(fd, body, strlen(body));
    }
    if (s->stalls)
        while (recv(fd, head, sizeof head, 0) > 0) {
        }
    for (ssize_t n = 1; s->after && n > 0;) n = send(fd, s->after, strlen(s->after), MSG_NOSIGNAL);
}

static void *serve(void *context) {
    (void)context;
    for (int i = 0; i < server.n_steps; i++) {
        int fd = accept(server.listener, NULL, NULL);
        if (fd < 0) break;
        server.seen[server.n_seen++] = receive_request(fd);
        answer(fd, &server.steps[i]);
        close(fd);
    }
    close(server.listener); /* who asks more is refused at once */
    return NULL;
}

static const char *start(const struct step *steps, int n) {
    static char url[64];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    server.steps = steps;
    server.n_steps = n;
    server.n_seen = 0;
    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(server.listener >= 0 && !bind(server.listener, (struct sockaddr *)&at, sizeof at));
    assert_true(!listen(server.listener, 16) && !getsockname(server.listener, (struct sockaddr *)&at, &size));
    server.port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v1/", server.port);
    return url;
}

/* All of the script was asked for. */
static void stop(void) {
    pthread_join(server.thread, NULL);
    assert_int_equal(server.n_seen, server.n_steps);
    for (int i = 0; i < server.n_seen; i++) lk_free(server.seen[i]);
}

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
    open_bench(&b, start(steps, 1), "s3cret", 0, 60000);
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
    stop();
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
    open_bench(&b, start(steps, sizeof steps / sizeof *steps), NULL, 0, 60000);
    for (int i = 0; i < N; i++) {
        assert_ok(lk_judge_see(&b.judge, &b.items[i], 1, &b.seen[i]));
        assert_answered(&b.seen[i]);
    }
    for (int i = 0; i < server.n_seen; i++) assert_null(strstr(server.seen[i], "Authorization"));
    assert_ok(lk_judge_server_state(b.server));
    stop();
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
    open_bench(&b, start(steps, 5), NULL, 0, 50);
    assert_ok(lk_judge_see(&b.judge, b.items, 1, b.seen));
    assert_non_null(strstr(b.seen[0].error, "Timeout was reached, in 5 tries"));
    assert_ok(lk_judge_server_state(b.server));
    stop();
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
    open_bench(&b, start(steps, sizeof steps / sizeof *steps), NULL, 0, 60000);
    assert_ok(lk_judge_see(&b.judge, b.items, N, b.seen));
    assert_int_equal(b.seen[0].code, LK_E_IO);
    assert_non_null(strstr(b.seen[0].error, "/v1/chat/completions: status 400: too many image tokens?"));
    assert_answered(&b.seen[1]);
    assert_int_equal(b.seen[2].code, LK_E_IO);
    assert_non_null(strstr(b.seen[2].error, "expected at most 4194304 bytes, got more"));
    assert_non_null(strstr(b.seen[3].error, "status 503: no slot, in 5 tries"));
    assert_ok(lk_judge_server_state(b.server));
    stop();
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
    open_bench(&b, start(steps, 2), NULL, 60000, 60000);
    assert_ok(lk_judge_see(&b.judge, b.items, 1, b.seen));
    assert_answered(&b.seen[0]);
    assert_int_equal(b.seen[0].n_attempts, 2);
    assert_string_equal(b.seen[0].attempts[0].raw, "I cannot say.");
    cJSON *root = body_of(server.seen[1]);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "seed")) == 3);
    cJSON_Delete(root);
    stop();
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
        open_bench(&b, start(steps, 2), "k", 0, 60000);
        assert_ok(lk_judge_see(&b.judge, b.items, N, b.seen));
        stop();
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
    const char *url = start(NULL, 0);
    stop(); /* nobody listens there now */
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
    open_bench(&b, "http://127.0.0.1:1", NULL, 0, 60000);
    b.judge.tick = interrupted;
    assert_int_equal(lk_judge_see(&b.judge, b.items, 1, b.seen), LK_E_INTERRUPTED);
    struct lk_chat_question forced = {.form = &b.judge.form};
    struct lk_chat_answer said;
    assert_fails(lk_judge_server_ask(b.server, &forced, 1, 1, NULL, &said), LK_E_USAGE, "questions of free text");
    close_bench(&b);
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
    open_bench(&b, start(steps, 3), NULL, 0, 60000);
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
    stop();
}

int main(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(features_are_asked_there),
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
