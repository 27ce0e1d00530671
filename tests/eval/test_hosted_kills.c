/* A study of a model that runs here and of one that is asked over the network, which refuses the pictures of one group;
 * the run is killed twice while requests are under way. No answer is lost, nobody is asked again who was answered, and
 * the report's first screen says whom the service refuses. */
#include <arpa/inet.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/image/image.h"
#include "eval/study/journal.h"
#include "tests/common/served.h"
#include "tests/common/test.h"
#include "tests/common/tiny_study.h"

#define KEY "sk-very-s3cret"

enum { SIDE = 64, N_SOURCES = 12, N_PROMPTS = 4, N_JOBS = N_SOURCES * N_PROMPTS, QUEUE = 4 };
static char folder[1100];

/* --- a service that decides by who is in the picture --- */

static struct {
    int listener, port;
    pthread_t thread;
    pthread_mutex_t lock;
    int asked[N_JOBS], answered[N_JOBS], n_answered;
    int hold_from; /* after so many answers nobody is answered any more */
    bool ends;
} service = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Of the second group all but one prompt is refused, of the first one request in all. */
static bool refuses(int job) {
    const int source = job / N_PROMPTS, prompt = job % N_PROMPTS;
    return source % 2 ? prompt != source / 2 % N_PROMPTS : job == 0;
}

static char *picture_for(int job) {
    struct lk_image image;
    struct lk_text text = {0};
    void *png;
    size_t n;
    uint64_t random = (uint64_t)job + 1;
    assert_ok(lk_image_new(&image, SIDE, SIDE, 3));
    for (int i = 0; i < SIDE * SIDE * 3; i++) image.pixels[i] = (uint8_t)test_random(&random);
    assert_ok(lk_png_encode("picture", &image, &png, &n));
    lk_text_add(&text, "{\"data\":[{\"b64_json\":\"");
    lk_text_base64(&text, png, n);
    lk_text_add(&text, "\"}]}");
    lk_free(png);
    lk_image_free(&image);
    return text.bytes;
}

/* Which source and prompt a form is about: the source's first pixel and the prompt's number say. */
static int job_of(const char *request, size_t n) {
    const char *png = memmem(request, n, "\x89PNG", 4), *prompt = memmem(request, n, "Edit number ", 12);
    struct lk_image image;
    if (!png || !prompt || lk_image_decode(&image, png, n - (size_t)(png - request), "what was sent", 0, 0)) return -1;
    const int source = image.pixels[0] - 10;
    lk_image_free(&image);
    return source * N_PROMPTS + atoi(prompt + 12);
}

static void send_all(int fd, const char *bytes, size_t n) {
    for (ssize_t sent; n && (sent = send(fd, bytes, n, MSG_NOSIGNAL)) > 0; bytes += sent) n -= (size_t)sent;
}

static void *answer_one(void *context) {
    const int fd = (int)(intptr_t)context;
    struct lk_text text = {0};
    char block[65536], head[200];
    size_t all = 0;
    for (ssize_t n; (!all || text.n < all) && (n = recv(fd, block, sizeof block, 0)) > 0;) {
        lk_text_bytes(&text, block, (size_t)n);
        const char *length = memmem(text.bytes, text.n, "Content-Length: ", 16),
                   *end = memmem(text.bytes, text.n, "\r\n\r\n", 4);
        if (!all && end && length) all = (size_t)(end + 4 - text.bytes) + strtoul(length + 16, NULL, 10);
    }
    const int job = text.n ? job_of(text.bytes, text.n) : -1;
    pthread_mutex_lock(&service.lock);
    const bool known = job >= 0 && job < N_JOBS, holds = service.n_answered >= service.hold_from;
    if (known) service.asked[job]++;
    if (known && !holds) service.n_answered++, service.answered[job]++;
    pthread_mutex_unlock(&service.lock);
    if (known && holds) {
        while (recv(fd, block, sizeof block, 0) > 0) { /* until the client is dead */
        }
    } else if (known) {
        static const char refusal[] =
            "{\"error\":{\"code\":\"moderation_blocked\",\"message\":\"rejected by our safety system\"}}";
        char *body = refuses(job) ? strdup(refusal) : picture_for(job);
        snprintf(head, sizeof head,
                 "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                 "Connection: close\r\n\r\n",
                 refuses(job) ? "400 Bad Request" : "200 OK", strlen(body));
        send_all(fd, head, strlen(head));
        send_all(fd, body, strlen(body));
        if (refuses(job))
            free(body);
        else
            lk_free(body);
    }
    lk_text_free(&text);
    close(fd);
    return NULL;
}

