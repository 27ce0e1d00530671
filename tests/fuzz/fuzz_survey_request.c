/* The survey's request handler, without a socket: a request of who is at any stage, from nobody to a complete task.
 * Input: a byte that says who asks (its low three bits) and whether a body has the form's token (8), then a line each:
 * method, URI, Origin, Accept, Authorization and a Cookie header of one's own; the rest is the body. What a request
 * changes is taken back after it, and what it counts. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "eval/survey/store.h"
#include "tools/cli/survey/http.h"

enum { N_STAGES = 6, N_LINES = 6 };

static char folder[] = "/tmp/survey-fuzz-XXXXXX", tokens[N_STAGES][65], forms[N_STAGES][65];
static struct survey_server server;

static void require(int condition) {
    if (!condition) abort();
}

static int64_t clock_of(void *context) {
    (void)context;
    return 1768608000000;
}

static void write_file(const char *name, const char *text) {
    char path[100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    require(file && fputs(text, file) >= 0 && !fclose(file));
}

static void clean_up(void) {
    char command[80];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command)) perror(command);
}

/* Stage 0 nobody, 1 entered, 2 guided, 3 consented, 4 in a task, 5 through. */
static void bring_to(int stage) {
    struct lk_survey_visitor who;
    enum lk_survey_verdict verdict = LK_SURVEY_DONE;
    char id[8], *text, sha256[65];
    snprintf(id, sizeof id, "p%d", stage);
    require(!lk_survey_enter(server.survey, id, false, clock_of(NULL), tokens[stage]));
    lk_survey_form_token(server.survey, tokens[stage], forms[stage]);
    require(!lk_survey_visitor(server.survey, tokens[stage], clock_of(NULL), &who));
    require(!lk_survey_consent_text(server.study, &text, sha256));
    lk_free(text);
    if (stage > 1) require(!lk_survey_guided(server.survey, &who, true, clock_of(NULL)));
    if (stage > 2) require(!lk_survey_consent(server.survey, &who, sha256, clock_of(NULL)));
    if (stage > 3) require(!lk_survey_claim(server.survey, &who, 0, clock_of(NULL), &verdict) && !verdict);
    if (stage > 4)
        require(
            !lk_sql_run(&server.survey->sql, "UPDATE claims SET state='submitted' WHERE participant=?1", "i", who.id));
}

static void set_up(void) {
    char path[100];
    struct lk_survey_study *study;
    require(mkdtemp(folder) != NULL);
    atexit(clean_up);
    write_file("p.png", "picture");
    write_file(
        "study.json",
        "{\"study\":\"f\",\"protocol\":\"001\",\"experiment\":2,\"exp2_option\":\"B\",\"tasks\":1,\"items\":["
        "{\"id\":\"flux_20s_male_black_O-01\",\"source\":\"p.png\",\"edited\":\"p.png\",\"preserved\":\"p.png\"},"
        "{\"id\":\"flux_20s_male_black_O-02\",\"source\":\"p.png\",\"edited\":\"p.png\",\"preserved\":\"p.png\"},"
        "{\"id\":\"flux_20s_male_black_O-03\",\"source\":\"p.png\",\"edited\":\"p.png\",\"preserved\":\"p.png\"}],"
        "\"tutorial\":[{\"id\":\"t\",\"prompt\":\"p\",\"source\":\"p.png\",\"edited\":\"p.png\",\"preserved\":"
        "\"p.png\",\"expected\":{\"race_drift\":5}}]}");
    snprintf(path, sizeof path, "%s/study.json", folder);
    require(!lk_survey_study_read(&study, path));
    snprintf(path, sizeof path, "%s/store", folder);
    server = (struct survey_server){.respond = survey_respond, .study = study, .now = clock_of, .host = "h:1"};
    require(!lk_survey_open(&server.survey, study, path, true));
    for (int stage = 1; stage < N_STAGES; stage++) bring_to(stage);
}

/* Nothing that was sent is in a page as a tag, and a reply leads nowhere but to ourselves. */
static void check(struct survey_reply *reply) {
    require(reply->status >= 200 && reply->status < 500 && reply->type);
    require(!reply->body.n || !memmem(reply->body.bytes, reply->body.n, "<fuzz", 5));
    require(!reply->body.n || lk_utf8_valid(reply->body.bytes, reply->body.n));
    require(!*reply->location || (reply->location[0] == '/' && reply->location[1] != '/'));
    require(strspn(reply->location, "/?=abcdefghijklmnopqrstuvwxyz0123456789") == strlen(reply->location));
    require(!*reply->cookie || strspn(reply->cookie, "0123456789abcdef") == 64);
    if (reply->file) require(!strncmp(reply->file, server.study->folder, strlen(server.study->folder)));
    if (reply->file) require(strstr(reply->file, "secrets") == NULL && strstr(reply->file, "answers") == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static char own[120], body[(1 << 14) + 80];
    char *text = malloc(n + 1), *lines[N_LINES], *rest = text;
    if (!server.survey) set_up();
    if (!text || n < 1 || n > 1 << 14) {
        free(text);
        return 0;
    }
    memcpy(text, data + 1, n - 1);
    text[n - 1] = '\0';
    for (int i = 0; i < N_LINES; i++) {
        char *end = strchr(rest, '\n');
        lines[i] = rest;
        rest = end ? end + 1 : rest + strlen(rest);
        if (end) *end = '\0';
    }
    int stage = (data[0] & 7) % N_STAGES;
    snprintf(own, sizeof own, "survey=%s", tokens[stage]);
    snprintf(body, sizeof body, "%s%s%s", data[0] & 8 ? "form=" : "", data[0] & 8 ? forms[stage] : "",
             data[0] & 8 ? "&" : "");
    snprintf(body + strlen(body), sizeof body - strlen(body), "%s", rest);
    struct survey_request request = {.method = lines[0],
                                     .uri = lines[1],
                                     .body = strcmp(lines[0], "POST") ? NULL : body,
                                     .host = "h:1",
                                     .origin = *lines[2] ? lines[2] : NULL,
                                     .accept = lines[3],
                                     .authorization = lines[4],
                                     .cookie = stage ? own : lines[5]};
    struct survey_reply reply;
    memset(server.survey->limits, 0, sizeof server.survey->limits);
    require(!lk_survey_together(server.survey));
    require(!survey_respond(&server, &request, &reply));
    check(&reply);
    lk_text_free(&reply.body);
    lk_sql_end(&server.survey->sql, LK_E_INPUT);
    free(text);
    return 0;
}
