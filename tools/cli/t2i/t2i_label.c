/* t2i label: what is perceived in pictures, as the table that t2i metrics reads. The surest face of each is found, cut
 * out and looked at; a picture without one has a line that says so. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/atomic_file.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/base/isa.h"
#include "engine/base/log.h"
#include "eval/document/table_print.h"
#include "eval/judge/perceived.h"
#include "eval/judge/pixel.h"
#include "eval/scores/dataset.h"
#include "eval/scores/fields.h"
#include "eval/study/factors.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/t2i/t2i.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

static const char header[] = "file_path,prompt_id,model_tag,seed,cfg,face_found,race,race_conf,gender,gender_conf,age,"
                             "age_conf,skin_tone,skin_value,sha256\r\n";

/* A picture with its face; face.pixels NULL: none was found. */
struct seen {
    size_t number; /* in the log */
    struct lk_image face;
    double angle;    /* of its skin; NaN */
    char sha256[65]; /* of its file */
};

/* A picture's line of the table; NULL: there is none yet. */
struct label {
    char *line;
    bool face, low_mass;
    char sha256[65]; /* of the picture that an earlier run labelled, as long as nobody looked whether it is still that
                      * one; "" otherwise */
};

struct cli_labeller {
    const struct cli_arguments *arguments;
    const struct lk_t2i_images *images;
    struct lk_yunet *net;
    struct lk_device *device;
    struct lk_fairface *classifier; /* or, NULL, a model that sees: */
    struct lk_chat *chat;
    struct lk_seeing_judge judge;
    char identity[65], faces[65], whole[65]; /* of the model, of the detector, of all that decides labels */
    unsigned quantized;
    const struct cli_share *share; /* NULL: all pictures */
    char *partial;                 /* a file of the labels that there are, while the table is not written */
    bool begun;                    /* it is there */
    struct lk_names paths;         /* of pictures, as the log has them */
    struct label *labels;          /* [paths.n] */
    size_t capacity, n_bad, n_no_face, n_low_mass;
};

