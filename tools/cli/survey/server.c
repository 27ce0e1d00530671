/* The survey's pages brought to libmicrohttpd: requests are collected within limits, replies get their headers. A
 * complete request waits, without a thread, for the one writer, which answers all that have gathered since the last
 * commit, makes their changes durable together, and only then lets any of the replies go; or for the one reader. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/utf8.h"
#include "tools/cli/survey/http.h"
#include "tools/cli/survey/visits.h"

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One name or value up to `end`, decoded in place. */
static bool decode(char *text, char *end) {
    char *to = text;
    for (const char *at = text; at < end; at++) {
        unsigned char c = (unsigned char)(*at == '+' ? ' ' : *at);
        if (*at == '%') {
            int high = end - at > 2 ? hex_digit(at[1]) : -1, low = high < 0 ? -1 : hex_digit(at[2]);
            if (low < 0) return false;
            c = (unsigned char)(high * 16 + low);
            at += 2;
        }
        if (c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\r')) return false;
        *to++ = (char)c;
    }
    *to = '\0';
    return lk_utf8_valid(text, (size_t)(to - text));
}

bool survey_form_read(char *text, struct survey_form *out) {
    out->n = 0;
    for (char *next = text; next && *next;) {
        char *name = next, *end = strchr(name, '&');
        next = end ? end + 1 : NULL;
        if (!end) end = name + strlen(name);
        if (end == name) continue;
        char *equals = memchr(name, '=', (size_t)(end - name));
        if (out->n == SURVEY_MAX_FIELDS) return false;
        struct survey_field *field = &out->fields[out->n++];
        *field = (struct survey_field){name, ""};
        if (equals) field->value = equals + 1;
        bool last = !*end;
        if (equals && !decode(equals + 1, end)) return false;
        if (!last && !equals) *end = '\0';
        if (!decode(name, equals ? equals : end)) return false;
    }
    return true;
}

const char *survey_form_value(const struct survey_form *form, const char *name) {
    for (int i = 0; i < form->n; i++)
        if (!strcmp(form->fields[i].name, name)) return form->fields[i].value;
    return "";
}

int64_t survey_number(const char *text, int64_t max) {
    size_t n = strspn(text, "0123456789");
    if (!n || n > 15 || text[n]) return -1;
    int64_t value = strtoll(text, NULL, 10);
    return value <= max ? value : -1;
}

const char *survey_cookie_name(const struct survey_server *server) {
    return server->study && *server->study->host ? "__Host-survey"
           : *server->cookie_name                ? server->cookie_name
                                                 : "survey";
}

bool survey_cookie(const char *header, const char *name, char out[SURVEY_COOKIE_BYTES + 1]) {
    size_t n_name = strlen(name);
    while (header && *header) {
        header += strspn(header, " ;");
        size_t n = strcspn(header, ";");
        const char *value = header + n_name + 1;
        if (n == n_name + 1 + SURVEY_COOKIE_BYTES && !strncmp(header, name, n_name) && header[n_name] == '=' &&
            strspn(value, "0123456789abcdef") >= SURVEY_COOKIE_BYTES) {
            memcpy(out, value, SURVEY_COOKIE_BYTES);
            out[SURVEY_COOKIE_BYTES] = '\0';
            return true;
        }
        header += n;
    }
    return false;
}

enum {
    N_THREADS = 4,
    MAX_CONNECTIONS = 1000,
    MAX_OF_ADDRESS = 200,
    IDLE_SECONDS = 15,
    HEADER_BYTES = 32768,
    MAX_REQUEST_MS = 20000
};

/* A request while it comes in, and until its reply is sent. */
struct pending {
    size_t n_body;
    int refusal; /* a status, 0 for none */
    bool seen, answered;
    struct MHD_Connection *connection;
    struct survey_request request;
    struct survey_reply reply;
    struct pending *next;
    char uri[SURVEY_MAX_URI + 1], body[SURVEY_MAX_BODY + 1]; /* not cleared, with their ends */
};

/* What waits to be answered, and who answers it. */
struct line {
    struct survey_listener *listener;
    pthread_t thread;
    pthread_cond_t gathered;
    struct pending *first, **last;
    bool begun;
};
/* Pages that only read, and long, are answered beside those that write. */
enum { LINE_WRITES, LINE_READS, N_LINES };

struct survey_listener {
    struct MHD_Daemon *daemon;
    struct survey_server *server;
    int port;
    struct survey_entries entries; /* the writer's */
    struct survey_admins admins;
    struct visits visits;
    pthread_mutex_t lock; /* of all below */
    struct line lines[N_LINES];
    bool stopping;
};

static void *begin(void *context, const char *uri, struct MHD_Connection *connection) {
    (void)context, (void)connection;
    struct pending *r = lk_malloc(sizeof *r);
    if (!r) return NULL;
    memset(r, 0, offsetof(struct pending, uri));
    size_t n = strlen(uri);
    if (n > SURVEY_MAX_URI)
        r->refusal = 414;
    else if (*uri != '/')
        r->refusal = 400; /* a whole address, whose host might be another than the header's */
    else
        memcpy(r->uri, uri, n + 1);
    return r;
}

static void end(void *context, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode why) {
    struct survey_listener *l = context;
    (void)why;
    visits_expect(&l->visits, connection, true);
    struct pending *r = *state;
    if (r) lk_text_free(&r->reply.body);
    if (r) lk_free(r->reply.path);
    lk_free(r);
    *state = NULL;
}

struct header_count {
    int lengths, hosts, encodings, odd;
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    struct header_count *n = context;
    (void)kind;
    bool length = !strcasecmp(name, "Content-Length");
    n->lengths += length;
    if (length && (!value || !*value || value[strspn(value, "0123456789")])) n->odd++;
    if (name[strcspn(name, " \t\r\n")] || (value && strpbrk(value, "\r\n"))) n->odd++;
    n->hosts += !strcasecmp(name, "Host");
    n->encodings += !strcasecmp(name, "Transfer-Encoding");
    return MHD_YES;
}

/* Shapes that a proxy before us might read as other requests than we do. */
static int refusal_of(struct MHD_Connection *connection, const char *method) {
    struct header_count n = {0};
    mhd.get_connection_values(connection, MHD_HEADER_KIND, count_header, &n);
    if (n.hosts != 1 || n.encodings || n.lengths > 1 || n.odd) return 400;
    return !strcmp(method, "POST") && !n.lengths ? 411 : 0;
}

static void add_headers(struct MHD_Response *response, const struct survey_server *server,
                        const struct survey_reply *reply) {
    static const char *const fixed[][2] = {
        {"Content-Security-Policy",
         "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src "
         "'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "same-origin"}, /* with no-referrer, browsers hide the origin of our own forms */
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"}};
    char cookie[200];
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        mhd.add_response_header(response, fixed[i][0], fixed[i][1]);
    mhd.add_response_header(response, "Cache-Control", reply->may_be_kept ? "private, max-age=3600" : "no-store");
    mhd.add_response_header(response, "Content-Type", reply->type);
    if (*reply->location) mhd.add_response_header(response, "Location", reply->location);
    if (reply->status == 401) mhd.add_response_header(response, "WWW-Authenticate", "Bearer");
    bool tls = server->study && *server->study->host; /* a public name means that a proxy speaks TLS before us */
    if (tls) mhd.add_response_header(response, "Strict-Transport-Security", "max-age=31536000");
    if (*reply->cookie) {
        snprintf(cookie, sizeof cookie, "%s=%s; HttpOnly; SameSite=Strict; Path=/%s", survey_cookie_name(server),
                 reply->cookie, tls ? "; Secure" : "");
        mhd.add_response_header(response, "Set-Cookie", cookie);
    }
}

static const char *type_of(const char *path) {
    const char *dot = strrchr(path, '.');
    return !dot                        ? "application/octet-stream"
           : !strcasecmp(dot, ".png")  ? "image/png"
           : !strcasecmp(dot, ".webp") ? "image/webp"
                                       : "image/jpeg";
}

static enum MHD_Result send_reply(struct MHD_Connection *connection, const struct survey_server *server,
                                  struct survey_reply *reply) {
    struct MHD_Response *response = NULL;
    struct stat st;
    int file = -1;
    if (reply->file && !lk_open_regular(reply->file, &file, &st)) {
        reply->type = type_of(reply->file);
        response = mhd.create_response_from_fd((size_t)st.st_size, file);
        if (!response) close(file);
    } else if (!reply->file)
        response = mhd.create_response_from_buffer(reply->body.n, reply->body.bytes ? reply->body.bytes : "",
                                                   MHD_RESPMEM_MUST_COPY);
    lk_text_free(&reply->body);
    if (!response) return MHD_NO;
    add_headers(response, server, reply);
    enum MHD_Result sent = mhd.queue_response(connection, (unsigned)reply->status, response);
    mhd.destroy_response(response);
    return sent;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, const struct survey_server *server, int status) {
    struct survey_reply reply = {.status = status, .type = "text/plain; charset=utf-8"};
    lk_text_add(&reply.body, "%d\n", status);
    return send_reply(connection, server, &reply);
}

static const char *header(struct MHD_Connection *connection, const char *name) {
    return mhd.lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* 0 for 127.0.0.0/8. */
static uint32_t address_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr_in *from = info ? (const void *)info->client_addr : NULL;
    uint32_t address = from && from->sin_family == AF_INET ? ntohl(from->sin_addr.s_addr) : 0;
    return address >> 24 == 127 ? 0 : address;
}

/* Hands the request to the writer; the connection sleeps until it is answered. */
static enum MHD_Result gather(struct MHD_Connection *connection, struct survey_listener *l, const char *method,
                              struct pending *r) {
    r->connection = connection;
    r->body[r->n_body] = '\0';
    r->request = (struct survey_request){.method = method,
                                         .uri = r->uri,
                                         .address = address_of(connection),
                                         .body = strcmp(method, "POST") ? NULL : r->body,
                                         .host = header(connection, "Host"),
                                         .origin = header(connection, "Origin"),
                                         .cookie = header(connection, "Cookie"),
                                         .accept = header(connection, "Accept"),
                                         .authorization = header(connection, "Authorization"),
                                         .content_type = header(connection, "Content-Type")};
    struct line *line = &l->lines[l->server->survey && !strcmp(r->uri, "/admin") ? LINE_READS : LINE_WRITES];
    visits_expect(&l->visits, connection, false);
    pthread_mutex_lock(&l->lock);
    bool stopping = l->stopping;
    if (!stopping) {
        mhd.suspend_connection(connection);
        *line->last = r;
        line->last = &r->next;
        pthread_cond_signal(&line->gathered);
    }
    pthread_mutex_unlock(&l->lock);
    return stopping ? refuse(connection, l->server, 503) : MHD_YES;
}

/* A reply is let go when the change it speaks of is durable. */
static void answer_all(const struct line *line, struct pending *list) {
    const struct survey_server *server = line->listener->server;
    bool writes = server->survey && line == &line->listener->lines[LINE_WRITES];
    enum lk_code whole = writes ? lk_survey_together(server->survey) : LK_OK;
    bool begun = writes && !whole;
    for (struct pending *r = list; r && !whole; r = r->next)
        if (server->respond(server, &r->request, &r->reply)) {
            r->refusal = 500;
            lk_log(LK_LOG_ERROR, "%s", lk_error_text()); /* the visitor sees the number alone */
        }
    if (begun) whole = lk_survey_done(server->survey);
    if (whole) lk_log(LK_LOG_ERROR, "%s", lk_error_text());
    for (struct pending *r = list, *next; r; r = next) {
        next = r->next; /* r is gone soon after its connection wakes */
        if (whole) r->refusal = 500;
        r->answered = true;
        mhd.resume_connection(r->connection);
    }
}

static void *answer_line(void *context) {
    struct line *line = context;
    struct survey_listener *l = line->listener;
    for (bool stopping = false; !stopping;) {
        struct timespec soon; /* a quarter of a second */
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 250000000;
        soon.tv_sec += soon.tv_nsec / 1000000000;
        soon.tv_nsec %= 1000000000;
        pthread_mutex_lock(&l->lock);
        if (!line->first && !l->stopping) pthread_cond_timedwait(&line->gathered, &l->lock, &soon);
        struct pending *list = line->first;
        line->first = NULL;
        line->last = &line->first;
        stopping = l->stopping && !list;
        pthread_mutex_unlock(&l->lock);
        if (line == l->lines) visits_drop_slow(&l->visits, MAX_REQUEST_MS);
        if (list) answer_all(line, list);
    }
    return NULL;
}

static enum MHD_Result receive(void *context, struct MHD_Connection *connection, const char *uri, const char *method,
                               const char *version, const char *data, size_t *n_data, void **state) {
    struct survey_listener *listener = context;
    struct pending *r = *state;
    (void)uri, (void)version;
    if (!r) return MHD_NO;
    if (r->answered)
        return r->refusal ? refuse(connection, listener->server, r->refusal)
                          : send_reply(connection, listener->server, &r->reply);
    if (!r->seen) {
        r->seen = true;
        visits_expect(&listener->visits, connection, true);
        if (!r->refusal) r->refusal = refusal_of(connection, method);
        return r->refusal ? refuse(connection, listener->server, r->refusal) : MHD_YES;
    }
    if (*n_data) {
        if (r->n_body + *n_data > SURVEY_MAX_BODY || memchr(data, '\0', *n_data))
            r->refusal = 413;
        else {
            memcpy(r->body + r->n_body, data, *n_data);
            r->n_body += *n_data;
        }
        *n_data = 0;
        return MHD_YES;
    }
    return r->refusal ? refuse(connection, listener->server, r->refusal) : gather(connection, listener, method, r);
}

static enum lk_code start(struct survey_listener *l, const char *address, int port) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &where.sin_addr) != 1)
        return lk_fail(LK_E_USAGE, "--bind: expected an IPv4 address, got \"%.60s\"", address);
    bool anywhere = where.sin_addr.s_addr == INADDR_ANY, named = l->server->study && *l->server->study->host;
    if (anywhere && !named)
        return lk_fail(LK_E_USAGE,
                       "--bind %s: browsers name the host that they ask: give the study the \"host\" by which "
                       "participants come, or bind to that address",
                       address);
    bool own = (ntohl(where.sin_addr.s_addr) >> 24) == 127; /* whoever comes is a proxy's, or sits here */
    LK_TRY(microhttpd_open());
    l->daemon = mhd.start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, receive, l,
        MHD_OPTION_SOCK_ADDR, &where, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)N_THREADS, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, own ? 0u : (unsigned)MAX_OF_ADDRESS, MHD_OPTION_URI_LOG_CALLBACK, begin,
        NULL, MHD_OPTION_NOTIFY_COMPLETED, end, l, MHD_OPTION_NOTIFY_CONNECTION, visits_on_connection, &l->visits,
        MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
    if (!l->daemon) return lk_fail(LK_E_IO, "%s:%d: cannot listen there; is another server running?", address, port);
    const union MHD_DaemonInfo *info = mhd.get_daemon_info(l->daemon, MHD_DAEMON_INFO_BIND_PORT);
    l->port = info ? info->port : port;
    return LK_OK;
}

