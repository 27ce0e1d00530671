/* serve images: a model stays open, and requests for its pictures are made one after another, as `edit` makes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "models/common/kept.h"
#include "models/host_room.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/images/api.h"

#define CACHE_BYTES ((size_t)256 << 20) /* of encoded prompts and pictures that later requests may ask for again */
#define BODY_BYTES  ((size_t)64 << 20)

enum { QUEUE = 8, REQUEST_MS = 120000, LEAST_TOKEN = 16, MAX_TOKEN = 256, WAIT_MS = 250 };

struct server {
    const struct cli_arguments *arguments;
    struct lk_pipeline *pipeline;
    struct cli_devices devices;
    struct lk_kept *cache;
    char model_name[256], weights_identity[65];
    struct images_listener *listener;
    const struct images_request *request; /* under way */
};

/* One request while its pictures are made. */
struct making {
    struct server *server;
    const struct images_ask *ask;
    struct lk_job job; /* complete, of the first picture */
    struct lk_image images[LK_MAX_REFERENCES];
    struct lk_recipe_run run;
    char folder[4096], *mask; /* where the mask is, for the time being */
    struct picture {
        struct lk_queued queued; /* first: the queue hands it back */
        struct making *making;
        struct lk_job job;
        void *png;
        size_t n_png;
    } pictures[IMAGES_MAX_PICTURES];
    int width, height, n_steps;
};

static enum lk_code progress(void *context, const char *stage, int step, int n_steps) {
    const struct server *s = context;
    LK_TRY(cli_signals_check());
    if (images_gone(s->request)) return lk_fail(LK_E_INTERRUPTED, "the client has hung up");
    lk_log_progress(stage, step, n_steps, lk_log_now());
    return LK_OK;
}

/* --- what a request brings --- */

static enum lk_code read_pictures(struct making *m) {
    int64_t left = IMAGES_MAX_PIXELS;
    for (int i = 0; i < m->ask->n_images; i++) {
        const struct images_file *f = &m->ask->images[i];
        struct lk_image *image = &m->images[i];
        LK_TRY(lk_recipe_image_take(f->name, f->bytes, f->n, m->job.run.exif_transpose, left ? left : 1, image,
                                    m->run.image_names[i], m->run.image_sha256[i]));
        left -= (int64_t)image->width * image->height;
    }
    return LK_OK;
}

/* Transparent pixels of a mask are edited, as the API has it; one without transparency is as --mask has it: *out NULL.
 */
static enum lk_code mask_of_alpha(const struct images_file *f, void **out, size_t *n) {
    struct lk_image image = {0}, grey = {0};
    *out = NULL;
    LK_TRY(lk_image_decode(&image, f->bytes, f->n, f->name, 0, IMAGES_MAX_PIXELS));
    const int channels = image.channels;
    enum lk_code rc = channels % 2 ? LK_OK : lk_image_new(&grey, image.width, image.height, 1);
    for (int64_t i = 0; !rc && grey.pixels && i < (int64_t)image.width * image.height; i++)
        grey.pixels[i] = (uint8_t)(255 - image.pixels[(i + 1) * channels - 1]);
    if (!rc && grey.pixels) rc = lk_png_encode(f->name, &grey, out, n);
    lk_image_free(&image);
    lk_image_free(&grey);
    return rc;
}

/* The model reads its mask from a file, whose name its recipe has. */
static enum lk_code put_mask(struct making *m) {
    const struct images_file *f = &m->ask->mask;
    const char *above = getenv("TMPDIR");
    void *own;
    size_t n = f->n;
    if (!f->bytes) return LK_OK;
    LK_TRY(mask_of_alpha(f, &own, &n));
    snprintf(m->folder, sizeof m->folder, "%.4000s/likeness-XXXXXX", above && *above ? above : "/tmp");
    const bool made = mkdtemp(m->folder) != NULL;
    if (!made) *m->folder = '\0';
    m->mask = made ? lk_format("%s/%s", m->folder, f->name) : NULL;
    const bool good = m->mask && !lk_atomic_write_file(m->mask, own ? own : f->bytes, n);
    lk_free(own);
    if (!good) return lk_fail(LK_E_IO, "mask: cannot be kept in a temporary folder; see TMPDIR");
    m->job.request.mask = m->mask;
    m->job.given |= (uint64_t)1 << (lk_parameter_named("mask") - lk_parameters);
    return LK_OK;
}