static void *serve(void *context) {
    (void)context;
    for (;;) {
        pthread_t thread;
        const int fd = accept(service.listener, NULL, NULL);
        if (fd < 0 || service.ends) return NULL;
        if (!pthread_create(&thread, NULL, answer_one, (void *)(intptr_t)fd)) pthread_detach(thread);
    }
}

/* --- the study --- */

static void make_study(void) {
    char path[1200], here[PATH_MAX];
    struct lk_text study = {0};
    assert_non_null(getcwd(here, sizeof here));
    tiny_study_remove(folder, "");
    assert_int_equal(mkdir(folder, 0777), 0);
    lk_text_add(&study,
                "{\"schema\": 2, \"study\": \"two\", \"attributes\": [{\"name\": \"race\", \"display\": \"Race\", "
                "\"levels\": [\"asian\", \"black\"]}], \"sources\": [");
    for (int i = 0; i < N_SOURCES; i++) {
        struct lk_image image;
        assert_ok(lk_image_new(&image, SIDE, SIDE, 3));
        memset(image.pixels, 10 + i, SIDE * SIDE * 3);
        snprintf(path, sizeof path, "%s/s%d.png", folder, i);
        assert_ok(lk_png_write(path, &image, NULL, 0));
        lk_image_free(&image);
        lk_text_add(&study, "%s{\"id\": \"s%d\", \"path\": \"s%d.png\", \"race\": \"%s\"}", i ? ", " : "", i, i,
                    i % 2 ? "black" : "asian");
    }
    lk_text_add(&study, "], \"prompts\": [");
    for (int p = 0; p < N_PROMPTS; p++)
        lk_text_add(&study, "%s{\"id\": \"p%d\", \"text\": \"Edit number %d\", \"category\": \"c%d\"}", p ? ", " : "",
                    p, p, p % 2);
    lk_text_add(&study,
                "], \"models\": {\"near\": {\"label\": \"Near\", \"path\": \"%s/golden/data/flux2/rich/checkpoint\", "
                "\"num_inference_steps\": 1, \"max_sequence_length\": 40, \"allow_cut\": true, "
                "\"text_encoder_out_layers\": [1, 2, 3], \"width\": 32, \"height\": 32}, \"far\": {\"label\": \"Far\", "
                "\"hosted\": {\"images_url\": \"http://127.0.0.1:%d/v1\", \"model\": \"gpt-image-1\"}}}, "
                "\"experiments\": {\"exp1\": {}}}",
                here, service.port);
    snprintf(path, sizeof path, "%s/study.json", folder);
    test_write(path, study.bytes, study.n);
    lk_text_free(&study);
}

static int begin(void **state) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    (void)state;
    service.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(!bind(service.listener, (struct sockaddr *)&at, sizeof at) && !listen(service.listener, 64) &&
                !getsockname(service.listener, (struct sockaddr *)&at, &size));
    service.port = ntohs(at.sin_port);
    service.hold_from = INT_MAX;
    setenv("OPENAI_API_KEY", KEY, 1);
    assert_int_equal(pthread_create(&service.thread, NULL, serve, NULL), 0);
    snprintf(folder, sizeof folder, "%s", test_path("hosted-kills"));
    make_study();
    return 0;
}

static int end(void **state) {
    (void)state;
    service.ends = true;
    shutdown(service.listener, SHUT_RDWR);
    close(service.listener);
    pthread_join(service.thread, NULL);
    return 0;
}

static const char *const more[] = {"--queue", "4", "--devices", "cpu", "--send-pictures", NULL};

/* Jobs of the hosted model that the journal has an answer of; 0 while there is no journal. */
static int64_t n_kept(void) {
    struct lk_journal *journal;
    struct lk_journal_counts counts;
    char path[1300];
    int64_t n = 0;
    snprintf(path, sizeof path, "%s/out/journal.sqlite", folder);
    if (access(path, F_OK) || lk_journal_open(&journal, path, NULL)) return 0;
    if (!lk_journal_count(journal, &counts))
        for (int m = 0; m < LK_JOURNAL_MAX_MODELS; m++)
            if (*counts.keys[m] && !strcmp(counts.keys[m], "far"))
                n = counts.of[m][LK_JOB_DONE] + counts.of[m][LK_JOB_REFUSED];
    lk_journal_close(journal);
    return n;
}

/* Turns of 10 ms that are waited for what must come; mutants wait in vain. */
static int patience(void) {
    const char *seconds = getenv("TEST_PATIENCE_S");
    return 100 * (seconds ? atoi(seconds) : 600);
}