static enum lk_code look_at_face(const struct cli_labeller *l, const struct lk_image *image, struct seen *out) {
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

static enum lk_code look_at(const struct cli_labeller *l, struct seen *out) {
    struct lk_image image = {0};
    char *path = cli_t2i_path(l->arguments, l->images, out->number);
    enum lk_code rc = path ? lk_image_read(&image, path, 1, 0) : LK_E_NOMEM;
    if (!rc) rc = lk_digest_file(LK_DIGEST_SHA256, path, out->sha256);
    if (!rc && (rc = look_at_face(l, &image, out))) lk_fail_prefix(rc, "%s", path);
    lk_image_free(&image);
    lk_free(path);
    return rc;
}

static const char *level_name(int kind, int level) {
    if (kind == LK_PERCEIVED_AGE) return lk_age_bracket_name(level);
    return lk_factor_display(kind == LK_PERCEIVED_RACE ? LK_FACTOR_RACE : LK_FACTOR_GENDER, level);
}

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i label: out of memory"); }

/* Where the label of a picture is kept. */
static enum lk_code label_of(struct cli_labeller *l, const char *path, struct label **out) {
    int32_t number;
    LK_TRY(lk_names_number(&l->paths, path, strlen(path), &number));
    const size_t had = l->capacity;
    LK_TRY(lk_grow(&l->labels, &l->capacity, (size_t)number + 1, sizeof *l->labels));
    if (l->capacity > had) memset(l->labels + had, 0, (l->capacity - had) * sizeof *l->labels);
    *out = &l->labels[number];
    return LK_OK;
}

/* perceived NULL: no face. */
static enum lk_code add_label(struct cli_labeller *l, const struct seen *s, const struct lk_perceived *perceived,
                              struct lk_text *partial) {
    struct lk_text out = {0};
    struct label *label;
    const char *path = l->images->logged.list[s->number];
    LK_TRY(label_of(l, path, &label));
    label->face = perceived;
    lk_print_csv_field(&out, path, "");
    lk_text_add(&out, ",");
    cli_t2i_key(&l->images->log[s->number], &out);
    lk_text_add(&out, perceived ? "true" : "false,,,,,,");
    for (int kind = 0; kind < LK_N_PERCEIVED && perceived; kind++) {
        double confidence;
        int level = lk_perceived_level(perceived, (enum lk_perceived_kind)kind, &confidence);
        lk_text_add(&out, ",%s,%.6f", level_name(kind, level), confidence);
        label->low_mass |= perceived->mass[kind] < 0.9;
    }
    if (perceived && !isnan(s->angle))
        lk_text_add(&out, ",%s,%.4f", lk_skin_class_name(lk_typology_class(s->angle)), s->angle);
    else
        lk_text_add(&out, ",,");
    lk_text_add(&out, ",%s\r\n", s->sha256);
    label->line = out.bytes; /* its own now */
    if (out.rc) return out.rc;
    lk_text_add(partial, "{\"path\":");
    lk_text_json(partial, path);
    lk_text_add(partial, ",\"sha256\":\"%s\"", s->sha256);
    lk_text_add(partial, ",\"face\":%s,\"low_mass\":%s,\"line\":", label->face ? "true" : "false",
                label->low_mass ? "true" : "false");
    lk_text_json(partial, label->line);
    lk_text_add(partial, "}\n");
    return partial->rc;
}

static enum lk_code classify(const struct cli_labeller *l, const struct lk_image *faces, int n,
                             struct lk_perceived *out) {
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
static enum lk_code label_some(struct cli_labeller *l, struct seen *seen, int n, struct lk_image *faces,
                               struct lk_perceived *perceived) {
    int n_faces = 0, at = 0;
    for (int i = 0; i < n; i++)
        if (seen[i].face.pixels) faces[n_faces++] = seen[i].face;
    struct lk_text partial = {0};
    if (!l->begun) lk_text_add(&partial, "{\"labels_of\":\"%s\"}\n", l->whole);
    enum lk_code rc = n_faces ? classify(l, faces, n_faces, perceived) : LK_OK;
    for (int i = 0; i < n && !rc; i++) {
        const struct lk_perceived *p = seen[i].face.pixels ? &perceived[at++] : NULL;
        if (!p || !p->code) {
            rc = add_label(l, &seen[i], p, &partial);
            continue;
        }
        if (!l->share) lk_log(LK_LOG_WARNING, "%s: %s", l->images->logged.list[seen[i].number], p->error);
        l->n_bad++;
    }
    for (int i = 0; i < n; i++) lk_image_free(&seen[i].face);
    if (!rc && !(rc = lk_append_lines(l->partial, partial.bytes, partial.n))) l->begun = true;
    lk_text_free(&partial);
    return rc;
}

/* Whether the picture is to be labelled here; *left: how many without a label came before it. */
static enum lk_code is_open(struct cli_labeller *l, size_t picture, size_t *left, bool *open) {
    struct label *label;
    LK_TRY(label_of(l, l->images->logged.list[picture], &label));
    if (*label->sha256) {
        char now[65], *path = cli_t2i_path(l->arguments, l->images, picture);
        if (!path) return out_of_memory();
        /* What cannot be read, labelling says. */
        if (lk_digest_file(LK_DIGEST_SHA256, path, now) || strcmp(now, label->sha256)) {
            if (!l->share) lk_log(LK_LOG_INFO, "%s: another picture than was labelled", path);
            lk_free(label->line);
            *label = (struct label){0};
        }
        *label->sha256 = 0;
        lk_free(path);
    }
    *open = !label->line && (!l->share || *left % (size_t)l->share->n == (size_t)l->share->part);
    *left += !label->line;
    return LK_OK;
}

/* Those of the log that have no label yet. What cannot be read is named by the process that writes the table. */
static enum lk_code label_all(struct cli_labeller *l) {
    int capacity = 4 * (int)l->arguments->review.batch, n = 0;
    struct seen *seen = lk_calloc((size_t)capacity, sizeof *seen);
    struct lk_image *faces = lk_calloc((size_t)capacity, sizeof *faces);
    struct lk_perceived *perceived = lk_calloc((size_t)capacity, sizeof *perceived);
    enum lk_code rc = seen && faces && perceived ? LK_OK : out_of_memory();
    const size_t n_all = l->images->logged.n;
    size_t left = 0;
    for (size_t i = 0; i < n_all && !rc; i++) {
        bool open = false;
        seen[n] = (struct seen){.number = i, .angle = NAN};
        rc = is_open(l, i, &left, &open);
        if (!rc && open) {
            enum lk_code looked = look_at(l, &seen[n]);
            if (looked == LK_E_INTERNAL) rc = looked;
            if (looked && !rc) {
                if (!l->share) lk_log(LK_LOG_WARNING, "%s", lk_error_text());
                l->n_bad++;
            }
            n += !looked;
        }
        if (rc || !n || (n < capacity && i + 1 < n_all)) continue;
        rc = label_some(l, seen, n, faces, perceived);
        if (l->share) l->share->progress->asked += n;
        n = 0;
        if (!rc && !l->share) lk_log(LK_LOG_INFO, "%zu of %zu pictures", i + 1, n_all);
    }
    for (int i = 0; i < n; i++) lk_image_free(&seen[i].face);
    lk_free(seen);
    lk_free(faces);
    lk_free(perceived);
    return rc;
}

enum lk_code cli_labeller_label(struct cli_labeller *l, const struct lk_t2i_images *images, struct lk_text *table) {
    struct label *label;
    l->images = images;
    l->n_bad = l->n_no_face = l->n_low_mass = 0;
    LK_TRY(label_all(l));
    if (images->logged.n && l->n_bad == images->logged.n)
        return lk_fail(LK_E_INPUT, "%s: none of its %zu pictures can be labelled", l->arguments->t2i.log, l->n_bad);
    lk_text_add(table, "%s", header);
    for (size_t i = 0; i < images->logged.n; i++) {
        LK_TRY(label_of(l, images->logged.list[i], &label));
        if (!label->line) continue;
        lk_text_add(table, "%s", label->line);
        l->n_no_face += !label->face;
        l->n_low_mass += label->low_mass;
    }
    return table->rc;
}

static bool add_model(const struct cli_labeller *l, cJSON *root) {
    const struct cli_arguments *a = l->arguments;
    char model[256];
    if (l->classifier)
        return cJSON_AddStringToObject(root, "classifier_sha256", l->identity) &&
               cJSON_AddStringToObject(root, "aligner", "eyes of YuNet");
    lk_recipe_model_name(a->model, model);
    return cJSON_AddStringToObject(root, "model", model) &&
           cJSON_AddStringToObject(root, "weights_identity", l->identity) &&
           cJSON_AddRawToObject(root, "configs", lk_chat_configs(l->chat)) &&
           cJSON_AddBoolToObject(root, "quantized", l->quantized != 0) &&
           cJSON_AddStringToObject(root, "dtype", a->job.run.dtype) &&
           cJSON_AddStringToObject(root, "question", lk_perceived_question) &&
           cJSON_AddNumberToObject(root, "low_mass", (double)l->n_low_mass);
}

/* What the labels come from, beside them: the table's header is the study's and has no place for it. */
static enum lk_code write_origin(const struct cli_labeller *l) {
    const struct cli_arguments *a = l->arguments;
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "labeler", a->t2i.labeler) && add_model(l, root) &&
              cJSON_AddStringToObject(root, "faces_sha256", l->faces) &&
              cJSON_AddNumberToObject(root, "pictures", (double)(l->images->logged.n - l->n_bad)) &&
              cJSON_AddNumberToObject(root, "without_face", (double)l->n_no_face);
    char *text = ok ? cJSON_Print(root) : NULL, *path = lk_format("%s.json", a->output);
    struct lk_text whole = {0};
    lk_text_add(&whole, "%s\n", text ? text : "");
    enum lk_code rc = text && path && !whole.rc ? lk_atomic_write_file(path, whole.bytes, whole.n) : out_of_memory();
    lk_text_free(&whole);
    lk_free(path);
    cJSON_free(text);
    cJSON_Delete(root);
    return rc;
}

enum lk_code cli_labeller_write(struct cli_labeller *l, const struct lk_text *table) {
    const char *log = l->arguments->t2i.log;
    size_t n = l->images->logged.n;
    LK_TRY(lk_atomic_write_file(l->arguments->output, table->bytes, table->n));
    LK_TRY(write_origin(l));
    if (remove(l->partial) && errno != ENOENT) return lk_fail_errno(errno, "%s", l->partial);
    lk_log(LK_LOG_INFO, "%zu pictures, %zu of them without a face", n - l->n_bad, l->n_no_face);
    if (l->n_low_mass)
        lk_log(LK_LOG_WARNING, "%zu of %zu faces: the model gave the labels less than 0.9 of its probability",
               l->n_low_mass, n - l->n_bad - l->n_no_face);
    return l->n_bad
               ? lk_fail(LK_E_PARTIAL, "%s: %zu of %zu pictures cannot be labelled; the others were", log, l->n_bad, n)
               : LK_OK;
}

static enum lk_code open_model(struct cli_labeller *l) {
    const struct cli_arguments *a = l->arguments;
    LK_TRY(cli_device_open(&a->job.run, &l->device));
    LK_TRY(lk_chat_open(&l->chat, a->model, cli_dtype(&a->job.run)));
    l->judge = (struct lk_seeing_judge){
        .chat = l->chat, .dev = l->device, .n_slots = (int)a->review.batch, .tick = cli_signals_check};
    LK_TRY(lk_seeing_judge_open(&l->judge));
    lk_log(LK_LOG_INFO, "%s in %s on %s", lk_chat_family(l->chat), a->job.run.dtype, l->device->name);
    return lk_chat_weights_identity(l->chat, l->identity, &l->quantized);
}

/* Everything that a label depends on beside the picture, and where the pictures are. */
static enum lk_code identify(struct cli_labeller *l) {
    const struct cli_arguments *a = l->arguments;
    struct lk_text text = {0};
    char *log = realpath(a->t2i.log, NULL);
    LK_TRY(lk_digest_file(LK_DIGEST_SHA256, a->report.faces, l->faces));
    if (l->classifier) LK_TRY(lk_digest_file(LK_DIGEST_SHA256, a->t2i.classifier, l->identity));
    lk_text_add(&text, "%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n", LIKENESS_VERSION, a->t2i.labeler, l->identity,
                l->chat ? lk_chat_configs(l->chat) : "", l->faces,
                l->device ? l->device->architecture : lk_cpu_isa_name(lk_cpu_isa()), a->job.run.dtype,
                log ? log : a->t2i.log);
    free(log);
    if (!text.rc) lk_sha256(text.bytes, text.n, l->whole);
    return lk_text_free(&text);
}

/* A label of the run before. */
static enum lk_code take_record(struct cli_labeller *l, const struct lk_fields *fields) {
    const struct lk_field *path = lk_fields_find(fields, "path"), *line = lk_fields_find(fields, "line"),
                          *sha256 = lk_fields_find(fields, "sha256");
    struct label *label;
    if (!path || !line) return LK_OK;
    LK_TRY(label_of(l, path->text, &label));
    lk_free(label->line);
    *label = (struct label){lk_strdup(line->text), lk_field_bool(lk_fields_find(fields, "face")) == 1,
                            lk_field_bool(lk_fields_find(fields, "low_mass")) == 1, ""};
    if (sha256) snprintf(label->sha256, sizeof label->sha256, "%.64s", sha256->text);
    return label->line ? LK_OK : out_of_memory();
}

static enum lk_code read_partial(struct cli_labeller *l, const char *path, const char *text, size_t n) {
    struct lk_records records;
    bool more = true, first = true;
    LK_TRY(lk_records_open(&records, text, n, path));
    enum lk_code rc = LK_OK;
    for (; !rc && !(rc = lk_records_next_strict(&records, &more)) && more; first = false) {
        const struct lk_field *of = lk_fields_find(&records.fields, "labels_of");
        if ((first && !of) || (of && strcmp(of->text, l->whole) != 0))
            rc = lk_fail(LK_E_CHANGED,
                         "%s: holds labels of another log, model, version or device, from a run that was stopped; go "
                         "on with that one, or remove the file",
                         path);
        if (!rc) rc = take_record(l, &records.fields);
    }
    lk_records_close(&records);
    return rc;
}

/* Labels that there are in FILE.partial; mend: a line that was cut off is taken away. */
static enum lk_code read_labelled(struct cli_labeller *l, const char *path, bool mend) {
    char *text;
    size_t n;
    enum lk_code rc = lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n);
    if (rc) return rc == LK_E_NOT_FOUND ? LK_OK : rc;
    const size_t whole = lk_whole_lines(text, n);
    if (whole) rc = read_partial(l, path, text, whole);
    if (!rc && mend) rc = lk_cut_half_line(path, whole, n);
    lk_free(text);
    if (mend) l->begun = whole;
    return rc;
}

