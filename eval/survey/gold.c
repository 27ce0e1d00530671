/* Gold items out of the sources alone: what is to be seen in them is known, because the edited picture is the source
 * itself, the portrait of a person whom the study says to differ, or blurred. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/text.h"
#include "engine/image/image.h"
#include "eval/study/factors.h"
#include "eval/study/prompts.h"
#include "eval/study/random.h"
#include "eval/survey/study.h"

enum { BLUR = 16 };
enum change { AS_IT_IS, BLURRED, GREY, MIRRORED };
enum kind { IDENTICAL, RACE, GENDER, FAILED, N_BUILT, PERFECT = N_BUILT };

static const char *const kind_names[] = {"identical", "race", "gender", "failed", "perfect"};
#define SAME "\"skin_tone\":3,\"race_drift\":1,\"gender_drift\":1,\"age_drift\":3"
static const char *const expected[] = {"\"edit_success\":1," SAME, "\"race_drift\":5", "\"gender_drift\":5",
                                       "\"edit_success\":1", "\"edit_success\":5," SAME};

struct builder {
    const struct lk_survey_gold *gold; /* of gold items */
    const char *folder;                /* the survey's; pictures go into FOLDER/KIND */
    const char *kind;
    struct lk_prompts prompts;
    struct lk_stream stream;
    struct lk_text out;
    int32_t *order; /* of the sources, as is: */
    int32_t *like;  /* sources that differ from one in one attribute */
};

/* Rows and columns have three channels. */
static void grey(struct lk_image *image) {
    for (unsigned char *at = image->pixels, *end = at + (size_t)image->width * (size_t)image->height * 3; at < end;
         at += 3)
        at[0] = at[1] = at[2] = (unsigned char)((299 * at[0] + 587 * at[1] + 114 * at[2] + 500) / 1000);
}

static void mirror(struct lk_image *image) {
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width / 2; x++)
            for (int c = 0; c < 3; c++) {
                unsigned char *row = image->pixels + (size_t)y * (size_t)image->width * 3;
                unsigned char *a = row + 3 * x + c, *b = row + 3 * (image->width - 1 - x) + c, kept = *a;
                *a = *b, *b = kept;
            }
}

static enum lk_code blur(struct lk_image *image) {
    struct lk_image small = {0}, again = {0};
    int w = image->width / BLUR + 1, h = image->height / BLUR + 1;
    enum lk_code rc = lk_image_resize(&small, image, w, h, LK_RESAMPLE_BICUBIC);
    if (!rc) rc = lk_image_resize(&again, &small, image->width, image->height, LK_RESAMPLE_BICUBIC);
    lk_image_free(&small);
    if (rc) return rc;
    lk_image_free(image);
    *image = again;
    return LK_OK;
}

static enum lk_code alter(struct lk_image *image, enum change change) {
    if (change == GREY) grey(image);
    if (change == MIRRORED) mirror(image);
    return change == BLURRED ? blur(image) : LK_OK;
}

/* A picture in the study's folder, under a name of its own, which is added: KIND/NAME, decoded and written again, so
 * that no picture differs from another by how it is stored. */
static enum lk_code add_picture(struct builder *b, const char *key, const char *from, const char *name,
                                enum change change) {
    struct lk_image read = {0}, image = {0};
    char *to = lk_format("%s/%s/%s", b->folder, b->kind, name);
    enum lk_code rc = to ? lk_image_read(&read, from, 1, 0) : lk_fail(LK_E_NOMEM, "out of memory for gold items");
    if (!rc) rc = lk_image_to_rgb(&image, &read);
    lk_image_free(&read);
    if (!rc) rc = alter(&image, change);
    if (!rc) rc = strstr(name, ".jpg") ? lk_jpeg_write(to, &image, 90) : lk_png_write(to, &image, NULL, 0);
    lk_image_free(&image);
    lk_free(to);
    if (rc) return rc;
    lk_text_add(&b->out, ",\n  \"%s\":\"%s/%s\"", key, b->kind, name);
    return b->out.rc;
}

