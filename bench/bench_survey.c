/* Participants of a survey, all at once, against a running server: how long an answer takes until it is acknowledged,
 * which is after it is on the disk. bench/survey makes the study and starts the server.
 *
 *     bench_survey PORT PARTICIPANTS ANSWERS THINK_MS [SERVER_PID]
 *
 * Each participant enters, consents, takes a task and answers item after item, a request for each question as the
 * page's script sends it, ANSWERS in all, and waits up to twice THINK_MS before each. Prints one line: answers, errors,
 * answers a second, milliseconds at the 50th, 90th, 99th and 100th percentile, and the server's memory in KiB after a
 * tenth and at the end. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "bench/bench.h"

enum { MAX_PARTICIPANTS = 1000, MAX_KEYS = 16, PAGE_BYTES = 1 << 17, N_TASKS = 10, N_ITEMS = 50 };

static int port, n_answers, think_ms, server_pid;
static atomic_int n_errors, n_given;
static pthread_barrier_t all_ready;

struct participant {
    int number, connection;
    char cookie[65], form[65], lease[24], keys[MAX_KEYS][48];
    int n_keys, task;
    unsigned seed;
    char *page;
    double *took_ms;
};

static void dial(struct participant *p) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval limit = {.tv_sec = 60};
    int on = 1;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p->connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(p->connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(p->connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(p->connection, (struct sockaddr *)&where, sizeof where)) perror("connect");
}

/* The whole reply into p->page; its status, 0 when the connection broke. */
static int exchange(struct participant *p, const char *request, size_t n) {
    size_t got = 0, whole = 0;
    if (send(p->connection, request, n, MSG_NOSIGNAL) != (ssize_t)n) return 0;
    while (!whole || got < whole) {
        ssize_t k = recv(p->connection, p->page + got, PAGE_BYTES - 1 - got, 0);
        if (k <= 0) return 0;
        got += (size_t)k;
        p->page[got] = '\0';
        const char *end = strstr(p->page, "\r\n\r\n"), *length = strstr(p->page, "Content-Length: ");
        if (end && length) whole = (size_t)(end + 4 - p->page) + strtoul(length + 16, NULL, 10);
    }
    return atoi(p->page + 9);
}

/* body NULL: a GET. */
static int ask(struct participant *p, const char *path, const char *body) {
    char request[4096];
    char cookie[120] = "";
    if (*p->cookie) snprintf(cookie, sizeof cookie, "Cookie: survey-%d=%s\r\n", port, p->cookie);
    int n = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: application/json\r\n%s",
                     body ? "POST" : "GET", path, port, cookie);
    n += body ? snprintf(request + n, sizeof request - (size_t)n,
                         "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s",
                         strlen(body), body)
              : snprintf(request + n, sizeof request - (size_t)n, "\r\n");
    return exchange(p, request, (size_t)n);
}

static const char *take(const char *from, const char *mark, size_t n, char *out) {
    const char *at = from ? strstr(from, mark) : NULL;
    *out = '\0';
    if (!at) return NULL;
    snprintf(out, n, "%.*s", (int)strcspn(at + strlen(mark), "\";&"), at + strlen(mark));
    return at + strlen(mark);
}

static bool check(struct participant *p, const char *what, int got, int wanted) {
    if (got == wanted) return true;
    if (!n_errors++) fprintf(stderr, "participant %d: %s: expected %d, got %d\n", p->number, what, wanted, got);
    return false;
}

static bool begin(struct participant *p) {
    char text[700], sha256[65];
    dial(p);
    char mark[40];
    snprintf(text, sizeof text, "PROLIFIC_PID=load-%d-%d", (int)getpid(), p->number);
    if (!check(p, "entry", ask(p, "/enter", text), 303)) return false;
    snprintf(mark, sizeof mark, "Set-Cookie: survey-%d=", port);
    take(p->page, mark, sizeof p->cookie, p->cookie);
    if (!check(p, "guide", ask(p, "/guide", NULL), 200)) return false;
    take(p->page, "name=\"form\" value=\"", sizeof p->form, p->form);
    snprintf(text, sizeof text, "form=%s&check.answer=4&seen=yes", p->form);
    if (!check(p, "guide's form", ask(p, "/guide", text), 303)) return false;
    if (!check(p, "consent", ask(p, "/consent", NULL), 200)) return false;
    take(p->page, "name=\"text\" value=\"", sizeof sha256, sha256);
    snprintf(text, sizeof text, "form=%s&text=%s&adult=yes&agree=yes", p->form, sha256);
    if (!check(p, "consent's form", ask(p, "/consent", text), 303)) return false;
    for (int i = 0, status = 409; status == 409 && i < N_TASKS; i++) {
        p->task = (p->number + i) % N_TASKS + 1;
        snprintf(text, sizeof text, "form=%s&task=%d", p->form, p->task);
        status = ask(p, "/tasks", text);
        if (status == 303) return true;
    }
    return check(p, "no task is free", 409, 303);
}