/* What has gathered is still answered. */
static void stop_answering(struct survey_listener *l) {
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    for (int i = 0; i < N_LINES; i++) pthread_cond_signal(&l->lines[i].gathered);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < N_LINES; i++)
        if (l->lines[i].begun) pthread_join(l->lines[i].thread, NULL);
}

static enum lk_code begin_answering(struct survey_listener *l) {
    for (int i = 0; i < N_LINES; i++) {
        struct line *line = &l->lines[i];
        line->listener = l;
        line->last = &line->first;
        pthread_cond_init(&line->gathered, NULL);
        line->begun = !pthread_create(&line->thread, NULL, answer_line, line);
        if (!line->begun) return lk_fail(LK_E_NOMEM, "no thread for a server");
    }
    return LK_OK;
}

enum lk_code survey_listen(struct survey_listener **out, struct survey_server *server, const char *address, int port) {
    struct survey_listener *l = lk_calloc(1, sizeof *l);
    *out = NULL;
    if (!l) return lk_fail(LK_E_NOMEM, "out of memory for a server");
    l->server = server;
    server->entries = &l->entries;
    pthread_mutex_init(&l->admins.lock, NULL);
    server->admins = &l->admins;
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->visits.lock, NULL);
    l->visits.now = server->now, l->visits.clock = server->clock;
    enum lk_code rc = begin_answering(l);
    if (!rc) rc = start(l, address, port);
    if (rc) {
        stop_answering(l);
        lk_free(l);
        return rc;
    }
    if (server->study && *server->study->host)
        snprintf(server->host, sizeof server->host, "%s", server->study->host);
    else
        snprintf(server->host, sizeof server->host, "%s:%d", address, l->port);
    server->local = !strncmp(address, "127.", 4) && !(server->study && *server->study->host);
    snprintf(server->cookie_name, sizeof server->cookie_name, "%s-%d", server->study ? "survey" : "pages", l->port);
    *out = l;
    return LK_OK;
}

int survey_port(const struct survey_listener *l) { return l->port; }

void survey_stop(struct survey_listener *l) {
    if (!l) return;
    stop_answering(l);
    mhd.stop_daemon(l->daemon);
    lk_free(l);
}