enum lk_code images_check_room(const struct lk_plan *plan, uint64_t room) {
    if (!room || plan->arena_bytes <= room) return LK_OK;
    return lk_fail(LK_E_FIT, "size: %dx%d needs %llu MiB, this machine has %llu free; ask for a smaller picture",
                   plan->width, plan->height, (unsigned long long)(plan->arena_bytes >> 20),
                   (unsigned long long)(room >> 20));
}

/* A request must not drive this machine out of memory; a GPU's is planned with. */
static enum lk_code check_plan(struct making *m) {
    struct lk_device *device = m->server->devices.list[0];
    struct lk_plan plan;
    LK_TRY(cli_job_plan(m->server->pipeline, device, &m->job, &plan));
    return device->memory->place ? LK_OK : images_check_room(&plan, lk_host_room(""));
}

static enum lk_code prepare(struct making *m) {
    struct server *s = m->server;
    struct lk_request *r = &m->job.request;
    LK_TRY(read_pictures(m));
    LK_TRY(put_mask(m));
    LK_TRY(lk_job_complete(&m->job, s->pipeline, NULL));
    if (!s->arguments->allow_steps) LK_TRY(cli_job_check_steps(s->pipeline, &m->job));
    r->images = m->images;
    r->n_images = m->ask->n_images;
    r->progress = progress;
    r->progress_context = s;
    return check_plan(m);
}

/* --- pictures --- */

/* A picture is there: what the file of `edit` would hold. */
static void done(void *context, struct lk_queued *queued) {
    struct picture *p = (struct picture *)queued;
    struct making *m = p->making;
    struct server *s = context;
    struct lk_recipe_run run = m->run;
    enum lk_code rc = queued->error.code;
    if (rc) return;
    if (!*s->weights_identity) rc = lk_pipeline_weights_identity(s->pipeline, s->weights_identity);
    run.model = s->model_name;
    run.weights_identity = s->weights_identity;
    run.isa = s->devices.list[0]->architecture;
    run.pipeline = s->pipeline;
    run.job = &p->job;
    run.result = &queued->result;
    if (!rc) rc = lk_recipe_encode("the picture", &run, &p->png, &p->n_png);
    if (rc) lk_error_get(&queued->error, rc);
    if (queued->result.n_cut_ids)
        lk_log(LK_LOG_WARNING,
               "request %d: the last %d tokens of a prompt were left out: the model does not read as many",
               images_number_of(s->request), queued->result.n_cut_ids);
    m->width = queued->result.image.width;
    m->height = queued->result.image.height;
    m->n_steps = queued->result.n_steps;
    lk_image_free(&queued->result.image);
}

static enum lk_code make_pictures(struct making *m) {
    struct server *s = m->server;
    struct lk_queued *list[IMAGES_MAX_PICTURES];
    for (int i = 0; i < m->ask->n; i++) {
        struct picture *p = &m->pictures[i];
        p->making = m;
        p->job = m->job;
        p->job.owned = 0;
        p->job.request.seed += (uint64_t)i;
        p->queued.request = &p->job.request;
        list[i] = &p->queued;
    }
    const struct lk_queue queue = {.jobs = list,
                                   .n_jobs = m->ask->n,
                                   .jobs_per_visit = (int)s->arguments->jobs_per_visit,
                                   .done = done,
                                   .context = s,
                                   .cache = s->devices.n > 1 ? NULL : &s->cache,
                                   .cache_bytes = CACHE_BYTES};
    enum lk_code rc = cli_devices_edit(s->pipeline, &s->devices, &queue);
    lk_log_progress_end();
    for (int i = 0; i < m->ask->n && (!rc || rc == LK_E_PARTIAL); i++)
        if (m->pictures[i].queued.error.code) return lk_error_set(&m->pictures[i].queued.error);
    return rc;
}