/* Runs until so many are answered and kept, while the next ones wait for an answer; then all processes die. */
static void run_and_kill(int at) {
    pthread_mutex_lock(&service.lock);
    service.hold_from = at;
    pthread_mutex_unlock(&service.lock);
    const pid_t pid = tiny_study_start(folder, "out", "run", more);
    int64_t kept = 0;
    for (int i = 0; kept < at && i < patience(); i++) {
        usleep(10000);
        kept = n_kept();
    }
    assert_int_equal(kept, at); /* what is answered is kept, though its piece is not over */
    kill(-pid, SIGKILL);
    assert_int_equal(tiny_study_wait(pid), -SIGKILL);
}

static int n_with(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
    return n;
}

static void no_answer_is_lost(void **state) {
    int n_held = 0, n_refused = 0;
    char path[1300];
    (void)state;
    run_and_kill(QUEUE * 2 + 3); /* in the middle of a piece */
    run_and_kill(QUEUE * 6 + 2);
    pthread_mutex_lock(&service.lock);
    service.hold_from = INT_MAX;
    pthread_mutex_unlock(&service.lock);
    assert_int_equal(tiny_study_run(folder, "out", more), 0);
    for (int i = 0; i < N_JOBS; i++) {
        if (service.answered[i] != 1) fail_msg("job %d: answered %d times", i, service.answered[i]);
        n_held += service.asked[i] - 1; /* without an answer, when it was killed */
        n_refused += refuses(i);
    }
    assert_in_range(n_held, 2, 2 * QUEUE);
    snprintf(path, sizeof path, "%s/out/manifest.jsonl", folder);
    char *manifest = test_read(path, NULL), item[80];
    assert_int_equal(n_with(manifest, "\"status\":\"success\""), 2 * N_JOBS - n_refused);
    assert_int_equal(n_with(manifest, "\"status\":\"refused\""), n_refused);
    for (int i = 0; i < N_JOBS; i++) {
        snprintf(item, sizeof item, "\"item_id\":\"far_s%d_p%d\"", i / N_PROMPTS, i % N_PROMPTS);
        char *line = strstr(manifest, item);
        assert_non_null(line);
        char *after = line + strcspn(line, "\n"), kept = *after;
        *after = 0;
        assert_true(!strstr(line, "\"status\":\"refused\"") == !refuses(i));
        assert_non_null(strstr(line, "\"n_sent\":1"));
        *after = kept;
    }
    free(manifest);
}

static void the_report_says_whom(void **state) {
    char from[1200], to[1200], line[200], path[1300];
    (void)state;
    snprintf(from, sizeof from, "%s/out", folder);
    snprintf(to, sizeof to, "%s/report", folder);
    const char *const argv[] = {"likeness", "report", "--from", from, "-o", to, NULL};
    assert_int_equal(served_end(served_start(argv, line)), 0);
    snprintf(path, sizeof path, "%s/report.html", to);
    char *page = test_read(path, NULL);
    const char *counted = strstr(page, "Far refused 19 of 48 requests (39.6%)"),
               *found = strstr(page, "Far: refused, black 75.0%, asian 4.2%"),
               *section = strstr(page, "id=\"section-refusals\"");
    assert_non_null(section);
    assert_true(counted && counted < section);
    assert_true(found && found < section);
    assert_null(strstr(page, "Near refused"));
    assert_null(strstr(page, "Near: refused"));
    free(page);
}

/* True: the process may leave a core file. */
static bool may_leave_a_core(pid_t pid) {
    char path[64], line[256];
    bool may = true;
    snprintf(path, sizeof path, "/proc/%ld/limits", (long)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        unsigned long now, at_most;
        if (sscanf(line, "Max core file size %lu %lu", &now, &at_most) == 2 && !now && !at_most) may = false;
    }
    fclose(f);
    return may;
}

/* Neither in what the runs and their report have written, nor in what a process leaves that dies. */
static void the_key_is_nowhere(void **state) {
    char command[2600];
    int status, n = 0;
    (void)state;
    snprintf(command, sizeof command, "grep -rq '" KEY "' '%s'", folder);
    assert_int_not_equal(system(command), 0);
    pthread_mutex_lock(&service.lock);
    service.hold_from = 0;
    for (int i = 0; i < N_JOBS; i++) service.asked[i] = 0;
    pthread_mutex_unlock(&service.lock);
    const pid_t pid = tiny_study_start(folder, "again", "run", more);
    for (int k = 0; !n && k < patience(); k++) {
        usleep(10000);
        pthread_mutex_lock(&service.lock);
        for (int i = 0; i < N_JOBS; i++) n += service.asked[i];
        pthread_mutex_unlock(&service.lock);
    }
    const bool may = may_leave_a_core(pid);
    kill(-pid, SIGABRT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(n > 0);
    assert_false(may);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && !WCOREDUMP(status));
    assert_int_not_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_answer_is_lost), cmocka_unit_test(the_report_says_whom),
                                       cmocka_unit_test(the_key_is_nowhere)};
    return cmocka_run_group_tests(tests, begin, end);
}
