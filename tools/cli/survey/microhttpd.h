/* libmicrohttpd, opened by the first server that starts: linked, it and the GnuTLS it brings would take half of the
 * start of every command. */
#pragma once

#include <microhttpd.h>

#include "engine/base/status.h"

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