static enum lk_code write_reply(const struct making *m, struct images_answer *answer) {
    struct lk_text *out = &answer->body;
    lk_text_add(out, "{\"created\":%lld,\"model\":", (long long)time(NULL));
    lk_text_json(out, m->server->model_name);
    lk_text_add(out, ",\"size\":\"%dx%d\",\"output_format\":\"png\",\"data\":[", m->width, m->height);
    for (int i = 0; i < m->ask->n; i++) {
        const struct picture *p = &m->pictures[i];
        lk_text_add(out, "%s{\"seed\":%llu,\"b64_json\":\"", i ? "," : "", (unsigned long long)p->job.request.seed);
        lk_text_base64(out, p->png, p->n_png);
        lk_text_add(out, "\"}");
    }
    lk_text_add(out, "]}\n");
    answer->status = 200;
    return out->rc;
}

/* --- errors --- */

/* The API's field that a message begins with, as "guidance_scale: expected ..."; NULL: none. */
static const char *field_of(const char *message, enum lk_code rc) {
    char word[40];
    const size_t n = strcspn(message, ":");
    if (rc == LK_E_PROMPT) return "prompt";
    if (n >= sizeof word) return NULL;
    snprintf(word, sizeof word, "%.*s", (int)n, message);
    if (!strcmp(word, "width") || !strcmp(word, "height") || !strcmp(word, "size")) return "size";
    const struct lk_parameter *p = lk_parameter_named(!strncmp(word, "--", 2) ? word + 2 : word);
    return p ? p->key : NULL;
}

/* What failed, without the place where the mask lay. */
static void refuse(const struct making *m, enum lk_code rc, struct images_answer *answer) {
    struct lk_error error;
    lk_error_get(&error, rc);
    const size_t n = strlen(m->folder);
    for (char *at; n && (at = strstr(error.text, m->folder));) memmove(at, at + n + 1, strlen(at + n));
    const char *param = field_of(error.text, rc);
    if (!param && lk_exit_code(rc) == 3) param = m->mask && strstr(error.text, "mask") ? "mask" : "image";
    const bool named = !param || strstr(error.text, param);
    images_refuse(answer, images_status_of(rc), param, "%s%s%s", named ? "" : param, named ? "" : ": ", error.text);
}

static void make(struct server *s, struct images_request *request) {
    struct images_answer answer = {0};
    struct making *m = lk_calloc(1, sizeof *m);
    const double began = lk_log_now();
    enum lk_code rc = LK_OK;
    if (!m) {
        images_refuse(&answer, 500, NULL, "out of memory for a request");
        images_answer(s->listener, request, &answer, 0);
        return;
    }
    s->request = request;
    m->server = s;
    m->ask = images_ask_of(request);
    m->job = m->ask->job;
    m->job.owned = 0;
    rc = prepare(m);
    if (!rc) rc = make_pictures(m);
    if (!rc) rc = write_reply(m, &answer);
    if (rc) refuse(m, rc, &answer);
    if (m->mask) unlink(m->mask);
    if (*m->folder) rmdir(m->folder);
    lk_free(m->mask);
    for (int i = 0; i < LK_MAX_REFERENCES; i++) lk_image_free(&m->images[i]);
    for (int i = 0; i < IMAGES_MAX_PICTURES; i++) {
        lk_result_free(&m->pictures[i].queued.result);
        lk_free(m->pictures[i].png);
    }
    const double took = lk_log_now() - began;
    if (!rc)
        lk_log(LK_LOG_INFO, "request %d: %d of %dx%d, %d steps, %.1f s", images_number_of(request), m->ask->n, m->width,
               m->height, m->n_steps, took);
    if (rc && images_gone(request))
        lk_log(LK_LOG_INFO, "request %d: stopped after %.1f s: the client has hung up", images_number_of(request),
               took);
    lk_job_free(&m->job);
    lk_free(m);
    images_answer(s->listener, request, &answer, took);
}

