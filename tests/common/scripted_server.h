/* A server that answers by a script: what it does with each request, in the order of their coming. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct step {
    const char *head;  /* status line and headers but Content-Length; NULL: no answer at all */
    const char *body;  /* NULL: "" */
    long length;       /* that is told; 0: the body's */
    size_t n;          /* bytes of the body; 0: up to its NUL */
    bool stalls;       /* the connection stays open until the client ends it */
    const char *after; /* sent in place of a body: blocks of it until nobody takes them */
};
#define OK       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define BUSY     "HTTP/1.1 503 Busy\r\n"
#define MAX_SEEN 64

extern struct scripted_server {
    const struct step *steps;
    int n_steps, listener, port, n_seen;
    char *seen[MAX_SEEN]; /* requests, whole */
    size_t n_seen_bytes[MAX_SEEN];
    pthread_t thread;
} server;

/* Listens on a port of its own, as server.port; the address, up to "/v1/", until the next start. */
const char *scripted_start(const struct step *steps, int n);
/* Waits for the script's end, all of which must have been asked for. server.seen goes. */
void scripted_stop(void);