/* Labels of a run that was stopped, of a share also of the whole. */
static enum lk_code resume(struct cli_labeller *l) {
    if (!(l->partial = lk_format("%s.partial", l->arguments->output))) return out_of_memory();
    if (l->share) {
        char *whole = lk_format("%s.partial", l->share->whole);
        enum lk_code rc = whole ? read_labelled(l, whole, false) : out_of_memory();
        lk_free(whole);
        LK_TRY(rc);
    }
    LK_TRY(read_labelled(l, l->partial, true));
    if (!l->share && !l->arguments->study.devices && l->paths.n)
        lk_log(LK_LOG_INFO, "%zu pictures were labelled before", l->paths.n);
    return LK_OK;
}

static enum lk_code open_labeller(struct cli_labeller **out, const struct cli_arguments *a,
                                  const struct cli_share *share) {
    const bool fairface = !strcmp(a->t2i.labeler, "fairface");
    struct cli_labeller *l = *out = lk_calloc(1, sizeof *l);
    if (!l) return out_of_memory();
    l->arguments = a;
    l->share = share;
    LK_TRY(lk_yunet_open(&l->net, a->report.faces));
    LK_TRY(fairface ? lk_fairface_open(&l->classifier, a->t2i.classifier, a->job.run.threads) : open_model(l));
    LK_TRY(identify(l));
    return resume(l);
}

