/* The images API brought to libmicrohttpd. A request has a place from its first line to its answer, or is sent away;
 * its connection sleeps while it waits for its turn. A thread of its own notices who has hung up or is too slow. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "tools/cli/images/api.h"

enum {
    N_THREADS = 2,
    MAX_CONNECTIONS = 256,
    IDLE_SECONDS = 60,
    HEADER_BYTES = 32768,
    KEEPER_MS = 100,
    LAST_REPLIES_MS = 5000
};

void images_answer_error(struct images_request *r, int status, const char *text) {
    images_refuse(&r->answer, status, NULL, "%s", text);
}

/* --- replies --- */

static void add_headers(struct MHD_Response *response, const struct images_request *r) {
    char text[24];
    mhd.add_response_header(response, "Content-Type", "application/json");
    mhd.add_response_header(response, "Cache-Control", "no-store");
    mhd.add_response_header(response, "X-Content-Type-Options", "nosniff");
    snprintf(text, sizeof text, "%d", r->number);
    mhd.add_response_header(response, "x-request-id", text);
    if (r->answer.status == 401) mhd.add_response_header(response, "WWW-Authenticate", "Bearer");
    if (r->answer.status == 500) mhd.add_response_header(response, "x-should-retry", "false"); /* it would fail again */
    snprintf(text, sizeof text, "%d", r->answer.retry_after_s);
    if (r->answer.retry_after_s) mhd.add_response_header(response, "Retry-After", text);
}

static void leave_place(struct images_request *r) {
    struct images_listener *l = r->listener;
    pthread_mutex_lock(&l->lock);
    l->n_places -= r->has_place;
    r->has_place = false;
    pthread_mutex_unlock(&l->lock);
}

/* The body stays with the request, which outlives the reply. */
static enum MHD_Result send_answer(struct images_request *r) {
    if (r->answer.body.rc) images_answer_error(r, 500, "out of memory for a reply");
    struct lk_text *body = &r->answer.body;
    struct MHD_Response *response =
        mhd.create_response_from_buffer(body->n, body->bytes ? body->bytes : "", MHD_RESPMEM_PERSISTENT);
    leave_place(r);
    if (!response) return MHD_NO;
    if (r->answer.status >= 400)
        lk_log(LK_LOG_INFO, "request %d: %d %.*s", r->number, r->answer.status, (int)body->n - 1, body->bytes);
    add_headers(response, r);
    enum MHD_Result sent = mhd.queue_response(r->connection, (unsigned)r->answer.status, response);
    mhd.destroy_response(response);
    return sent;
}

static void answer_get(struct images_request *r) {
    const struct images_settings *s = r->listener->settings;
    struct lk_text *out = &r->answer.body;
    r->answer.status = 200;
    if (r->route == ROUTE_HEALTH) {
        lk_text_add(out, "{\"status\":\"ok\"}\n");
        return;
    }
    lk_text_add(out, "{\"object\":\"list\",\"data\":[{\"id\":");
    lk_text_json(out, s->model->id);
    lk_text_add(out, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"likeness\"}]}\n");
}

/* --- a request's life --- */

static void free_input(struct images_request *r) {
    images_ask_free(&r->ask);
    if (r->fields) lk_free(r->fields->block);
    lk_free(r->fields);
    r->fields = NULL;
    lk_text_free(&r->body);
    r->body = (struct lk_text){0};
}

static void end(void *context, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode why) {
    struct images_listener *l = context;
    struct images_request *r = *state;
    (void)why;
    visits_expect(&l->visits, connection, true);
    if (!r) return;
    leave_place(r);
    pthread_mutex_lock(&l->lock);
    l->n_asleep -= r->gathered;
    pthread_mutex_unlock(&l->lock);
    free_input(r);
    lk_text_free(&r->answer.body);
    lk_free(r);
    *state = NULL;
}