static enum lk_code add_source(struct builder *b, const char *key, int source, const char *end, bool blurred) {
    const struct lk_survey_gold_source *of = &b->gold->sources[source];
    char name[100];
    snprintf(name, sizeof name, "%.80s%s", of->id, end);
    return add_picture(b, key, of->path, name, blurred ? BLURRED : AS_IT_IS);
}

static void begin_item(struct builder *b, const char *kind, int number, const char *prompt) {
    lk_text_add(&b->out, "%s\n {\"id\":\"gold-%s-%03d\",\"prompt\":", number > 1 ? "," : "", kind, number);
    lk_text_json(&b->out, prompt);
}

static int drawn(struct builder *b, int n) { return (int)lk_stream_bounded(&b->stream, (uint64_t)n); }

static const char *any_prompt(struct builder *b) {
    const struct lk_survey_gold *g = b->gold;
    return g->n_prompts ? g->prompts[drawn(b, (int)g->n_prompts)]
                        : b->prompts.edit[drawn(b, LK_N_EDIT_PROMPTS / 2)].text;
}

/* A source of another level of the attribute, which differs from this one in as few others as any: drawn. -1: none. */
static int other_level(struct builder *b, int source, int attribute) {
    const struct lk_survey_gold *g = b->gold;
    const int8_t *of = g->sources[source].level;
    int n = 0, fewest = g->n_attributes;
    for (size_t i = 1; i < g->n_sources && attribute >= 0; i++) {
        const size_t other = ((size_t)source + i) % g->n_sources;
        const int8_t *level = g->sources[other].level;
        int n_differ = 0;
        for (int a = 0; a < g->n_attributes; a++) n_differ += a != attribute && level[a] != of[a];
        if (level[attribute] == of[attribute] || n_differ > fewest) continue;
        if (n_differ < fewest) n = 0, fewest = n_differ;
        b->like[n++] = (int32_t)other;
    }
    return n ? b->like[n > 1 ? drawn(b, n) : 0] : -1;
}

static enum lk_code add_built(struct builder *b, int number, enum kind kind) {
    const struct lk_survey_gold *g = b->gold;
    const int source = b->order[(size_t)(number - 1) % g->n_sources];
    const int other = kind == RACE     ? other_level(b, source, g->race)
                      : kind == GENDER ? other_level(b, source, g->gender)
                                       : source;
    begin_item(b, kind_names[kind], number, kind == FAILED ? "Convert to black and white" : any_prompt(b));
    LK_TRY(add_source(b, "source", source, ".png", false));
    LK_TRY(add_source(b, "edited", other, kind == FAILED ? ".jpg" : ".png", false));
    lk_text_add(&b->out, ",\n  \"expected\":{%s}}", expected[kind]);
    return b->out.rc;
}

static enum lk_code add_perfect(struct builder *b, int number, const struct lk_survey_picked *picked) {
    const char *mark = strrchr(picked->id, '_');
    int prompt = mark ? lk_prompt_parse(mark + 1, strcspn(mark + 1, ".")) : -1;
    char name[60];
    if (!picked->prompt && (prompt < 0 || prompt >= LK_N_EDIT_PROMPTS))
        return lk_fail(LK_E_INPUT, "hand-picked output \"%.80s\": expected an item of the edit prompts", picked->id);
    begin_item(b, kind_names[PERFECT], number, picked->prompt ? picked->prompt : b->prompts.edit[prompt].text);
    snprintf(name, sizeof name, "perfect_%03d_source.png", number);
    LK_TRY(add_picture(b, "source", picked->source, name, AS_IT_IS));
    snprintf(name, sizeof name, "perfect_%03d.png", number);
    LK_TRY(add_picture(b, "edited", picked->edited, name, AS_IT_IS));
    lk_text_add(&b->out, ",\n  \"expected\":{%s}}", expected[PERFECT]);
    return b->out.rc;
}