enum lk_code cli_labeller_open(struct cli_labeller **out, const struct cli_arguments *a) {
    return open_labeller(out, a, NULL);
}

void cli_labeller_close(struct cli_labeller *l) {
    if (!l) return;
    for (size_t i = 0; i < l->paths.n && i < l->capacity; i++) lk_free(l->labels[i].line);
    lk_seeing_judge_close(&l->judge);
    lk_chat_close(l->chat);
    if (l->device) lk_device_free(l->device);
    lk_fairface_close(l->classifier);
    lk_yunet_close(l->net);
    lk_names_free(&l->paths);
    lk_free(l->labels);
    lk_free(l->partial);
    lk_free(l);
}

static enum lk_code check_arguments(const struct cli_arguments *a) {
    const bool fairface = a->t2i.labeler && !strcmp(a->t2i.labeler, "fairface");
    const char *devices = a->study.devices;
    if (!a->t2i.log || !a->t2i.labeler || !a->report.faces || !a->output)
        return lk_fail(LK_E_USAGE,
                       "t2i label: expected --log FILE, --labeler NAME, --faces FILE and --output FILE.csv");
    if (fairface ? !a->t2i.classifier || a->model : !a->model || a->t2i.classifier)
        return lk_fail(LK_E_USAGE, "t2i label: expected %s",
                       fairface ? "--classifier FILE with --labeler fairface, and no --model"
                                : "--model with --labeler vlm, and no --classifier");
    if (fairface && devices)
        return lk_fail(LK_E_USAGE, "--devices: goes without --labeler fairface, whose classifier runs on the cpu; "
                                   "--threads gives it cores");
    if (devices && strstr(devices, "cpu") && strspn(devices, "cpu,") != strlen(devices))
        return lk_fail(LK_E_USAGE, "--devices: expected one kind of device for all labels, got \"%s\"", devices);
    return cli_output_free(a);
}

