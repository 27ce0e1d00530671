#include "tools/cli/survey/visits.h"

#include <dlfcn.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "engine/base/alloc.h"

#define LIBRARY "libmicrohttpd.so.12"

struct microhttpd mhd;

enum lk_code microhttpd_open(void) {
    static const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
#define ENTRY(name) {"MHD_" #name, offsetof(struct microhttpd, name)},
        MICROHTTPD_FUNCTIONS(ENTRY)};
    if (mhd.start_daemon) return LK_OK;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL); /* until the program ends */
    if (!library)
        return lk_fail(LK_E_IO, "a server needs " LIBRARY " (%s); install the package libmicrohttpd12", dlerror());
    struct microhttpd found;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library, functions[i].symbol);
        if (!address) return lk_fail(LK_E_IO, LIBRARY " has no function %s", functions[i].symbol);
        memcpy((char *)&found + functions[i].offset, &address, sizeof address);
    }
    mhd = found;
    return LK_OK;
}

struct visit {
    int socket;
    int64_t waits_since; /* 0 while a request of it is answered */
    struct visit *next, **at;
};

void visits_on_connection(void *context, struct MHD_Connection *connection, void **kept,
                          enum MHD_ConnectionNotificationCode what) {
    struct visits *visits = context;
    struct visit *v = *kept;
    const union MHD_ConnectionInfo *info = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) *kept = v = info ? lk_malloc(sizeof *v) : NULL;
    if (!v) return;
    pthread_mutex_lock(&visits->lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *v = (struct visit){info->connect_fd, visits->now(visits->clock), visits->first, &visits->first};
        if (v->next) v->next->at = &v->next;
        visits->first = v;
    } else {
        *v->at = v->next;
        if (v->next) v->next->at = v->at;
    }
    pthread_mutex_unlock(&visits->lock);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) lk_free(v);
}

static struct visit *visit_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

int visits_socket(struct MHD_Connection *connection) {
    const struct visit *v = visit_of(connection);
    return v ? v->socket : -1;
}

void visits_expect(struct visits *visits, struct MHD_Connection *connection, bool more) {
    struct visit *v = visit_of(connection);
    if (!v) return;
    pthread_mutex_lock(&visits->lock);
    v->waits_since = more ? visits->now(visits->clock) : 0;
    pthread_mutex_unlock(&visits->lock);
}

/* Whoever sends no more before the request is whole wants no answer. */
bool visits_hung_up(int socket) {
    struct pollfd one = {.fd = socket, .events = POLLRDHUP};
    return poll(&one, 1, 0) > 0 && one.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/* Under the lock: a connection that has ended is not in the list. */
void visits_drop_slow(struct visits *visits, int64_t most_ms) {
    pthread_mutex_lock(&visits->lock);
    const int64_t now = visits->now(visits->clock);
    for (const struct visit *v = visits->first; v; v = v->next)
        if (v->waits_since && (now - v->waits_since > most_ms || visits_hung_up(v->socket)))
            shutdown(v->socket, SHUT_RDWR);
    pthread_mutex_unlock(&visits->lock);
}