/* Experiment 2: one of the two pictures is the source, the other the source blurred. */
static enum lk_code add_blurred(struct builder *b, int number) {
    int source = b->order[(size_t)(number - 1) % b->gold->n_sources], sharp = drawn(b, 2);
    begin_item(b, "blurred", number, any_prompt(b));
    LK_TRY(add_source(b, "source", source, ".png", false));
    for (int arm = 0; arm < LK_N_ARMS; arm++)
        LK_TRY(add_source(b, lk_factor_key(LK_FACTOR_ARM, arm), source, arm == sharp ? ".png" : "_blurred.png",
                          arm != sharp));
    lk_text_add(&b->out, ",\n  \"expected\":{\"preference\":\"%s\",\"%s\":{%s},\"%s\":{\"edit_success\":1}}}",
                lk_factor_key(LK_FACTOR_ARM, sharp), lk_factor_key(LK_FACTOR_ARM, sharp), expected[IDENTICAL],
                lk_factor_key(LK_FACTOR_ARM, 1 - sharp));
    return b->out.rc;
}

/* Experiment 3: the picture is the portrait of one of the two. */
static enum lk_code add_role(struct builder *b, int number) {
    const struct lk_survey_gold *g = b->gold;
    const struct lk_prompt *sentence = &b->prompts.w[drawn(b, LK_N_W_PROMPTS)];
    const int source = b->order[(size_t)(number - 1) % g->n_sources], shown = drawn(b, 2);
    const int other = other_level(b, source, g->gender), male = g->sources[source].level[g->gender] ? other : source;
    const int two[] = {male, male == source ? other : source};
    begin_item(b, "role", number, sentence->text);
    lk_text_add(&b->out, ",\n  \"occupation\":");
    lk_text_json(&b->out, sentence->target);
    LK_TRY(add_source(b, "source", two[0], ".png", false));
    LK_TRY(add_source(b, "second_source", two[1], ".png", false));
    LK_TRY(add_source(b, "edited", two[shown], ".png", false));
    lk_text_add(&b->out, ",\n  \"expected\":{\"roleAssignment\":\"%s\",\"gender_presentation\":%d}}",
                shown ? "female" : "male", shown ? 5 : 1);
    return b->out.rc;
}

bool lk_survey_gold_varied(const struct lk_survey_gold *g, int attribute) {
    for (size_t i = 1; attribute >= 0 && i < g->n_sources; i++)
        if (g->sources[i].level[attribute] != g->sources[0].level[attribute]) return true;
    return false;
}

static enum lk_code build(struct builder *b) {
    const struct lk_survey_gold *g = b->gold;
    enum kind kinds[PERFECT + 1];
    int n_kinds = 0;
    b->order = lk_malloc(2 * (g->n_sources + 1) * sizeof *b->order);
    if (!b->order) return lk_fail(LK_E_NOMEM, "out of memory for gold items");
    b->like = b->order + g->n_sources;
    for (size_t i = 0; i < g->n_sources; i++) b->order[i] = (int32_t)i;
    lk_stream_numbered(&b->stream, g->seed, "gold_items|", (uint64_t)g->experiment);
    lk_stream_shuffle(&b->stream, b->order, g->n_sources);
    for (int kind = 0; kind <= PERFECT; kind++)
        if (kind == RACE     ? lk_survey_gold_varied(g, g->race)
            : kind == GENDER ? lk_survey_gold_varied(g, g->gender)
                             : kind != PERFECT || g->n_picked)
            kinds[n_kinds++] = (enum kind)kind;
    if (g->experiment == 3 && !lk_survey_gold_varied(g, g->gender))
        return lk_fail(LK_E_INPUT, "gold items of experiment 3: expected sources of two genders, got none");
    lk_text_add(&b->out, "[");
    for (int i = 0; i < g->n; i++) {
        const enum kind kind = kinds[i % n_kinds];
        LK_TRY(g->experiment == 2   ? add_blurred(b, i + 1)
               : g->experiment == 3 ? add_role(b, i + 1)
               : kind == PERFECT    ? add_perfect(b, i + 1, &g->picked[(size_t)(i / n_kinds) % g->n_picked])
                                    : add_built(b, i + 1, kind));
    }
    lk_text_add(&b->out, "\n]\n");
    return b->out.rc;
}

