/* The survey's pages brought to libmicrohttpd: requests are collected within limits, replies get their headers. */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "tools/cli/survey/http.h"

enum { N_THREADS = 4, MAX_CONNECTIONS = 1000, IDLE_SECONDS = 15, HEADER_BYTES = 32768, MAX_REQUEST_MS = 20000 };

struct survey_listener {
    struct MHD_Daemon *daemon;
    struct survey_server *server;
    int port;
};

/* A request while it comes in. */
struct pending {
    char uri[SURVEY_MAX_URI + 1], body[SURVEY_MAX_BODY + 1];
    size_t n_body;
    int64_t began;
    int refusal; /* a status, 0 for none */
    bool seen;
};

static void *begin(void *context, const char *uri, struct MHD_Connection *connection) {
    (void)context, (void)connection;
    struct pending *r = lk_calloc(1, sizeof *r);
    if (!r) return NULL;
    size_t n = strlen(uri);
    if (n > SURVEY_MAX_URI)
        r->refusal = 414;
    else
        memcpy(r->uri, uri, n + 1);
    return r;
}

static void end(void *context, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode why) {
    (void)context, (void)connection, (void)why;
    lk_free(*state);
    *state = NULL;
}

struct header_count {
    int lengths, hosts, encodings;
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    struct header_count *n = context;
    (void)kind, (void)value;
    n->lengths += !strcasecmp(name, "Content-Length");
    n->hosts += !strcasecmp(name, "Host");
    n->encodings += !strcasecmp(name, "Transfer-Encoding");
    return MHD_YES;
}

/* Shapes that a proxy before us might read as other requests than we do. */
static int refusal_of(struct MHD_Connection *connection, const char *method) {
    struct header_count n = {0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &n);
    if (n.hosts != 1 || n.encodings || n.lengths > 1) return 400;
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
        MHD_add_response_header(response, fixed[i][0], fixed[i][1]);
    MHD_add_response_header(response, "Cache-Control", reply->may_be_kept ? "private, max-age=3600" : "no-store");
    MHD_add_response_header(response, "Content-Type", reply->type);
    if (*reply->location) MHD_add_response_header(response, "Location", reply->location);
    if (reply->status == 401) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (*reply->cookie) { /* a public name means that a proxy speaks TLS before us */
        snprintf(cookie, sizeof cookie, "survey=%s; HttpOnly; SameSite=Strict; Path=/%s", reply->cookie,
                 server->study && *server->study->host ? "; Secure" : "");
        MHD_add_response_header(response, "Set-Cookie", cookie);
    }
}

static const char *type_of(const char *path) {
    const char *dot = strrchr(path, '.');
    return !dot ? "application/octet-stream" : !strcasecmp(dot, ".png") ? "image/png" : "image/jpeg";
}

static enum MHD_Result send_reply(struct MHD_Connection *connection, const struct survey_server *server,
                                  struct survey_reply *reply) {
    struct MHD_Response *response = NULL;
    struct stat st;
    int file = -1;
    if (reply->file && !lk_open_regular(reply->file, &file, &st)) {
        reply->type = type_of(reply->file);
        response = MHD_create_response_from_fd((size_t)st.st_size, file);
        if (!response) close(file);
    } else if (!reply->file)
        response = MHD_create_response_from_buffer(reply->body.n, reply->body.bytes ? reply->body.bytes : "",
                                                   MHD_RESPMEM_MUST_COPY);
    lk_text_free(&reply->body);
    if (!response) return MHD_NO;
    add_headers(response, server, reply);
    enum MHD_Result sent = MHD_queue_response(connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return sent;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, const struct survey_server *server, int status) {
    struct survey_reply reply = {.status = status, .type = "text/plain; charset=utf-8"};
    lk_text_add(&reply.body, "%d\n", status);
    return send_reply(connection, server, &reply);
}

static const char *header(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result respond(struct MHD_Connection *connection, struct survey_listener *listener, const char *method,
                               struct pending *r) {
    struct survey_request request = {.method = method,
                                     .uri = r->uri,
                                     .body = strcmp(method, "POST") ? NULL : r->body,
                                     .host = header(connection, "Host"),
                                     .origin = header(connection, "Origin"),
                                     .cookie = header(connection, "Cookie"),
                                     .accept = header(connection, "Accept"),
                                     .authorization = header(connection, "Authorization"),
                                     .content_type = header(connection, "Content-Type")};
    struct survey_reply reply;
    if (!listener->server->respond(listener->server, &request, &reply))
        return send_reply(connection, listener->server, &reply);
    lk_text_free(&reply.body);
    return refuse(connection, listener->server, 500);
}

static enum MHD_Result receive(void *context, struct MHD_Connection *connection, const char *uri, const char *method,
                               const char *version, const char *data, size_t *n_data, void **state) {
    struct survey_listener *listener = context;
    struct pending *r = *state;
    (void)uri, (void)version;
    if (!r) return MHD_NO;
    int64_t now = listener->server->now(listener->server->clock);
    if (!r->seen) {
        r->seen = true;
        r->began = now;
        if (!r->refusal) r->refusal = refusal_of(connection, method);
        return r->refusal ? refuse(connection, listener->server, r->refusal) : MHD_YES;
    }
    if (*n_data) {
        if (now - r->began > MAX_REQUEST_MS) return MHD_NO; /* a drop at a time keeps no place */
        if (r->n_body + *n_data > SURVEY_MAX_BODY || memchr(data, '\0', *n_data))
            r->refusal = 413;
        else {
            memcpy(r->body + r->n_body, data, *n_data);
            r->n_body += *n_data;
        }
        *n_data = 0;
        return MHD_YES;
    }
    return r->refusal ? refuse(connection, listener->server, r->refusal) : respond(connection, listener, method, r);
}

static enum lk_code start(struct survey_listener *l, const char *address, int port) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &where.sin_addr) != 1)
        return lk_fail(LK_E_USAGE, "--bind: expected an IPv4 address, got \"%.60s\"", address);
    l->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL, 0, NULL, NULL, receive, l, MHD_OPTION_SOCK_ADDR, &where,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)N_THREADS, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, begin, NULL, MHD_OPTION_NOTIFY_COMPLETED, end,
        NULL, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
    if (!l->daemon) return lk_fail(LK_E_IO, "%s:%d: cannot listen there; is another server running?", address, port);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_BIND_PORT);
    l->port = info ? info->port : port;
    return LK_OK;
}

enum lk_code survey_listen(struct survey_listener **out, struct survey_server *server, const char *address, int port) {
    struct survey_listener *l = lk_calloc(1, sizeof *l);
    *out = NULL;
    if (!l) return lk_fail(LK_E_NOMEM, "out of memory for a server");
    l->server = server;
    enum lk_code rc = start(l, address, port);
    if (rc) {
        lk_free(l);
        return rc;
    }
    if (server->study && *server->study->host)
        snprintf(server->host, sizeof server->host, "%s", server->study->host);
    else
        snprintf(server->host, sizeof server->host, "%s:%d", address, l->port);
    *out = l;
    return LK_OK;
}

int survey_port(const struct survey_listener *l) { return l->port; }

void survey_stop(struct survey_listener *l) {
    if (!l) return;
    MHD_stop_daemon(l->daemon);
    lk_free(l);
}
