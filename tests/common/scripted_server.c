#include "tests/common/scripted_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "tests/common/test.h"

struct scripted_server server;
enum { PATIENCE_S = 10 };

static void send_all(int fd, const char *bytes, size_t n) {
    for (ssize_t sent; n && (sent = send(fd, bytes, n, MSG_NOSIGNAL)) > 0; bytes += sent) n -= (size_t)sent;
}

/* The request with as many bytes as its Content-Length says. */
static char *receive_request(int fd, size_t *n_bytes) {
    struct lk_text text = {0};
    char block[65536];
    for (ssize_t n; (n = recv(fd, block, sizeof block, 0)) > 0;) {
        lk_text_bytes(&text, block, (size_t)n);
        const char *length = strstr(text.bytes, "Content-Length: "), *end = strstr(text.bytes, "\r\n\r\n");
        if (end && !length) break; /* a GET */
        if (end && length && text.n >= (size_t)(end + 4 - text.bytes) + strtoul(length + 16, NULL, 10)) break;
    }
    *n_bytes = text.n;
    return text.bytes;
}

static void answer(int fd, const struct step *s) {
    char head[400];
    if (s->head) {
        const char *body = s->body ? s->body : "";
        const size_t n = s->n ? s->n : strlen(body);
        snprintf(head, sizeof head, "%sContent-Length: %ld\r\nConnection: close\r\n\r\n", s->head,
                 s->length ? s->length : (long)n);
        send_all(fd, head, strlen(head));
        send_all(fd, body, n);
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
        server.seen[server.n_seen] = receive_request(fd, &server.n_seen_bytes[server.n_seen]);
        server.n_seen++;
        answer(fd, &server.steps[i]);
        close(fd);
    }
    close(server.listener); /* who asks more is refused at once */
    return NULL;
}

const char *scripted_start(const struct step *steps, int n) {
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

void scripted_stop(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    if (pthread_timedjoin_np(server.thread, NULL, &until)) { /* it waits for what nobody asks any more */
        shutdown(server.listener, SHUT_RDWR);
        pthread_join(server.thread, NULL);
    }
    assert_int_equal(server.n_seen, server.n_steps);
    for (int i = 0; i < server.n_seen; i++) lk_free(server.seen[i]);
}
