#include "eval/study/prompts.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/json.h"
#include "engine/base/store.h"
#include "eval/data/data.h"
#include "eval/study/factors.h"
#include "eval/study/packing.h"

static const double minimum_wage = 7.25; /* dollars an hour */

static const struct lk_cost_plan plans[] = {
    {.name = "000",
     .lines = {{"exp1", 38, 1.50, 600, 600}, {"exp2", 25, 2.00, 800, 800}, {"exp3", 6, 1.00, 375, 375}},
     .n_lines = 3,
     .fee_rate = 0.2,
     .bonus = 0.25,
     .bonus_share = 0.6,
     .bonus_percent = 90},
    {.name = "004",
     .lines = {{"exp1", 38, 1.50, 600, 900}, {"exp2", 25, 1.50, 600, 900}, {"exp3", 8, 1.50, 600, 900}},
     .n_lines = 3,
     .fee_rate = 0.2},
    {.name = "001",
     .lines = {{"participants", 300, 4.00, 1200, 1200}},
     .n_lines = 1,
     .bonus = 1.00,
     .bonus_percent = 90,
     .bonus_above = true},
    {.name = "003", .lines = {{"tasks", 30, 3.00, 1500, 1800}}, .n_lines = 1, .fee_rate = 1.0 / 3},
    {.name = "000-packed",
     .lines = {{"exp1", 42, 1.50, 600, 600}, {"exp2", 30, 2.00, 800, 800}, {"exp3", 9, 1.00, 375, 375}},
     .n_lines = 3,
     .fee_rate = 0.2,
     .bonus = 0.25,
     .bonus_share = 0.6,
     .bonus_percent = 90},
    {.name = "pilot", .lines = {{"exp1", 20, 1.50, 600, 600}}, .n_lines = 1},
};

const struct lk_cost_plan *lk_cost_plan(const char *name) {
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (!strcmp(plans[i].name, name)) return &plans[i];
    return NULL;
}

void lk_cost(const struct lk_cost_plan *plan, struct lk_study_cost *out) {
    *out = (struct lk_study_cost){0};
    for (int i = 0; i < plan->n_lines; i++) {
        const struct lk_cost_line *line = &plan->lines[i];
        out->line_subtotal[i] = (double)line->n * line->pay;
        out->subtotal += out->line_subtotal[i];
        out->n += line->n;
        out->hourly_max[i] = line->pay * 3600 / line->seconds_min;
        out->hourly_min[i] = line->pay * 3600 / line->seconds_max;
        out->floor[i] = minimum_wage * line->seconds_max / 3600;
        out->below_floor[i] = line->pay < out->floor[i];
    }
    out->bonus = plan->bonus * (double)out->n * plan->bonus_share;
    const double fee = plan->fee_rate * (out->subtotal + (plan->fee_on_bonus ? out->bonus : 0));
    out->fee = floor(fee * 100 + 0.5) / 100; /* whole cents, so that printed sums add up */
    out->total = out->subtotal + out->fee;
    out->total_with_bonus = out->total + out->bonus;
}

static const char ids[LK_N_EDIT_PROMPTS + LK_N_W_PROMPTS][5] = {
    "O-01", "O-02", "O-03", "O-04", "O-05", "O-06", "O-07", "O-08", "O-09", "O-10", "V-01", "V-02", "V-03", "V-04",
    "V-05", "V-06", "V-07", "V-08", "V-09", "V-10", "W-01", "W-02", "W-03", "W-04", "W-05", "W-06", "W-07", "W-08",
    "W-09", "W-10", "W-11", "W-12", "W-13", "W-14", "W-15", "W-16", "W-17", "W-18", "W-19", "W-20", "W-21", "W-22",
    "W-23", "W-24", "W-25", "W-26", "W-27", "W-28", "W-29", "W-30", "W-31", "W-32", "W-33", "W-34", "W-35", "W-36",
    "W-37", "W-38", "W-39", "W-40", "W-41", "W-42", "W-43", "W-44", "W-45", "W-46", "W-47", "W-48", "W-49", "W-50"};

const char *lk_prompt_id(int prompt) { return ids[prompt]; }

int lk_prompt_category(int prompt) { return prompt >= 0 && prompt < LK_N_EDIT_PROMPTS ? prompt / 10 : -1; }

/* The number that n digits at text write; -1 when they are no digits. */
static int two_digits(const char *text) {
    if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9') return -1;
    return (text[0] - '0') * 10 + text[1] - '0';
}

int lk_prompt_parse(const char *text, size_t n) {
    char letter;
    int number;
    if (n == 4 && text[1] == '-') {
        letter = (char)(text[0] & ~0x20);
        number = two_digits(text + 2);
    } else if (n == 8 && (text[0] | 0x20) == 'c' && (text[1] | 0x20) == 'a' && (text[2] | 0x20) == 't' &&
               text[4] == '_' && text[5] == '0') {
        char legacy = (char)(text[3] & ~0x20);
        letter = legacy == 'B' ? 'O' : legacy == 'D' ? 'V' : 0;
        number = two_digits(text + 6);
    } else {
        return -1;
    }
    if (letter == 'W') return number >= 1 && number <= LK_N_W_PROMPTS ? LK_N_EDIT_PROMPTS + number - 1 : -1;
    if ((letter != 'O' && letter != 'V') || number < 1 || number > 10) return -1;
    return number - 1 + (letter == 'V' ? 10 : 0);
}