/* What is not labelled yet, by a process of several. */
static enum lk_code label_share(const struct cli_arguments *a, const struct cli_share *share) {
    struct cli_labeller *l = NULL;
    struct lk_t2i_images images;
    bool open;
    lk_t2i_images_init(&images);
    enum lk_code rc = cli_t2i_log(a, &images);
    if (!rc) rc = open_labeller(&l, a, share);
    if (!rc) l->images = &images;
    size_t left = 0;
    for (size_t i = 0; i < images.logged.n && !rc; i++) {
        rc = is_open(l, i, &left, &open);
        share->progress->total += open;
    }
    cli_signals_install();
    if (!rc) rc = label_all(l);
    cli_labeller_close(l);
    lk_t2i_images_free(&images);
    return rc;
}

static enum lk_code label_shares(const struct cli_arguments *a, const struct lk_t2i_images *images) {
    struct cli_shared shared = {
        .what = "t2i label", .does = "label", .ending = ".partial", .key = "path", .work = label_share};
    int32_t number;
    enum lk_code rc = LK_OK;
    for (size_t i = 0; i < images->logged.n && !rc; i++)
        rc = lk_names_number(&shared.items, images->logged.list[i], strlen(images->logged.list[i]), &number);
    if (!rc) rc = cli_shares(a, &shared);
    lk_names_free(&shared.items);
    return rc;
}

enum lk_code cli_t2i_label(const struct cli_arguments *given) {
    struct cli_arguments a = *given;
    struct cli_labeller *l = NULL;
    struct lk_t2i_images images;
    struct lk_text table = {0};
    LK_TRY(check_arguments(&a));
    lk_t2i_images_init(&images);
    enum lk_code rc = cli_t2i_log(&a, &images);
    if (!rc && a.study.devices) {
        rc = label_shares(&a, &images);
        if (strncmp(a.study.devices, "cpu", 3) != 0) a.job.run.device = "cuda"; /* the kind that labels are of */
    }
    if (!rc) rc = cli_labeller_open(&l, &a);
    if (!rc) cli_signals_install();
    if (!rc) rc = cli_labeller_label(l, &images, &table);
    if (!rc) rc = cli_labeller_write(l, &table);
    if (rc == LK_E_INTERRUPTED) lk_fail(rc, "stopped by %s; the same command goes on from here", cli_signals_name());
    cli_labeller_close(l);
    lk_text_free(&table);
    lk_t2i_images_free(&images);
    return rc;
}
