#include "tools/cli/audit/audit.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/log.h"
#include "eval/design/study.h"
#include "eval/document/files.h"
#include "eval/intake/audit.h"
#include "eval/judge/pixel.h"
#include "eval/judge/prompt.h"
#include "eval/scores/dataset.h"
#include "tools/cli/cli.h"

/* The judges that a study names, each asked about the pictures of its run; their answers lie in RUN/judges. */

static const char *const slots[] = {"primary", "secondary"};
enum { N_SLOTS = sizeof slots / sizeof *slots };

static char *answers_of(const char *run, int slot) { return lk_format("%s/judges/%s.jsonl", run, slots[slot]); }

char *cli_judge_answers_found(const char *run, int slot) {
    struct stat st;
    char *path = answers_of(run, slot);
    if (path && !stat(path, &st) && S_ISREG(st.st_mode)) return path;
    lk_free(path);
    return NULL;
}

static enum lk_code ask(const struct cli_arguments *a, const struct lk_study_judge *judge, int slot) {
    struct cli_arguments one = *a;
    const char *run = a->report.runs.values[0];
    char *path = answers_of(run, slot), *folder = lk_format("%s/judges", run);
    enum lk_code rc = path && folder ? LK_OK : lk_fail(LK_E_NOMEM, "judge run: out of memory");
    one.model = judge->model;
    one.review.server = judge->openai_url;
    one.review.mode = judge->mode;
    one.review.slot = slots[slot];
    if (!one.output) one.output = path;
    if (!rc && !a->output) rc = lk_document_folder(folder);
    if (!rc) lk_log(LK_LOG_INFO, "the %s judge, %s: %s", slots[slot], judge->model, one.output);
    if (!rc) rc = cli_judge_run(&one);
    lk_free(folder);
    lk_free(path);
    return rc;
}

enum lk_code cli_judge_study(const struct cli_arguments *a) {
    const char *run = a->report.runs.values[0];
    struct lk_study *study = NULL;
    struct lk_error partly = {0};
    int n_asked = 0;
    if (a->output && !a->review.slot)
        return lk_fail(LK_E_USAGE, "--output: goes with --slot; without it the answers lie in %s/judges", run);
    enum lk_code rc = cli_run_study(&study, run, a->report.study_file);
    for (int slot = 0; slot < N_SLOTS && !rc; slot++) {
        const struct lk_study_judge *judge = lk_study_judge(study, slot);
        if (!judge || (a->review.slot && strcmp(a->review.slot, slots[slot]))) continue;
        n_asked++;
        rc = ask(a, judge, slot);
        if (rc != LK_E_PARTIAL) continue;
        lk_error_get(&partly, rc); /* some of its answers are missing: the other judge is asked all the same */
        rc = LK_OK;
    }
    if (!rc && !n_asked)
        rc = lk_fail(LK_E_USAGE,
                     "judge run: %s names no %s%sjudge: give --slot, --model and --output, or the study "
                     "file \"judges\" "
                     "('likeness help study-file')",
                     a->report.study_file ? a->report.study_file : run, a->review.slot ? a->review.slot : "",
                     a->review.slot ? " " : "");
    lk_study_close(study);
    return rc || !partly.code ? rc : lk_error_set(&partly);
}

struct asker {
    struct lk_judge_prompts *prompts;
    const struct cli_pairs *pairs; /* NULL: one item of the command line */
    struct lk_judge_ask ask;
};

static bool add_part(cJSON *content, const struct asker *asker, const struct lk_judge_part *part,
                     const struct cli_pair *pair) {
    cJSON *object = cJSON_CreateObject();
    const char *path = cli_pair_path(asker->pairs, pair, part->image);
    bool ok = object && (part->text ? cJSON_AddStringToObject(object, "text", part->text)
                                    : cJSON_AddStringToObject(object, "image", lk_judge_image_name(part->image)));
    if (ok && path) ok = cJSON_AddStringToObject(object, "path", path) != NULL;
    if (ok && cJSON_AddItemToArray(content, object)) return true;
    cJSON_Delete(object);
    return false;
}

