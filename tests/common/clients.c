#include "tests/common/clients.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/common/test.h"

int64_t test_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void client_open(struct client *c, int port) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(c->socket, (struct sockaddr *)&where, sizeof where) && errno != EINPROGRESS)
        fail_msg("connect: %s", strerror(errno));
    c->began = test_now_ms();
}

void client_free(struct client *c) {
    if (c->socket >= 0) close(c->socket);
    free(c->reply);
    lk_text_free(&c->request);
    *c = (struct client){.socket = -1, .done = true};
}

static void client_end(struct client *c) {
    close(c->socket);
    c->socket = -1;
    c->done = true;
    if (c->reply) c->reply[c->n] = '\0';
    c->status = c->reply && !strncmp(c->reply, "HTTP/1.1 ", 9) ? atoi(c->reply + 9) : 0;
}

/* What a connection can do now; one that sends half of a request and no more hangs up, or shuts its side. */
static void client_step(struct client *c, short can, int64_t limit_ms) {
    const size_t all = c->half ? c->half : c->request.n;
    if (can & (POLLERR | POLLNVAL)) {
        client_end(c);
        return;
    }
    if ((can & POLLOUT) && c->sent < all) {
        const ssize_t k = send(c->socket, c->request.bytes + c->sent, all - c->sent, MSG_NOSIGNAL);
        if (k > 0) c->sent += (size_t)k;
        if (k < 0 && errno != EAGAIN) c->sent = all; /* it was cut off: there may be a reply */
    }
    if (c->sent == all && c->half && !c->shut) {
        shutdown(c->socket, SHUT_WR);
        c->shut = true;
    }
    if (can & (POLLIN | POLLHUP)) {
        if (c->room < c->n + 65536) c->reply = realloc(c->reply, (c->room = 2 * c->room + 65536) + 1);
        const ssize_t k = recv(c->socket, c->reply + c->n, c->room - c->n, 0);
        if (k > 0)
            c->n += (size_t)k;
        else if (k == 0 || errno != EAGAIN)
            client_end(c);
    }
    if (!c->done && test_now_ms() - c->began > limit_ms) client_end(c);
}

/* Until all have ended. */
void clients_run(struct client *list, int n, int64_t limit_ms) {
    struct pollfd ends[CLIENTS_MAX];
    assert_in_range(n, 0, CLIENTS_MAX);
    for (int going = n; going;) {
        going = 0;
        for (int i = 0; i < n; i++) {
            const bool sends = list[i].sent < (list[i].half ? list[i].half : list[i].request.n);
            ends[i] =
                (struct pollfd){.fd = list[i].done ? -1 : list[i].socket, .events = POLLIN | (sends ? POLLOUT : 0)};
        }
        for (int i = n; i < CLIENTS_MAX; i++) ends[i].fd = -1; /* passed over */
        poll(ends, CLIENTS_MAX, 20);
        for (int i = 0; i < n; i++) {
            if (!list[i].done) client_step(&list[i], ends[i].revents, limit_ms);
            going += !list[i].done;
        }
    }
}
