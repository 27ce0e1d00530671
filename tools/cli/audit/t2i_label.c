/* t2i label: what is perceived in pictures, as the table that t2i metrics reads. The surest face of each is found, cut
 * out and looked at; a picture without one has a line that says so. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/digest.h"
#include "engine/base/log.h"
#include "eval/document/table_print.h"
#include "eval/judge/perceived.h"
#include "eval/judge/pixel.h"
#include "eval/study/factors.h"
#include "tools/cli/audit/t2i.h"
#include "tools/cli/core/outputs.h"
#include "tools/cli/core/signals.h"
#include "tools/cli/edit/job.h"

static const char header[] = "file_path,prompt_id,model_tag,seed,cfg,face_found,race,race_conf,gender,gender_conf,age,"
                             "age_conf,skin_tone,skin_value\r\n";

/* A picture with its face; face.pixels NULL: none was found. */
struct seen {
    size_t number; /* in the log */
    struct lk_image face;
    double angle; /* of its skin; NaN */
};

struct labeller {
    const struct cli_arguments *arguments;
    struct lk_t2i_images images;
    struct lk_yunet *net;
    struct lk_device *device;
    struct lk_fairface *classifier; /* or, NULL, a model that sees: */
    struct lk_chat *chat;
    struct lk_seeing_judge judge;
    struct lk_text table;
    size_t n_bad, n_no_face, n_low_mass;
};

static enum lk_code look_at_face(const struct labeller *l, const struct lk_image *image, struct seen *out) {
    const struct lk_yunet_search search = {.min_score = 0.6, .max_overlap = 0.3};
    struct lk_face *faces;
    struct lk_region region;
    size_t n;
    LK_TRY(lk_yunet_detect(l->net, image, &search, &faces, &n));
    enum lk_code rc = LK_OK;
    if (n && lk_region_of_face(faces, image->width, image->height, &region)) {
        rc = lk_pixel_skin_tone(image, &region, &out->angle);
        if (!rc)
            rc = l->classifier ? lk_fairface_chip(image, faces, &out->face)
                               : lk_perceived_crop(image, faces, &out->face);
    }
    lk_free(faces);
    return rc;
}

static enum lk_code look_at(const struct labeller *l, struct seen *out) {
    struct lk_image image = {0};
    char *path = cli_t2i_path(l->arguments, &l->images, out->number);
    enum lk_code rc = path ? lk_image_read(&image, path, 1, 0) : LK_E_NOMEM;
    if (!rc && (rc = look_at_face(l, &image, out))) lk_fail_prefix(rc, "%s", path);
    lk_image_free(&image);
    lk_free(path);
    return rc;
}

static const char *level_name(int kind, int level) {
    if (kind == LK_PERCEIVED_AGE) return lk_age_bracket_name(level);
    return lk_factor_display(kind == LK_PERCEIVED_RACE ? LK_FACTOR_RACE : LK_FACTOR_GENDER, level);
}

/* perceived NULL: no face. */
static void add_line(struct labeller *l, const struct seen *s, const struct lk_perceived *perceived) {
    struct lk_text *out = &l->table;
    bool low = false;
    lk_print_csv_field(out, l->images.logged.list[s->number], "");
    lk_text_add(out, ",");
    cli_t2i_key(&l->images.log[s->number], out);
    lk_text_add(out, perceived ? "true" : "false,,,,,,");
    for (int kind = 0; kind < LK_N_PERCEIVED && perceived; kind++) {
        double confidence;
        int level = lk_perceived_level(perceived, (enum lk_perceived_kind)kind, &confidence);
        lk_text_add(out, ",%s,%.6f", level_name(kind, level), confidence);
        low |= perceived->mass[kind] < 0.9;
    }
    if (perceived && !isnan(s->angle))
        lk_text_add(out, ",%s,%.4f\r\n", lk_skin_class_name(lk_typology_class(s->angle)), s->angle);
    else
        lk_text_add(out, ",,\r\n");
    l->n_no_face += !perceived;
    l->n_low_mass += low;
}