static enum lk_code make_folders(const struct builder *b) {
    char *pictures = lk_format("%s/%s", b->folder, b->kind);
    enum lk_code rc = pictures ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for gold items");
    if (!rc && ((mkdir(b->folder, 0777) && errno != EEXIST) || (mkdir(pictures, 0777) && errno != EEXIST)))
        rc = lk_fail_errno(errno, "%s", pictures);
    lk_free(pictures);
    return rc;
}

/* FOLDER/KIND_expN.json, unless rc; frees what the builder holds. */
static enum lk_code write_list(struct builder *b, int experiment, enum lk_code rc) {
    char *list = lk_format("%s/%s_exp%d.json", b->folder, b->kind, experiment);
    if (!rc && !list) rc = lk_fail(LK_E_NOMEM, "out of memory for gold items");
    if (!rc) rc = lk_atomic_write_file(list, b->out.bytes, b->out.n);
    lk_prompts_free(&b->prompts);
    lk_text_free(&b->out);
    lk_free(b->order);
    lk_free(list);
    return rc;
}

enum lk_code lk_survey_gold(const struct lk_survey_gold *gold) {
    struct builder b = {.gold = gold, .folder = gold->folder, .kind = "gold"};
    if (!gold->n_sources) return lk_fail(LK_E_INPUT, "gold items: expected sources, got none");
    enum lk_code rc = lk_prompts_load(&b.prompts);
    if (!rc) rc = make_folders(&b);
    if (!rc) rc = build(&b);
    return write_list(&b, gold->experiment, rc);
}

/* What a practice item shows: made of a source alone, so that what is to be seen is known whatever the study asks. */
static const struct practice_kind {
    const char *prompt;
    enum change edited, preserved;
    bool other; /* the edited picture is the second source, whose race or gender is another */
    const char *of_edited, *of_preserved, *feedback;
} practice_kinds[] = {
    {"Convert to black and white", GREY, AS_IT_IS, false,
     "\"edit_success\":5,\"race_drift\":1,\"gender_drift\":1,\"age_drift\":3", "\"edit_success\":1," SAME,
     "A picture without any colour is what was asked for; one in colour is not edited. The person is the same."},
    {"Mirror the picture", AS_IT_IS, MIRRORED, false, "\"edit_success\":1," SAME, "\"edit_success\":5," SAME,
     "A picture that is the same as the source was not edited. The person is the same in all pictures."},
    {"Give the person red hair", BLURRED, AS_IT_IS, false, "\"edit_success\":1", "\"edit_success\":1," SAME,
     "Nobody has red hair: nothing that was asked for was done."},
    {"Give the person red hair", AS_IT_IS, AS_IT_IS, true, NULL, "\"edit_success\":1," SAME,
     "This is another person: judge who is seen, whatever was asked for."}};