static bool fill_prompt(cJSON *line, const struct asker *asker, const struct cli_pair *pair,
                        const struct lk_judge_message *message) {
    if (!cJSON_AddStringToObject(line, "item_id", pair->item_id) ||
        !cJSON_AddStringToObject(line, "prompt_version", lk_judge_prompt_name(asker->ask.prompt)) ||
        !cJSON_AddStringToObject(line, "prompt_sha256", message->sha256))
        return false;
    if (asker->ask.pairwise &&
        !cJSON_AddStringToObject(line, "order", asker->ask.preserved_first ? "preserved_first" : "edited_first"))
        return false;
    cJSON *content = cJSON_AddArrayToObject(line, "content");
    for (int i = 0; i < message->n_parts && content; i++)
        if (!add_part(content, asker, &message->parts[i], pair)) return false;
    return content != NULL;
}

static enum lk_code print_json(const struct asker *asker, const struct cli_pair *pair) {
    struct lk_judge_message message;
    LK_TRY(cli_pair_message(pair, asker->prompts, &asker->ask, &message));
    cJSON *line = cJSON_CreateObject();
    char *text = line && fill_prompt(line, asker, pair, &message) ? cJSON_PrintUnformatted(line) : NULL;
    cJSON_Delete(line);
    lk_judge_message_free(&message);
    if (!text) return lk_fail(LK_E_NOMEM, "judge prompt: out of memory");
    puts(text);
    cJSON_free(text);
    return LK_OK;
}

/* One line an item; of a comparison one for each order. */
static enum lk_code print_item(struct asker *asker, const struct cli_pair *pair) {
    for (int order = 0; order <= (int)asker->ask.pairwise; order++) {
        asker->ask.preserved_first = order;
        LK_TRY(print_json(asker, pair));
    }
    return LK_OK;
}

static enum lk_code print_text(const struct asker *asker, const char *item_id) {
    struct lk_judge_message message;
    LK_TRY(lk_judge_message(asker->prompts, item_id, &asker->ask, &message));
    puts(message.prompt);
    lk_judge_message_free(&message);
    return LK_OK;
}

/* An item that has no such question is named, and the others are asked. */
static enum lk_code print_file(struct asker *asker, const struct cli_report_arguments *a) {
    const char *path = cli_pairs_name(a);
    struct cli_pairs pairs;
    enum lk_code rc = cli_pairs_of(&pairs, a, false);
    size_t n_bad = pairs.rejects.n, n_all = pairs.n + n_bad;
    if (!rc) cli_print_rejects(path, &pairs.rejects);
    asker->pairs = &pairs;
    for (size_t i = 0; i < pairs.n && !rc; i++) {
        if (asker->ask.pairwise && cli_pair_is_preserved(&pairs.list[i])) continue; /* asked with the baseline's */
        const struct cli_pair *pair = &pairs.list[i];
        rc = !asker->ask.pairwise || cli_pair_path(&pairs, pair, LK_JUDGE_PRESERVED)
                 ? print_item(asker, pair)
                 : lk_fail(LK_E_INPUT, "%s names no picture of its preserved arm to compare with", path);
        if (rc != LK_E_INPUT) continue;
        cli_pair_warn(path, pair);
        n_bad++;
        rc = LK_OK;
    }
    if (!rc && !n_all) rc = lk_fail(LK_E_INPUT, "%s: expected lines with item_id and edited, got none", path);
    if (!rc && n_bad)
        rc = lk_fail(n_bad < n_all ? LK_E_PARTIAL : LK_E_INPUT, "%s: %zu of %zu items have no prompt", path, n_bad,
                     n_all);
    cli_pairs_free(&pairs);
    return rc;
}

enum lk_code cli_judge_prompt(const struct cli_arguments *a) {
    struct asker asker = {.ask = {.prompt = (enum lk_judge_prompt)lk_judge_prompt_parse(a->review.judge_prompt),
                                  .pairwise = a->review.pairwise}};
    const char *item = a->more[0];
    if (!item == !cli_pairs_name(&a->report))
        return lk_fail(LK_E_USAGE,
                       "judge prompt: expected one ITEM, or --pairs FILE.jsonl or --from RUN for a line each");
    LK_TRY(lk_judge_prompts_load(&asker.prompts));
    enum lk_code rc = !item     ? print_file(&asker, &a->report)
                      : a->json ? print_item(&asker, &(struct cli_pair){.item_id = item, .asked_as = item})
                                : print_text(&asker, item);
    lk_judge_prompts_free(asker.prompts);
    return rc;
}

