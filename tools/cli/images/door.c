/* What is looked at before a body is taken: the way, who asks, whether there is a place. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "eval/survey/survey.h"
#include "tools/cli/images/api.h"

const char *images_header(const struct images_request *r, const char *name) {
    return mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

/* Without a token, pages that a browser on this machine shows must not reach us: neither from their own origin nor by a
 * name of theirs that leads here. */
static bool is_page_of_others(const struct images_request *r) {
    const char *host = images_header(r, "Host");
    if (r->listener->settings->token) return false;
    const size_t n = host ? strcspn(host, ":") : 0;
    const bool named =
        (n == 9 && (!strncasecmp(host, "127.0.0.1", n) || !strncasecmp(host, "localhost", n))) ||
        (n == strlen(r->listener->settings->address) && !memcmp(host, r->listener->settings->address, n));
    return !named || images_header(r, "Origin");
}

static bool bears_token(const struct images_request *r) {
    const char *token = r->listener->settings->token, *given = images_header(r, "Authorization");
    if (!token) return true;
    return given && !strncasecmp(given, "Bearer ", 7) && lk_survey_same(given + 7, token);
}

static void find_route(struct images_request *r, const char *path, const char *method) {
    static const struct {
        const char *path;
        bool post;
    } routes[] = {[ROUTE_HEALTH] = {"/health", false},
                  [ROUTE_MODELS] = {"/v1/models", false},
                  [ROUTE_GENERATIONS] = {"/v1/images/generations", true},
                  [ROUTE_EDITS] = {"/v1/images/edits", true}};
    const bool post = !strcmp(method, "POST"), get = !strcmp(method, "GET") || !strcmp(method, "HEAD");
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(path, routes[i].path)) continue;
        r->route = (enum route)i;
        if (routes[i].post ? !post : !get)
            images_refuse(&r->answer, 405, NULL, "%s: expected %s, got %.20s", path, routes[i].post ? "POST" : "GET",
                          method);
        return;
    }
    images_refuse(&r->answer, 404, NULL,
                  "%.100s: is nothing that this server has; it has /v1/images/generations, "
                  "/v1/images/edits, /v1/models and /health",
                  path);
}

/* One is made, the others wait or come in. */
static void take_place(struct images_request *r) {
    struct images_listener *l = r->listener;
    pthread_mutex_lock(&l->lock);
    const bool full = l->n_places > l->settings->queue;
    r->has_place = !full;
    l->n_places += !full;
    const double wait_s = l->took_s;
    pthread_mutex_unlock(&l->lock);
    if (!full) return;
    images_refuse(&r->answer, 429, NULL, "expected at most %d requests that wait, got one more; try again later",
                  l->settings->queue);
    r->answer.retry_after_s = wait_s < 1 ? 1 : wait_s > 600 ? 600 : (int)wait_s;
}

void images_look_at(struct images_request *r, const char *path, const char *method) {
    const char *length = images_header(r, "Content-Length");
    const size_t most = r->listener->settings->body_bytes;
    if (length && (strlen(length) > 15 || strtoull(length, NULL, 10) > most)) {
        images_refuse(&r->answer, 413, NULL, "the request: expected at most %zu bytes, got %.20s", most, length);
        return;
    }
    find_route(r, path, method);
    if (r->answer.status || r->route == ROUTE_HEALTH) return;
    if (is_page_of_others(r))
        images_answer_error(r, 421,
                            "Host: expected this server's address, and no Origin: it answers programs, not pages");
    else if (!bears_token(r))
        images_answer_error(r, 401,
                            "Authorization: expected \"Bearer \" and the token that the server was started with");
    else if (r->route >= ROUTE_GENERATIONS)
        take_place(r);
}
