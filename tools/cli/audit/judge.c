#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/log.h"
#include "eval/judge/pixel.h"
#include "eval/scores/dataset.h"
#include "tools/cli/audit/judge.h"
#include "tools/cli/audit/pairs.h"

static bool add_angles(cJSON *line, const struct lk_pixel_judgement *j) {
    if (j->undefined)
        return cJSON_AddNullToObject(line, "ita_source") && cJSON_AddNullToObject(line, "ita_edited") &&
               cJSON_AddStringToObject(line, "undefined", j->undefined);
    return cJSON_AddNumberToObject(line, "ita_source", j->ita_source) &&
           cJSON_AddNumberToObject(line, "ita_edited", j->ita_edited);
}

/* What was found in a pair's pictures. */
struct faces {
    bool looked, found; /* found: in the source, and the region is its */
    struct lk_face source;
    size_t n_edited;
};

static bool add_faces(cJSON *line, const struct faces *faces) {
    static const char *const keys[] = {"left", "top", "width", "height", "score"};
    const struct lk_face *f = &faces->source;
    const double values[] = {f->x, f->y, f->width, f->height, f->score};
    if (!faces->looked) return true;
    cJSON *face = faces->found ? cJSON_AddObjectToObject(line, "face") : cJSON_AddNullToObject(line, "face");
    for (int i = 0; i < 5 && face && faces->found; i++)
        if (!cJSON_AddNumberToObject(face, keys[i], values[i])) return false;
    return face && cJSON_AddNumberToObject(line, "faces_edited", (double)faces->n_edited);
}

static bool fill(cJSON *line, const struct cli_pair *pair, const struct lk_pixel_judgement *j,
                 const struct faces *faces) {
    char sha256[65];
    if (!cJSON_AddStringToObject(line, "item_id", pair->item_id) || !cJSON_AddStringToObject(line, "judge", "pixel"))
        return false;
    if (!lk_digest_file(LK_DIGEST_SHA256, pair->edited, sha256) &&
        !cJSON_AddStringToObject(line, "edited_sha256", sha256))
        return false;
    cJSON *scores = cJSON_AddObjectToObject(line, "scores");
    for (int a = 0; a < LK_N_AXES && scores; a++)
        if (j->score[a] && !cJSON_AddNumberToObject(scores, lk_factor_key(LK_FACTOR_AXIS, a), j->score[a]))
            return false;
    return scores && add_angles(line, j) && cJSON_AddNumberToObject(line, "skin_source", j->skin_source) &&
           cJSON_AddNumberToObject(line, "skin_edited", j->skin_edited) &&
           cJSON_AddNumberToObject(line, "change_inside", j->change_inside) &&
           cJSON_AddNumberToObject(line, "change_outside", j->change_outside) &&
           cJSON_AddNumberToObject(line, "ssim", j->ssim) && add_faces(line, faces);
}

static enum lk_code print_line(const struct cli_pair *pair, const struct lk_pixel_judgement *j,
                               const struct faces *faces) {
    cJSON *line = cJSON_CreateObject();
    char *text = line && fill(line, pair, j, faces) ? cJSON_PrintUnformatted(line) : NULL;
    cJSON_Delete(line);
    if (!text) return lk_fail(LK_E_NOMEM, "judge: out of memory");
    puts(text);
    cJSON_free(text);
    return LK_OK;
}

/* The surest face of a picture, and how many there are. */
static enum lk_code find_faces(const struct lk_yunet *net, const struct lk_image *image, struct lk_face *surest,
                               size_t *n) {
    const struct lk_yunet_search search = {.min_score = 0.6, .max_overlap = 0.3};
    struct lk_face *faces;
    LK_TRY(lk_yunet_detect(net, image, &search, &faces, n));
    if (*n) *surest = faces[0];
    lk_free(faces);
    return LK_OK;
}

static enum lk_code judge_pictures(const struct lk_yunet *net, const struct lk_image *source,
                                   const struct lk_image *edited, struct faces *faces, struct lk_pixel_judgement *out) {
    struct lk_region region;
    struct lk_face other;
    size_t n = 0;
    *faces = (struct faces){.looked = net != NULL};
    if (net) LK_TRY(find_faces(net, source, &faces->source, &n));
    if (net) LK_TRY(find_faces(net, edited, &other, &faces->n_edited));
    faces->found = n && lk_region_of_face(&faces->source, source->width, source->height, &region);
    return lk_pixel_judge(source, edited, faces->found ? &region : NULL, out);
}