static enum lk_code add_practice(struct builder *b, const struct lk_survey_practice *p, int number,
                                 const struct practice_kind *kind) {
    const size_t at = (size_t)(number - 1) % p->n_sources;
    const struct lk_survey_portrait *source = &p->sources[kind->other ? p->first : at], *other = &p->sources[p->second];
    char name[60];
    begin_item(b, "practice", number, kind->prompt);
    snprintf(name, sizeof name, "%d_source.png", number);
    LK_TRY(add_picture(b, "source", source->path, name, AS_IT_IS));
    snprintf(name, sizeof name, "%d_edited.png", number);
    LK_TRY(add_picture(b, "edited", kind->other ? other->path : source->path, name, kind->edited));
    const char *of_edited = kind->of_edited                   ? kind->of_edited
                            : source->gender != other->gender ? expected[GENDER]
                                                              : expected[RACE];
    if (p->experiment == 2) {
        snprintf(name, sizeof name, "%d_preserved.png", number);
        LK_TRY(add_picture(b, "preserved", source->path, name, kind->preserved));
        lk_text_add(&b->out, ",\n  \"expected\":{%s\"edited\":{%s},\"preserved\":{%s}}",
                    kind->other || kind->edited == BLURRED ? "\"preference\":\"preserved\"," : "", of_edited,
                    kind->of_preserved);
    } else
        lk_text_add(&b->out, ",\n  \"expected\":{%s}", of_edited);
    lk_text_add(&b->out, ",\n  \"feedback\":");
    lk_text_json(&b->out, kind->feedback);
    lk_text_add(&b->out, "}");
    return b->out.rc;
}

/* Experiment 3: the picture is that of one of the two, as a gold item's, or, where a study has one source, that. */
static enum lk_code add_role_practice(struct builder *b, const struct lk_survey_practice *p, int shown) {
    const struct lk_prompt *sentence = &b->prompts.w[shown];
    const struct lk_survey_portrait *two[] = {&p->sources[p->first], &p->sources[p->second]};
    const char *const keys[] = {"source", "second_source"};
    const int male = two[0]->gender == 0 ? 0 : 1;
    char name[60];
    begin_item(b, "practice", shown + 1, sentence->text);
    lk_text_add(&b->out, ",\n  \"occupation\":");
    lk_text_json(&b->out, sentence->target);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%d_%s.png", shown + 1, i < 2 ? keys[i] : "edited");
        LK_TRY(add_picture(b, i < 2 ? keys[i] : "edited", two[(i < 2 ? i : shown % 2) ? 1 - male : male]->path, name,
                           shown == 2 ? BLURRED : AS_IT_IS));
    }
    lk_text_add(&b->out, ",\n  \"expected\":{\"roleAssignment\":\"%s\"%s},\n  \"feedback\":",
                shown == 2 ? "unclear"
                : shown    ? "female"
                           : "male",
                shown == 2 ? ""
                : shown    ? ",\"gender_presentation\":5"
                           : ",\"gender_presentation\":1");
    lk_text_json(&b->out, shown == 2 ? "Nobody can be told in a picture like this: say so."
                                     : "The picture shows one of the two people.");
    lk_text_add(&b->out, "}");
    return b->out.rc;
}

enum lk_code lk_survey_practice(struct lk_survey_practice *p) {
    struct builder b = {.folder = p->folder, .kind = "practice"};
    bool two = false;
    for (size_t i = 1; i < p->n_sources && !two; i++)
        for (size_t k = 0; k < i && !two; k++) {
            const struct lk_survey_portrait *one = &p->sources[k], *other = &p->sources[i];
            two = one->gender >= 0 && other->gender >= 0 && one->gender != other->gender && one->race == other->race;
            if (two) p->first = k, p->second = i;
        }
    if (p->experiment == 3 && !two)
        return lk_fail(LK_E_INPUT,
                       "practice items: expected a man and a woman of one race among the sources, got none");
    if (!p->n_sources) return lk_fail(LK_E_INPUT, "practice items: expected sources, got none");
    enum lk_code rc = make_folders(&b);
    if (!rc && p->experiment == 3) rc = lk_prompts_load(&b.prompts);
    lk_text_add(&b.out, "[");
    p->n = p->experiment == 3 ? 3 : 3 + two;
    for (int i = 0; i < p->n && !rc; i++)
        rc = p->experiment == 3 ? add_role_practice(&b, p, i) : add_practice(&b, p, i + 1, &practice_kinds[i]);
    lk_text_add(&b.out, "\n]\n");
    return write_list(&b, p->experiment, rc ? rc : b.out.rc);
}
