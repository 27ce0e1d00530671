/* Many clients of a server on this machine at once, which send whatever they are given. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"

enum { CLIENTS_MAX = 256 };

struct client {
    int socket;
    struct lk_text request;
    size_t sent, half; /* half: of which so much is sent, then nothing more; 0: all */
    char *reply;
    size_t n, room;
    int64_t began;
    bool shut, done;
    int status; /* 0: none came */
};

int64_t test_now_ms(void); /* a clock that never goes back */
/* Connects, without waiting; the request, and `half`, are there already. */
void client_open(struct client *c, int port);
/* Sends and receives until all have ended: their replies are whole, the server has closed, or limit_ms is over. */
void clients_run(struct client *list, int n, int64_t limit_ms);
void client_free(struct client *c);