struct reader {
    struct lk_json j;
    struct lk_store *texts;
};

static bool read_text(struct reader *r, const char **out) {
    const char *text;
    *out = NULL;
    if (lk_json_peek(&r->j) == 'n') return lk_json_skip(&r->j);
    if (!lk_json_string(&r->j, &text)) return false;
    *out = lk_store_copy(r->texts, text, strlen(text));
    return *out || lk_json_fail(&r->j, LK_E_NOMEM, "out of memory for the prompts");
}

static bool read_level(struct reader *r, enum lk_factor factor, int *out) {
    const char *text;
    if (!lk_json_string(&r->j, &text)) return false;
    *out = lk_factor_parse(factor, text, strlen(text));
    return *out >= 0 || lk_json_fail(&r->j, LK_E_JSON, "\"%.40s\" is no %s", text, lk_factor_name(factor));
}

static bool count_elements(struct lk_json *j, int *out) {
    *out = 0;
    if (!lk_json_enter(j, '[')) return false;
    while (lk_json_next(j))
        if (lk_json_skip(j)) ++*out;
    return !j->rc;
}

static bool read_field(struct reader *r, const char *key, struct lk_prompt *prompt) {
    const struct {
        const char *key, **to;
    } texts[] = {{"id", &prompt->id},
                 {"text", &prompt->text},
                 {"target", &prompt->target},
                 {"subcategory", &prompt->subcategory_printed},
                 {"subcategory_by_content", &prompt->subcategory_content},
                 {"legacy_id", &prompt->legacy_id},
                 {"nickname_in_seed", &prompt->nickname},
                 {"other_occupation", &prompt->other_occupation}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(key, texts[i].key)) return read_text(r, texts[i].to);
    if (!strcmp(key, "category")) return read_level(r, LK_FACTOR_CATEGORY, &prompt->category);
    if (!strcmp(key, "stereotype_gender")) return read_level(r, LK_FACTOR_GENDER, &prompt->stereotype_gender);
    if (!strcmp(key, "gendered_words")) return count_elements(&r->j, &prompt->n_gendered_words);
    return lk_json_skip(&r->j);
}

static bool read_prompts(struct reader *r, struct lk_prompt *prompts, int n, int first_id) {
    int i = 0;
    if (!lk_json_enter(&r->j, '[')) return false;
    while (lk_json_next(&r->j)) {
        if (i == n) return lk_json_fail(&r->j, LK_E_JSON, "expected %d prompts, got more", n);
        struct lk_prompt *prompt = &prompts[i];
        *prompt = (struct lk_prompt){.category = -1, .stereotype_gender = -1};
        if (!lk_json_enter(&r->j, '{')) return false;
        while (lk_json_next(&r->j)) {
            const char *key;
            if (!lk_json_key(&r->j, &key) || !read_field(r, key, prompt)) return false;
        }
        if (!prompt->id || strcmp(prompt->id, ids[first_id + i]) || !prompt->text || !prompt->target)
            return lk_json_fail(&r->j, LK_E_JSON, "expected prompt %s with text and target", ids[first_id + i]);
        i++;
    }
    return i == n || lk_json_fail(&r->j, LK_E_JSON, "expected %d prompts, got %d", n, i);
}

static enum lk_code read_file(struct lk_store *texts, const char *name, struct lk_prompt *prompts, int n,
                              int first_id) {
    struct lk_data_file file;
    if (!lk_data_find(name, &file)) return lk_fail(LK_E_INTERNAL, "%s.json is not part of this program", name);
    struct reader r = {.texts = texts};
    bool found = false;
    lk_json_init(&r.j, file.text, file.n_bytes, name);
    if (lk_json_enter(&r.j, '{'))
        while (lk_json_next(&r.j)) {
            const char *key;
            if (!lk_json_key(&r.j, &key)) break;
            if (strcmp(key, "prompts")) {
                lk_json_skip(&r.j);
                continue;
            }
            found = read_prompts(&r, prompts, n, first_id);
        }
    lk_json_end(&r.j);
    if (!found) lk_json_fail(&r.j, LK_E_JSON, "expected a field \"prompts\"");
    return lk_json_finish(&r.j);
}

enum lk_code lk_prompts_load(struct lk_prompts *out) {
    memset(out, 0, sizeof *out);
    struct lk_store *texts = lk_calloc(1, sizeof *texts);
    if (!texts) return lk_fail(LK_E_NOMEM, "out of memory for the prompts");
    out->storage = texts;
    enum lk_code rc = read_file(texts, "prompts_exp1", out->edit, LK_N_EDIT_PROMPTS, 0);
    if (!rc) rc = read_file(texts, "prompts_winobias", out->w, LK_N_W_PROMPTS, LK_N_EDIT_PROMPTS);
    if (rc) lk_prompts_free(out);
    return rc;
}

void lk_prompts_free(struct lk_prompts *prompts) {
    if (prompts->storage) lk_store_free(prompts->storage);
    lk_free(prompts->storage);
    memset(prompts, 0, sizeof *prompts);
}