/* The whole body as a job; it, or an error, is in the request. */
static void read_body(struct images_request *r) {
    const char *type = images_header(r, "Content-Type");
    const bool edit = r->route == ROUTE_EDITS;
    lk_text_bytes(&r->body, "", 1);
    r->fields = lk_calloc(1, sizeof *r->fields);
    if (r->body.rc || !r->fields) {
        images_answer_error(r, 500, "out of memory for a request");
        return;
    }
    const size_t n = r->body.n - 1;
    enum lk_code rc =
        edit ? images_form_read(type, r->body.bytes, n, r->fields)
        : type && !strncasecmp(type, "application/json", 16)
            ? images_json_read(r->body.bytes, n, r->fields)
            : lk_fail(LK_E_INPUT, "Content-Type: expected application/json, got \"%.80s\"", type ? type : "");
    if (rc)
        images_answer_error(r, images_status_of(rc), lk_error_text());
    else
        images_ask_read(r->listener->settings->model, edit, r->fields, &r->ask, &r->answer);
}

/* Into the line; the connection sleeps until it is answered. */
static enum MHD_Result gather(struct images_request *r) {
    struct images_listener *l = r->listener;
    visits_expect(&l->visits, r->connection, false);
    pthread_mutex_lock(&l->lock);
    const bool stopping = l->stopping;
    if (!stopping) {
        mhd.suspend_connection(r->connection);
        r->gathered = true;
        l->n_asleep++;
        *l->last = r;
        l->last = &r->next;
        pthread_cond_signal(&l->gathered);
    }
    pthread_mutex_unlock(&l->lock);
    if (!stopping) return MHD_YES;
    images_answer_error(r, 503, "the server is stopping");
    return send_answer(r);
}

static void take_body(struct images_request *r, const char *data, size_t n) {
    const size_t most = r->listener->settings->body_bytes;
    if (r->answer.status) return; /* read, so that the client comes to read its answer */
    if (r->body.n + n <= most) {
        lk_text_bytes(&r->body, data, n);
        return;
    }
    images_refuse(&r->answer, 413, NULL, "the request: expected at most %zu bytes, got more", most);
    free_input(r);
}

static enum MHD_Result receive(void *context, struct MHD_Connection *connection, const char *uri, const char *method,
                               const char *version, const char *data, size_t *n_data, void **state) {
    struct images_listener *l = context;
    struct images_request *r = *state;
    (void)version;
    if (!r) {
        const int socket = visits_socket(connection);
        if (socket < 0 || !(r = *state = lk_calloc(1, sizeof *r))) return MHD_NO;
        *r = (struct images_request){.listener = l, .connection = connection, .socket = socket};
        visits_expect(&l->visits, connection, true);
        pthread_mutex_lock(&l->lock);
        r->number = ++l->n_requests;
        pthread_mutex_unlock(&l->lock);
        images_look_at(r, uri, method);
        return r->answer.status == 413 ? send_answer(r) : MHD_YES; /* too much to be read for nothing */
    }
    if (r->gathered) return send_answer(r);
    if (*n_data) {
        take_body(r, data, *n_data);
        *n_data = 0;
        return MHD_YES;
    }
    if (!r->answer.status && r->route < ROUTE_GENERATIONS) answer_get(r);
    if (!r->answer.status) read_body(r);
    return r->answer.status ? send_answer(r) : gather(r);
}

/* --- who waits --- */

/* Wakes the connection of a request that is in no list any more. */
static void wake(struct images_request *r) {
    free_input(r);
    mhd.resume_connection(r->connection); /* r may be gone now */
}

/* Refuses them all, whose places others have then. */
static void wake_all(struct images_request *list, const char *why) {
    for (struct images_request *r = list, *next; r; r = next) {
        next = r->next;
        leave_place(r);
        images_answer_error(r, 503, why);
        wake(r);
    }
}

/* Under the lock. Those who have hung up leave the line. */
static struct images_request *take_gone(struct images_listener *l) {
    struct images_request *gone = NULL;
    for (struct images_request **at = &l->first, *r; (r = *at);) {
        if (!visits_hung_up(r->socket)) {
            at = &r->next;
            continue;
        }
        if (!(*at = r->next)) l->last = at;
        r->next = gone;
        gone = r;
    }
    if (l->running && visits_hung_up(l->running->socket)) atomic_store(&l->running->gone, true);
    return gone;
}

static void *keep(void *context) {
    struct images_listener *l = context;
    for (bool going = true; going;) {
        visits_drop_slow(&l->visits, l->settings->request_ms);
        pthread_mutex_lock(&l->lock);
        struct images_request *gone = take_gone(l);
        going = l->keeps;
        pthread_mutex_unlock(&l->lock);
        wake_all(gone, "the client has hung up");
        usleep(KEEPER_MS * 1000);
    }
    return NULL;
}