static enum lk_code classify(const struct labeller *l, const struct lk_image *faces, int n, struct lk_perceived *out) {
    float logits[LK_FAIRFACE_OUTPUTS];
    if (!l->classifier) return lk_perceive(&l->judge, faces, n, out);
    for (int i = 0; i < n; i++) {
        LK_TRY(cli_signals_check());
        LK_TRY(lk_fairface_classify(l->classifier, &faces[i], logits));
        lk_perceived_of_fairface(logits, &out[i]);
    }
    return LK_OK;
}

/* Asks about the faces of n pictures, and lets go of them. Lines are in the order of the log. */
static enum lk_code label_some(struct labeller *l, struct seen *seen, int n, struct lk_image *faces,
                               struct lk_perceived *perceived) {
    int n_faces = 0, at = 0;
    for (int i = 0; i < n; i++)
        if (seen[i].face.pixels) faces[n_faces++] = seen[i].face;
    enum lk_code rc = n_faces ? classify(l, faces, n_faces, perceived) : LK_OK;
    for (int i = 0; i < n && !rc; i++) {
        const struct lk_perceived *p = seen[i].face.pixels ? &perceived[at++] : NULL;
        if (!p || !p->code) {
            add_line(l, &seen[i], p);
            continue;
        }
        lk_log(LK_LOG_WARNING, "%s: %s", l->images.logged.list[seen[i].number], p->error);
        l->n_bad++;
    }
    for (int i = 0; i < n; i++) lk_image_free(&seen[i].face);
    return rc ? rc : l->table.rc;
}

static enum lk_code label_all(struct labeller *l) {
    int capacity = 4 * (int)l->arguments->review.batch, n = 0;
    struct seen *seen = lk_calloc((size_t)capacity, sizeof *seen);
    struct lk_image *faces = lk_calloc((size_t)capacity, sizeof *faces);
    struct lk_perceived *perceived = lk_calloc((size_t)capacity, sizeof *perceived);
    enum lk_code rc = seen && faces && perceived ? LK_OK : lk_fail(LK_E_NOMEM, "t2i label: out of memory");
    for (size_t i = 0; i < l->images.logged.n && !rc; i++) {
        seen[n] = (struct seen){.number = i, .angle = NAN};
        enum lk_code looked = look_at(l, &seen[n]);
        if (looked == LK_E_INTERNAL) rc = looked;
        if (looked && !rc) {
            lk_log(LK_LOG_WARNING, "%s", lk_error_text());
            l->n_bad++;
        }
        n += !looked;
        if (rc || (n < capacity && i + 1 < l->images.logged.n)) continue;
        rc = label_some(l, seen, n, faces, perceived);
        n = 0;
        if (!rc) lk_log(LK_LOG_INFO, "%zu of %zu pictures", i + 1, l->images.logged.n);
    }
    for (int i = 0; i < n; i++) lk_image_free(&seen[i].face);
    lk_free(seen);
    lk_free(faces);
    lk_free(perceived);
    return rc;
}

static bool add_model(const struct labeller *l, cJSON *root, const char *identity, bool quantized) {
    const struct cli_arguments *a = l->arguments;
    char model[256];
    if (l->classifier)
        return cJSON_AddStringToObject(root, "classifier_sha256", identity) &&
               cJSON_AddStringToObject(root, "aligner", "eyes of YuNet");
    cli_model_name(a->model, model);
    return cJSON_AddStringToObject(root, "model", model) &&
           cJSON_AddStringToObject(root, "weights_identity", identity) &&
           cJSON_AddBoolToObject(root, "quantized", quantized) &&
           cJSON_AddStringToObject(root, "dtype", a->job.run.dtype) &&
           cJSON_AddStringToObject(root, "question", lk_perceived_question) &&
           cJSON_AddNumberToObject(root, "low_mass", (double)l->n_low_mass);
}