static bool open_item(struct participant *p, int item) {
    char path[60], name[48];
    snprintf(path, sizeof path, "/task/%d?item=%d", p->task, item);
    if (!check(p, "item", ask(p, path, NULL), 200)) return false;
    take(p->page, "name=\"lease\" value=\"", sizeof p->lease, p->lease);
    p->n_keys = 0;
    for (const char *at = p->page; (at = take(at, "type=\"radio\" name=\"", sizeof name, name));)
        if (p->n_keys < MAX_KEYS && (!p->n_keys || strcmp(p->keys[p->n_keys - 1], name)))
            memcpy(p->keys[p->n_keys++], name, sizeof name);
    return check(p, "questions on the page", p->n_keys > 0, 1);
}

static void *take_part(void *context) {
    struct participant *p = context;
    bool ok = begin(p);
    char path[40], body[400];
    pthread_barrier_wait(&all_ready);
    for (int i = 0, item = 0, key = 0, round = 0; i < n_answers && ok; i++, key++) {
        if (!item || key == p->n_keys) {
            item = item % N_ITEMS + 1; /* after the last item the first again, with other answers */
            round += item == 1;
            key = 0;
            ok = open_item(p, item);
            if (!ok) break;
        }
        if (think_ms) usleep((useconds_t)((double)rand_r(&p->seed) / RAND_MAX * 2000 * think_ms));
        snprintf(path, sizeof path, "/task/%d", p->task);
        snprintf(body, sizeof body, "form=%s&lease=%s&item=%d&%s=%d", p->form, p->lease, item, p->keys[key],
                 (key + round) % 5 + 1);
        double began = bench_now_ns();
        ok = check(p, "answer", ask(p, path, body), 200);
        p->took_ms[i] = (bench_now_ns() - began) * 1e-6;
        n_given += ok;
    }
    close(p->connection);
    return NULL;
}

static long server_kib(void) {
    char path[60], line[200];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", server_pid);
    FILE *file = server_pid ? fopen(path, "r") : NULL;
    while (file && fgets(line, sizeof line, file)) sscanf(line, "VmRSS: %ld", &kib);
    if (file) fclose(file);
    return kib;
}

int main(int n_words, char **words) {
    static struct participant all[MAX_PARTICIPANTS];
    static pthread_t threads[MAX_PARTICIPANTS];
    int n = n_words > 4 ? atoi(words[2]) : 0;
    if (n < 1 || n > MAX_PARTICIPANTS || atoi(words[3]) < n) {
        fprintf(stderr, "usage: bench_survey PORT PARTICIPANTS ANSWERS THINK_MS [SERVER_PID]\n");
        return 2;
    }
    port = atoi(words[1]), n_answers = atoi(words[3]) / n, think_ms = atoi(words[4]);
    server_pid = n_words > 5 ? atoi(words[5]) : 0;
    double *took_ms = calloc((size_t)n * (size_t)n_answers, sizeof *took_ms);
    pthread_barrier_init(&all_ready, NULL, (unsigned)n + 1);
    for (int i = 0; i < n; i++) {
        all[i] = (struct participant){.number = i, .seed = (unsigned)i, .page = malloc(PAGE_BYTES)};
        if (!took_ms || !all[i].page) return 1;
        all[i].took_ms = took_ms + (size_t)i * (size_t)n_answers;
        if (pthread_create(&threads[i], NULL, take_part, &all[i])) return 1;
    }
    pthread_barrier_wait(&all_ready);
    double began = bench_now_ns();
    long early_kib = 0;
    while (!early_kib && server_pid && n_given < n * n_answers / 10 && !n_errors) usleep(20000);
    early_kib = server_kib();
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    double seconds = (bench_now_ns() - began) * 1e-9;
    size_t total = (size_t)n * (size_t)n_answers;
    qsort(took_ms, total, sizeof *took_ms, bench_ascending);
    printf("%zu answers of %d participants, %d errors, %.0f a second; ms: p50 %.1f, p90 %.1f, p99 %.1f, most %.1f; "
           "server KiB: %ld, then %ld\n",
           total, n, n_errors, (double)total / seconds, took_ms[total / 2], took_ms[total * 9 / 10],
           took_ms[total * 99 / 100], took_ms[total - 1], early_kib, server_kib());
    for (int i = 0; i < n; i++) free(all[i].page);
    free(took_ms);
    return n_errors > 0;
}
