/* The connections of a server, whose next request must be whole in time. */
#pragma once

#include <microhttpd.h>
#include <pthread.h>

#include "engine/base/status.h"

struct visits {
    pthread_mutex_t lock; /* of the list */
    struct visit *first;
    int64_t (*now)(void *clock); /* milliseconds; never goes back */
    void *clock;
};

/* Given to libmicrohttpd as MHD_OPTION_NOTIFY_CONNECTION with the visits. */
void visits_on_connection(void *visits, struct MHD_Connection *connection, void **kept,
                          enum MHD_ConnectionNotificationCode what);
/* Whether a request of the connection is still to come, wholly or in part: from now on. */
void visits_expect(struct visits *visits, struct MHD_Connection *connection, bool more);
/* Ends connections whose request is not whole after `most_ms`, or whose client has hung up before it was. */
void visits_drop_slow(struct visits *visits, int64_t most_ms);
/* The client sends no more. */
bool visits_hung_up(int socket);
/* The socket of a connection; -1: it is not in the list. */
int visits_socket(struct MHD_Connection *connection);

/* libmicrohttpd, opened by the first server that starts: linked, it and the GnuTLS it brings would take half of the
 * start of every command. */
#define MICROHTTPD_FUNCTIONS(F)                                                                                        \
    F(start_daemon)                                                                                                    \
    F(stop_daemon)                                                                                                     \
    F(get_daemon_info)                                                                                                 \
    F(get_connection_info)                                                                                             \
    F(get_connection_values)                                                                                           \
    F(lookup_connection_value)                                                                                         \
    F(suspend_connection)                                                                                              \
    F(resume_connection)                                                                                               \
    F(create_response_from_fd)                                                                                         \
    F(create_response_from_buffer)                                                                                     \
    F(add_response_header)                                                                                             \
    F(queue_response)                                                                                                  \
    F(destroy_response)

struct microhttpd {
#define MICROHTTPD_MEMBER(name) __typeof__(MHD_##name) *name;
    MICROHTTPD_FUNCTIONS(MICROHTTPD_MEMBER)
};

extern struct microhttpd mhd;
/* LK_E_IO: the library is not installed. Once or more often, by one thread at a time. */
enum lk_code microhttpd_open(void);