/* What the labels come from, beside them: the table's header is the study's and has no place for it. */
static enum lk_code write_origin(const struct labeller *l) {
    const struct cli_arguments *a = l->arguments;
    char identity[65], faces[65];
    unsigned quantized = 0;
    LK_TRY(l->classifier ? lk_digest_file(LK_DIGEST_SHA256, a->t2i.classifier, identity)
                         : lk_chat_weights_identity(l->chat, identity, &quantized));
    LK_TRY(lk_digest_file(LK_DIGEST_SHA256, a->report.faces, faces));
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "labeler", a->t2i.labeler) &&
              add_model(l, root, identity, quantized != 0) && cJSON_AddStringToObject(root, "faces_sha256", faces) &&
              cJSON_AddNumberToObject(root, "pictures", (double)(l->images.logged.n - l->n_bad)) &&
              cJSON_AddNumberToObject(root, "without_face", (double)l->n_no_face);
    char *text = ok ? cJSON_Print(root) : NULL, *path = lk_format("%s.json", a->output);
    struct lk_text whole = {0};
    lk_text_add(&whole, "%s\n", text ? text : "");
    enum lk_code rc = text && path && !whole.rc ? lk_atomic_write_file(path, whole.bytes, whole.n)
                                                : lk_fail(LK_E_NOMEM, "t2i label: out of memory");
    lk_text_free(&whole);
    lk_free(path);
    cJSON_free(text);
    cJSON_Delete(root);
    return rc;
}

static enum lk_code conclude(struct labeller *l) {
    const char *log = l->arguments->t2i.log;
    size_t n = l->images.logged.n;
    if (l->n_bad == n) return lk_fail(LK_E_INPUT, "%s: none of its %zu pictures can be labelled", log, n);
    LK_TRY(cli_output_write(l->arguments, &l->table));
    LK_TRY(write_origin(l));
    lk_log(LK_LOG_INFO, "%zu pictures, %zu of them without a face", n - l->n_bad, l->n_no_face);
    if (l->n_low_mass)
        lk_log(LK_LOG_WARNING, "%zu of %zu faces: the model gave the labels less than 0.9 of its probability",
               l->n_low_mass, n - l->n_bad - l->n_no_face);
    return l->n_bad
               ? lk_fail(LK_E_PARTIAL, "%s: %zu of %zu pictures cannot be labelled; the others were", log, l->n_bad, n)
               : LK_OK;
}

static enum lk_code open_model(struct labeller *l) {
    const struct cli_arguments *a = l->arguments;
    LK_TRY(cli_device_open(&a->job.run, &l->device));
    LK_TRY(lk_chat_open(&l->chat, a->model, cli_dtype(&a->job.run)));
    l->judge = (struct lk_seeing_judge){
        .chat = l->chat, .dev = l->device, .n_slots = (int)a->review.batch, .tick = cli_signals_check};
    LK_TRY(lk_seeing_judge_open(&l->judge));
    lk_log(LK_LOG_INFO, "%s in %s on %s", lk_chat_family(l->chat), a->job.run.dtype, l->device->name);
    return LK_OK;
}

static enum lk_code run(struct labeller *l) {
    const struct cli_arguments *a = l->arguments;
    const bool fairface = a->t2i.labeler && !strcmp(a->t2i.labeler, "fairface");
    if (!a->t2i.log || !a->t2i.labeler || !a->report.faces || !a->output)
        return lk_fail(LK_E_USAGE,
                       "t2i label: expected --log FILE, --labeler NAME, --faces FILE and --output FILE.csv");
    if (fairface ? !a->t2i.classifier || a->model : !a->model || a->t2i.classifier)
        return lk_fail(LK_E_USAGE, "t2i label: expected %s",
                       fairface ? "--classifier FILE with --labeler fairface, and no --model"
                                : "--model with --labeler vlm, and no --classifier");
    LK_TRY(cli_t2i_output_free(a));
    LK_TRY(cli_t2i_log(a, &l->images));
    LK_TRY(lk_yunet_open(&l->net, a->report.faces));
    LK_TRY(fairface ? lk_fairface_open(&l->classifier, a->t2i.classifier, a->job.run.threads) : open_model(l));
    cli_signals_install();
    lk_text_add(&l->table, "%s", header);
    LK_TRY(label_all(l));
    return conclude(l);
}

enum lk_code cli_t2i_label(const struct cli_arguments *arguments) {
    struct labeller l = {.arguments = arguments};
    lk_t2i_images_init(&l.images);
    enum lk_code rc = run(&l);
    lk_seeing_judge_close(&l.judge);
    lk_chat_close(l.chat);
    if (l.device) lk_device_free(l.device);
    lk_fairface_close(l.classifier);
    lk_yunet_close(l.net);
    lk_text_free(&l.table);
    lk_t2i_images_free(&l.images);
    return rc;
}