struct images_request *images_next(struct images_listener *l, int wait_ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += wait_ms % 1000 * 1000000L;
    until.tv_sec += wait_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&l->lock);
    if (!l->first) pthread_cond_timedwait(&l->gathered, &l->lock, &until);
    struct images_request *r = l->running = l->first;
    if (r && !(l->first = r->next)) l->last = &l->first;
    pthread_mutex_unlock(&l->lock);
    return r;
}

const struct images_ask *images_ask_of(const struct images_request *r) { return &r->ask; }
int images_number_of(const struct images_request *r) { return r->number; }
bool images_gone(const struct images_request *r) { return atomic_load(&r->gone); }

void images_answer(struct images_listener *l, struct images_request *r, struct images_answer *answer, double took_s) {
    lk_text_free(&r->answer.body);
    r->answer = *answer;
    *answer = (struct images_answer){0};
    pthread_mutex_lock(&l->lock);
    l->running = NULL;
    l->took_s = took_s;
    pthread_mutex_unlock(&l->lock);
    wake(r);
}

/* --- the listener's life --- */

static enum lk_code start(struct images_listener *l) {
    const struct images_settings *s = l->settings;
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    if (inet_pton(AF_INET, s->address, &where.sin_addr) != 1)
        return lk_fail(LK_E_USAGE, "--host: expected an IPv4 address, got \"%.60s\"", s->address);
    if (ntohl(where.sin_addr.s_addr) >> 24 != 127 && !s->token)
        return lk_fail(LK_E_USAGE,
                       "--host %s: others can reach this address: expected a token, by --token-file or "
                       "LIKENESS_IMAGES_TOKEN, got none",
                       s->address);
    LK_TRY(microhttpd_open());
    /* poll and not epoll, which tells once that a client has gone, and may be missed behind its last bytes */
    l->daemon = mhd.start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, receive, l,
        MHD_OPTION_SOCK_ADDR, &where, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)N_THREADS, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_COMPLETED, end, l, MHD_OPTION_NOTIFY_CONNECTION, visits_on_connection, &l->visits,
        MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
    if (!l->daemon)
        return lk_fail(LK_E_IO, "%s:%d: cannot listen there; is another server running?", s->address, s->port);
    const union MHD_DaemonInfo *info = mhd.get_daemon_info(l->daemon, MHD_DAEMON_INFO_BIND_PORT);
    l->port = info ? info->port : s->port;
    return LK_OK;
}

enum lk_code images_listen(struct images_listener **out, const struct images_settings *settings) {
    struct images_listener *l = lk_calloc(1, sizeof *l);
    *out = NULL;
    if (!l) return lk_fail(LK_E_NOMEM, "out of memory for a server");
    l->settings = settings;
    l->last = &l->first;
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->visits.lock, NULL);
    l->visits.now = settings->now, l->visits.clock = settings->clock;
    pthread_cond_init(&l->gathered, NULL);
    enum lk_code rc = start(l);
    l->keeps = !rc; /* read by the thread as soon as it begins */
    if (!rc && pthread_create(&l->keeper, NULL, keep, l)) {
        l->keeps = false;
        rc = lk_fail(LK_E_NOMEM, "no thread for a server");
    }
    if (!rc)
        *out = l;
    else
        images_stop(l);
    return rc;
}

int images_port(const struct images_listener *l) { return l->port; }

/* Replies under way are sent, within a bound. */
static void wait_for_replies(struct images_listener *l) {
    for (int i = 0; i < LAST_REPLIES_MS / 10; i++) {
        pthread_mutex_lock(&l->lock);
        const bool done = !l->n_asleep;
        pthread_mutex_unlock(&l->lock);
        if (done) return;
        usleep(10000);
    }
}

void images_stop(struct images_listener *l) {
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    const bool keeps = l->keeps;
    l->stopping = true;
    l->keeps = false;
    struct images_request *list = l->first;
    l->first = NULL;
    l->last = &l->first;
    pthread_mutex_unlock(&l->lock);
    if (keeps) pthread_join(l->keeper, NULL);
    wake_all(list, "the server is stopping");
    wait_for_replies(l);
    if (l->daemon) mhd.stop_daemon(l->daemon);
    lk_free(l);
}