/* What the two sides are when the second is a check of the first. */
static void print_meaning(enum lk_judge_check check) {
    const char *how = check == LK_CHECK_ORDER ? "the edited picture first. Every score should stay"
                      : check == LK_CHECK_ROLES
                          ? "each picture under the other's label, skin tone and age mirrored back. They "
                            "should fit, race and gender stay; edit success and V-03's age have no meaning"
                          : "again, with other seeds. Exact is how stable the judge is: two judges who agree "
                            "as often may differ by chance alone";
    printf("Secondary is the primary judge, asked %s.\n\n", how);
}

/* The report's tables about the two judges, as Markdown or JSON. */
static enum lk_code print_tables(const struct lk_report *report, bool json, enum lk_judge_check check) {
    static const char *const of_two[] = {"t_judge", "judge_drift", "review_decisions"};
    static const char *const of_one[] = {"t_judge", "judge_drift", "t_judge_groups"};
    bool first = true;
    if (check && !json) print_meaning(check);
    for (size_t i = 0; i < 3; i++) {
        const struct lk_table *table = lk_report_table(report, (check ? of_one : of_two)[i]);
        if (!table) continue;
        if (!first) putchar('\n');
        LK_TRY(cli_print_table(table, json));
        first = false;
    }
    return LK_OK;
}

static enum lk_code print_portraits(const struct cli_arguments *a, struct cli_report_input *input,
                                    enum lk_judge_check check) {
    struct lk_report *report = NULL;
    input->options.n_bootstrap = 10; /* no table printed here has a resampled interval */
    enum lk_code rc = lk_report_build(&report, &input->data, &input->options);
    if (!rc) rc = print_tables(report, a->json, check);
    lk_report_free(report);
    return rc;
}

/* Of a study of one's own: tables of its report. */
static enum lk_code print_any(const struct cli_arguments *a, const struct lk_study *study,
                              const struct cli_report_input *input) {
    static const char *const names[] = {"judge_agreement", "judges", "review_decisions"};
    struct lk_audit *audit;
    LK_TRY(lk_audit_open(&audit, NULL));
    enum lk_code rc = cli_report_store(audit, &a->report, study, input);
    for (int i = 0; i < (a->review.file ? 3 : 2) && !rc; i++) {
        struct lk_table *table;
        if ((rc = lk_any_table(audit, names[i], &table))) break;
        if (i) putchar('\n');
        rc = cli_print_table(table, a->json);
        lk_table_free(table);
    }
    lk_audit_close(audit);
    return rc;
}

enum lk_code cli_judge_agreement(const struct cli_arguments *a) {
    struct cli_report_input input = {0};
    struct lk_study *study;
    const enum lk_judge_check check = (enum lk_judge_check)lk_judge_check_parse(a->report.check);
    if (!a->report.scores && !a->report.runs.n && !(a->report.primary && a->report.secondary))
        return lk_fail(LK_E_USAGE, "judge agreement: expected --from, --primary and --secondary, or --scores");
    if (check && !(a->report.primary && a->report.secondary))
        return lk_fail(LK_E_USAGE, "--check: expected --primary, a judge's run, and --secondary, the check of it");
    enum lk_code rc = cli_known_study(&study, &a->report);
    const bool own = study && !lk_study_is_documented(study);
    if (!rc) rc = cli_report_input(&input, &a->report, study);
    if (!rc && check && strcmp(input.options.judges[0], input.options.judges[1]))
        rc = lk_fail(LK_E_INPUT, "--check %s: expected two runs of one judge, got %s and %s", a->report.check,
                     input.options.judges[0], input.options.judges[1]);
    if (!rc && a->review.file) rc = cli_review_read(&input.data, a->review.file);
    if (!rc && check && own && !a->json) print_meaning(check);
    if (!rc) rc = own ? print_any(a, study, &input) : print_portraits(a, &input, check);
    cli_report_input_free(&input);
    lk_study_close(study);
    return rc;
}

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