/* net NULL: the face is assumed where portraits have it. */
static enum lk_code judge_pair(const struct cli_pair *pair, const struct lk_yunet *net) {
    struct lk_image source = {0}, edited = {0};
    struct lk_pixel_judgement judgement;
    struct faces faces;
    enum lk_code rc = lk_image_read(&source, pair->source, 1, 0);
    if (!rc) rc = lk_image_read(&edited, pair->edited, 1, 0);
    if (!rc && (rc = judge_pictures(net, &source, &edited, &faces, &judgement)))
        lk_fail_prefix(rc, "%s, %s", pair->source, pair->edited);
    lk_image_free(&source);
    lk_image_free(&edited);
    return rc ? rc : print_line(pair, &judgement, &faces);
}

/* report knows an output by its id alone. */
static void warn_of_unknown(const struct cli_pairs *pairs, const char *path) {
    struct lk_item item;
    size_t n = 0, first = 0;
    for (size_t i = 0; i < pairs->n; i++) {
        const char *id = pairs->list[i].asked_as;
        if (pairs->list[i].facts.instruction || !lk_dataset_id_parts(id, strlen(id), &item)) continue;
        if (!n++) first = i;
    }
    if (n)
        lk_log(LK_LOG_WARNING, "%s: %zu ids are no output of the study, so that report will not read their lines: %s%s",
               path, n, pairs->list[first].item_id, n > 1 ? ", ..." : "");
}

/* A pair that cannot be judged, be it that it does not fit into memory, is named, and the others are judged. */
static enum lk_code judge_all(const struct cli_report_arguments *a, const struct lk_yunet *net) {
    const char *path = cli_pairs_name(a);
    struct cli_pairs pairs;
    enum lk_code rc = cli_pairs_of(&pairs, a, true);
    size_t n_bad = 0, n_unfit = 0, n_all = pairs.n + pairs.rejects.n;
    if (!rc) cli_print_rejects(path, &pairs.rejects);
    if (!rc) warn_of_unknown(&pairs, path);
    for (size_t i = 0; i < pairs.n && !rc; i++) {
        enum lk_code judged = judge_pair(&pairs.list[i], net);
        if (judged == LK_E_INTERNAL) rc = judged;
        if (!judged || rc) continue;
        n_unfit += judged == LK_E_NOMEM;
        cli_pair_warn(path, &pairs.list[i]);
        n_bad++;
    }
    n_bad += pairs.rejects.n;
    if (!rc && !n_all)
        rc = lk_fail(LK_E_INPUT, "%s: expected pictures with their sources, got none", path);
    else if (!rc && n_bad == n_all)
        rc = lk_fail(n_unfit == n_all ? LK_E_NOMEM : LK_E_INPUT, "%s: none of %zu pairs could be judged", path, n_all);
    else if (!rc && n_bad)
        rc = lk_fail(LK_E_PARTIAL, "%s: %zu of %zu pairs could not be judged; the others were", path, n_bad, n_all);
    cli_pairs_free(&pairs);
    return rc;
}

enum lk_code cli_judge_pixels(const struct cli_arguments *a) {
    bool two = a->n_images == 2;
    if (cli_pairs_name(&a->report) ? a->n_images != 0 : !two)
        return lk_fail(
            LK_E_USAGE,
            "judge: expected --pairs FILE.jsonl, --from RUN, or -r twice: the source and the edited picture");
    struct lk_yunet *net = NULL;
    if (a->report.faces) LK_TRY(lk_yunet_open(&net, a->report.faces));
    const char *slash = two ? strrchr(a->images[1], '/') : NULL;
    const struct cli_pair pair = {
        .item_id = slash ? slash + 1 : a->images[1], .source = a->images[0], .edited = a->images[1]};
    enum lk_code rc = two ? judge_pair(&pair, net) : judge_all(&a->report, net);
    lk_yunet_close(net);
    return rc;
}