/* --- the server's life --- */

/* What requests must bear: the first line of --token-file, or LIKENESS_IMAGES_TOKEN. "": none. */
static enum lk_code read_token(const struct cli_arguments *a, char token[MAX_TOKEN + 1]) {
    const char *named = a->survey.token_file, *given = getenv("LIKENESS_IMAGES_TOKEN");
    char *text = NULL;
    size_t n;
    if (named) LK_TRY(lk_read_file(named, MAX_TOKEN + 2, &text, &n));
    const char *from = text ? text : given ? given : "";
    n = strcspn(from, "\r\n");
    const bool good = n >= LEAST_TOKEN && n <= MAX_TOKEN && !from[n + strspn(from + n, "\r\n")];
    snprintf(token, MAX_TOKEN + 1, "%.*s", good ? (int)n : 0, from);
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~') *token = '\0';
    lk_free(text);
    if (*token || (!named && !given)) return LK_OK;
    return lk_fail(LK_E_USAGE, "%s: expected a token of %d to %d characters without blanks, as openssl rand -hex 32",
                   named ? named : "LIKENESS_IMAGES_TOKEN", LEAST_TOKEN, MAX_TOKEN);
}

/* What the command line says of every job is found out before the first one. */
static enum lk_code open_model(struct server *s) {
    const struct cli_arguments *a = s->arguments;
    struct lk_job job = a->job;
    LK_TRY(cli_devices_open(&a->job.run, &s->devices));
    const struct lk_pipeline_options options = cli_pipeline_options(&a->job.run);
    LK_TRY(lk_pipeline_open_with(&s->pipeline, a->model, &options));
    lk_recipe_model_name(a->model, s->model_name);
    job.owned = 0;
    enum lk_code rc = lk_job_complete(&job, s->pipeline, NULL);
    if (!rc && !a->allow_steps) rc = cli_job_check_steps(s->pipeline, &job);
    lk_job_free(&job);
    return rc;
}

static int64_t steady_clock(void *unused) {
    (void)unused;
    return (int64_t)(1000 * lk_log_now());
}

static enum lk_code run(struct server *s, const char *address, const char *token) {
    const struct cli_arguments *a = s->arguments;
    LK_TRY(open_model(s));
    const struct images_model model = {.id = s->model_name,
                                       .path = a->model,
                                       .family = lk_pipeline_family(s->pipeline),
                                       .takes_images = lk_pipeline_takes_images(s->pipeline),
                                       .job = &a->job};
    const struct images_settings settings = {.model = &model,
                                             .address = address,
                                             .port = (int)a->survey.port,
                                             .token = *token ? token : NULL,
                                             .queue = a->study.queue ? (int)a->study.queue : QUEUE,
                                             .body_bytes = BODY_BYTES,
                                             .request_ms = REQUEST_MS,
                                             .now = steady_clock};
    cli_signals_install();
    LK_TRY(images_listen(&s->listener, &settings));
    printf("http://%s:%d/v1\n", address, images_port(s->listener));
    fflush(stdout);
    lk_log(LK_LOG_INFO, "%s in %s on %s", model.family, a->job.run.dtype, s->devices.list[0]->name);
    while (!cli_signals_check()) {
        struct images_request *request = images_next(s->listener, WAIT_MS);
        if (request) make(s, request);
    }
    images_stop(s->listener);
    return LK_OK;
}

enum lk_code cli_serve_images(const struct cli_arguments *a) {
    struct server *s = lk_calloc(1, sizeof *s);
    const char *address = a->survey.bind ? a->survey.bind : "127.0.0.1";
    char token[MAX_TOKEN + 1];
    if (!s) return lk_fail(LK_E_NOMEM, "out of memory for a server");
    s->arguments = a;
    enum lk_code rc = read_token(a, token);
    if (!rc) rc = run(s, address, token);
    lk_kept_free(&s->cache);
    lk_pipeline_close(s->pipeline);
    cli_devices_free(&s->devices);
    lk_free(s);
    return rc;
}
