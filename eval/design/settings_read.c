/* Reads a study file by the table of settings, strictly: unknown keys, wrong types and values out of range are named.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/json.h"
#include "eval/design/internal.h"
#include "eval/hosted/images.h"

enum { MAX_SET = 32 };

struct reader {
    struct lk_json j;
    struct lk_study *study;
    char field[300]; /* the path of the member that is read */
};

/* A value as it stands in the file. */
struct raw {
    const char *text;
    size_t n;
    char kind;
};

static bool fail(struct reader *r, enum lk_code code, const char *expected, const struct raw *got) {
    if (!r->j.rc)
        r->j.rc = lk_fail(code, "%s: field \"%s\": expected %s, got %.*s%s", r->study->file, r->field, expected,
                          got->n > 60 ? 60 : (int)got->n, got->text, got->n > 60 ? "..." : "");
    return false;
}

static bool out_of_memory(struct reader *r) { return lk_json_fail(&r->j, LK_E_NOMEM, "out of memory for the study"); }

static bool read_raw(struct reader *r, struct raw *out) {
    out->kind = lk_json_peek(&r->j);
    out->text = (const char *)r->j.at;
    if (!lk_json_skip(&r->j)) return false;
    out->n = (size_t)((const char *)r->j.at - out->text);
    return true;
}

/* The member's path: r->field up to `stem`, then the key. */
static void name_field(struct reader *r, size_t stem, const char *key) {
    snprintf(r->field + stem, sizeof r->field - stem, "%s%.100s", stem ? "." : "", key);
}

static bool enter_object(struct reader *r) {
    struct raw got;
    if (lk_json_peek(&r->j) == '{') return lk_json_enter(&r->j, '{');
    return read_raw(r, &got) && fail(r, LK_E_CONFIG_TYPE, "an object", &got);
}

/* Reads a member whose value is all that its reader has; the reader's field is the member's path. */
typedef bool member_fn(struct reader *r, const char *key, void *to);

/* Each member of an object by a reader of its own: what is wrong with one is noted, and the others are read all the
 * same. */
static bool each_member(struct reader *r, member_fn *read, void *to) {
    const size_t stem = strlen(r->field);
    const char *key;
    struct raw raw;
    if (!enter_object(r)) return false;
    while (lk_json_next(&r->j) && lk_json_key(&r->j, &key) && read_raw(r, &raw)) {
        struct reader inner = *r;
        name_field(&inner, stem, key);
        lk_json_init(&inner.j, raw.text, raw.n, r->study->file);
        read(&inner, key, to);
        enum lk_code rc = lk_json_finish(&inner.j);
        if (rc && (rc = lk_study_note(r->study, rc))) r->j.rc = rc;
    }
    return !r->j.rc;
}

static const char *decode(struct reader *r, const struct raw *raw) {
    char *text = lk_store_alloc(&r->study->store, raw->n + 1);
    if (!text) {
        out_of_memory(r);
        return NULL;
    }
    text[lk_json_decode(raw->text, raw->n, text)] = 0;
    return text;
}

/* A number or true or false as written; a string without its quotes. */
static const char *plain(struct reader *r, const struct raw *raw) {
    if (raw->kind == '"') return decode(r, raw);
    const char *text = lk_store_copy(&r->study->store, raw->text, raw->n);
    if (!text) out_of_memory(r);
    return text;
}

static bool is_choice(const char *choices, const char *text) {
    size_t n = strlen(text);
    for (const char *at = choices; n && at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (!strncmp(at, text, n) && (!at[n] || at[n] == '|')) return true;
    return false;
}

static bool read_list(struct reader *r, struct lk_study_list *out) {
    struct raw got;
    size_t capacity = 0;
    if (lk_json_peek(&r->j) != '[') return read_raw(r, &got) && fail(r, LK_E_CONFIG_TYPE, "a list", &got);
    const char **values = NULL;
    bool ok = lk_json_enter(&r->j, '[');
    out->n = 0;
    while (ok && lk_json_next(&r->j)) {
        ok = read_raw(r, &got);
        if (ok && got.kind != '"' && got.kind != '0') ok = fail(r, LK_E_CONFIG_TYPE, "texts or numbers", &got);
        if (ok && lk_grow(&values, &capacity, out->n + 1, sizeof *values)) ok = out_of_memory(r);
        if (ok) ok = (values[out->n++] = plain(r, &got)) != NULL;
    }
    if (ok && !out->n) ok = fail(r, LK_E_CONFIG_VALUE, "at least one value", &(struct raw){"[]", 2, '['});
    if (ok && !(out->values = lk_store_alloc(&r->study->store, out->n * sizeof *values))) ok = out_of_memory(r);
    if (ok) memcpy(out->values, values, out->n * sizeof *values);
    lk_free(values);
    return ok;
}

/* Checks the value and gives it as text; numbers keep their digits. */
static const char *check_value(struct reader *r, const struct setting *s, const struct raw *raw) {
    char expected[200];
    if (s->kind == INT || s->kind == NUMBER) {
        double value;
        int64_t whole;
        const char *text = raw->kind == '0' ? plain(r, raw) : NULL;
        snprintf(expected, sizeof expected, "a %snumber from %g to %.16g", s->kind == INT ? "whole " : "", s->min,
                 s->max);
        if (text && s->kind == INT && !lk_read_int("", text, strlen(text), (int64_t)s->min, (int64_t)s->max, &whole))
            return text;
        if (text && s->kind == NUMBER && !lk_read_number("", text, s->min, s->max, &value)) return text;
        fail(r, raw->kind == '0' ? LK_E_CONFIG_VALUE : LK_E_CONFIG_TYPE, expected, raw);
        return NULL;
    }
    snprintf(expected, sizeof expected, "%.190s", s->choices ? s->choices : "a text");
    if (raw->kind != '"') {
        fail(r, LK_E_CONFIG_TYPE, expected, raw);
        return NULL;
    }
    const char *text = decode(r, raw);
    if (!text) return NULL;
    if ((s->choices && !is_choice(s->choices, text)) || !*text) {
        fail(r, LK_E_CONFIG_VALUE, expected, raw);
        return NULL;
    }
    return text;
}

static void store_value(const struct setting *s, void *base, const char *text) {
    void *to = (char *)base + s->offset;
    if (s->kind == INT)
        lk_read_int("", text, strlen(text), (int64_t)s->min, (int64_t)s->max, to);
    else
        *(const char **)to = text;
}

static const struct setting *find_setting(const struct setting *settings, const char *key) {
    for (; settings->key; settings++)
        if (!strcmp(settings->key, key)) return settings;
    return NULL;
}

static bool unknown(struct reader *r, const struct setting *settings) {
    char known[400] = "";
    for (size_t used = 0; settings && settings->key && used < sizeof known; settings++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", settings->key);
    if (!r->j.rc)
        r->j.rc = lk_fail(LK_E_CONFIG_KEY, "%s: field \"%s\": unknown; expected %s", r->study->file, r->field, known);
    return false;
}

static void set_defaults(const struct setting *settings, void *base) {
    for (; settings->key; settings++)
        if (settings->otherwise && settings->kind != FLAG) store_value(settings, base, settings->otherwise);
}

/* The place of the table itself, which is read when all settings are known; or the name of its file. */
static bool keep_table(struct reader *r, const char *key, const struct raw *raw) {
    struct lk_study *s = r->study;
    const bool sources = !strcmp(key, "sources"), attributes = !strcmp(key, "attributes");
    struct lk_study_span *given = attributes ? &s->attributes_given : sources ? &s->sources_given : &s->prompts_given;
    if (raw->kind == '[') {
        *given = (struct lk_study_span){raw->text, raw->n};
        return true;
    }
    if (attributes) return fail(r, LK_E_CONFIG_TYPE, "a list of attributes", raw);
    if (raw->kind != '"') return fail(r, LK_E_CONFIG_TYPE, "the name of a file, or a list", raw);
    const char *name = decode(r, raw);
    if (name && !*name) return fail(r, LK_E_CONFIG_VALUE, "the name of a file, or a list", raw);
    *(sources ? &s->sources_file : &s->prompts_file) = name;
    return name != NULL;
}

static bool read_member(struct reader *r, const struct setting *settings, const char *key, void *base) {
    const struct setting *s = find_setting(settings, key);
    struct raw raw;
    if (!s) return unknown(r, settings);
    if (lk_json_peek(&r->j) == 'n') return lk_json_skip(&r->j); /* as if it were not there */
    if (s->kind == LIST) return read_list(r, (struct lk_study_list *)((char *)base + s->offset));
    if (!read_raw(r, &raw)) return false;
    if (s->kind == TABLE) return keep_table(r, key, &raw);
    if (s->kind == FLAG) {
        if (raw.kind != 't' && raw.kind != 'f') return fail(r, LK_E_CONFIG_TYPE, "true or false", &raw);
        *(bool *)((char *)base + s->offset) = raw.kind == 't';
        return true;
    }
    const char *text = check_value(r, s, &raw);
    if (text) store_value(s, base, text);
    return text != NULL;
}

/* Noise levels, a shift, a scheduler's config: texts that are numbers, lists or objects in JSON. */
static bool is_schedule(const struct lk_parameter *p) { return p->kind == LK_PARAMETER_TEXT && p->read; }

static bool read_parameter(struct reader *r, const struct lk_parameter *p, struct lk_study_model *out) {
    struct raw raw;
    char flag[400];
    if (!read_raw(r, &raw)) return false;
    const bool reads = !out->hosted.given && p->families & lk_family_bit_of(out->family);
    if (!reads && raw.kind == '0') {
        const char *number = plain(r, &raw);
        if (!number) return false;
        if (lk_parameter_is_idle(p, number)) return true;
    }
    if (!reads || !strcmp(p->key, "prompt")) {
        if (!r->j.rc)
            r->j.rc = lk_fail(LK_E_CONFIG_KEY, "%s: field \"%s\": %s has no such parameter; leave it out",
                              r->study->file, r->field, out->label);
        return false;
    }
    if (!strcmp(p->key, "lora")) return !(r->j.rc = lk_study_read_adapters(r->study, out, r->field, raw.text, raw.n));
    if (!strcmp(p->key, "mask") && raw.kind == '{')
        return !(r->j.rc = lk_study_read_drawn(r->study, out, r->field, raw.text, raw.n));
    const char *text = raw.kind == 't' ? "on" : raw.kind == 'f' ? "off" : plain(r, &raw);
    if (!text) return false;
    bool flags = p->kind == LK_PARAMETER_FLAG, texts = p->kind == LK_PARAMETER_TEXT || p->kind == LK_PARAMETER_FILE ||
                                                       p->kind == LK_PARAMETER_CHOICE || p->kind == LK_PARAMETER_BYTES;
    char kind = flags ? 't' : texts ? '"' : p->kind == LK_PARAMETER_INTS ? '[' : '0';
    if (is_schedule(p) && raw.kind != '"' && strchr("0[{", raw.kind)) /* as JSON has it, or as a text */
        kind = raw.kind;
    if (kind != (raw.kind == 'f' ? 't' : raw.kind))
        return fail(r, LK_E_CONFIG_TYPE,
                    flags         ? "true or false"
                    : kind == '"' ? "a text"
                    : kind == '[' ? "a list of numbers"
                                  : "a number",
                    &raw);
    if (kind == '[') { /* "[10, 20]" is read as "10,20" */
        char *numbers = lk_store_alloc(&r->study->store, raw.n + 1), *to = numbers;
        if (!numbers) return out_of_memory(r);
        for (size_t i = 0; i < raw.n; i++)
            if (!strchr("[] \t\r\n", raw.text[i])) *to++ = raw.text[i];
        text = numbers;
    }
    if (lk_parameter_is_path(p, text) && !(text = lk_study_resolve(r->study, text))) return out_of_memory(r);
    if (!strcmp(p->key, "mask")) { /* one for each source, not known yet */
        if (strchr(text, '{') && !strstr(text, "{source}"))
            return fail(r, LK_E_CONFIG_VALUE, "{source} where a source's id stands", &raw);
        out->mask = text;
        return true;
    }
    snprintf(flag, sizeof flag, "%s: field \"%s\"", r->study->file, r->field);
    if (lk_parameter_parse(p, &out->job, flag, text)) {
        struct lk_error error;
        lk_error_get(&error, LK_E_CONFIG_VALUE);
        r->j.rc = lk_error_set(&error);
        return false;
    }
    return true;
}

/* "set" of a hosted model: names with texts, numbers, true or false. */
static bool read_set(struct reader *r, struct lk_study_hosted *out) {
    static const char *const ours[] = {"model", "prompt", "n", "image", "seed", "stream"};
    struct lk_images_option *list = lk_store_alloc(&r->study->store, MAX_SET * sizeof *list);
    const char *key;
    const size_t stem = strlen(r->field);
    if (!list) return out_of_memory(r);
    if (!enter_object(r)) return false;
    for (out->set = list; lk_json_next(&r->j) && lk_json_key(&r->j, &key);) {
        struct raw raw, name = {key, strlen(key), '"'};
        bool taken = !lk_study_is_word(key, name.n, 60) || out->n_set == MAX_SET;
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) taken |= !strcmp(key, ours[i]);
        r->field[stem] = '\0'; /* of the word before */
        if (taken)
            return fail(r, LK_E_CONFIG_KEY, "at most 32 words beside model, prompt, n, image, seed, stream", &name);
        if (!(list[out->n_set].key = lk_store_text(&r->study->store, key))) return out_of_memory(r);
        name_field(r, stem, key);
        if (!read_raw(r, &raw)) return false;
        if (!strchr("\"0tf", raw.kind)) return fail(r, LK_E_CONFIG_TYPE, "a text, a number, true or false", &raw);
        list[out->n_set].text = raw.kind == '"';
        if (!(list[out->n_set++].value = plain(r, &raw))) return false;
    }
    return !r->j.rc;
}

static bool read_hosted_member(struct reader *r, const char *key, void *out) {
    return strcmp(key, "set") ? read_member(r, lk_hosted_settings, key, out) : read_set(r, out);
}

static bool read_hosted(struct reader *r, struct lk_study_hosted *out) {
    out->given = true;
    set_defaults(lk_hosted_settings, out);
    return each_member(r, read_hosted_member, out);
}

static bool read_rewrite(struct reader *r, struct lk_study_model *out) {
    struct raw raw;
    return read_raw(r, &raw) && !(r->j.rc = lk_study_read_rewrite(r->study, out, r->field, raw.text, raw.n));
}

/* The parameter whose option has another name than its key: "steps", "cfg_scale". */
static const struct lk_parameter *parameter_of_option(const char *key) {
    for (size_t i = 0; i < lk_n_parameters; i++) {
        const char *at = lk_parameters[i].alias, *k = key;
        for (; at && *at && (*at == *k || (*at == '-' && *k == '_')); at++) k++;
        if (at && !*at && !*k) return &lk_parameters[i];
    }
    return NULL;
}

/* Members of a model that are no parameters. */
static bool read_model_member(struct reader *r, const char *key, void *to) {
    struct lk_study_model *out = to;
    const struct lk_parameter *p = lk_parameter_named(key);
    if (!strcmp(key, "hosted")) return read_hosted(r, &out->hosted);
    if (!strcmp(key, "rewrite") || (p && !strcmp(p->key, key))) return lk_json_skip(&r->j);
    if (find_setting(lk_model_settings, key)) return read_member(r, lk_model_settings, key, out);
    if ((p = parameter_of_option(key)) && !r->j.rc)
        r->j.rc = lk_fail(LK_E_CONFIG_KEY, "%s: field \"%s\": unknown; in a file it is \"%s\"", r->study->file,
                          r->field, p->key);
    if (!r->j.rc)
        r->j.rc = lk_fail(LK_E_CONFIG_KEY,
                          "%s: field \"%s\": unknown; expected path, label, family, seeds, weights_identity, "
                          "allow_steps, allow_cut, hosted, rewrite or a parameter of edits ('likeness help edit') as "
                          "num_inference_steps, lora or mask",
                          r->study->file, r->field);
    return false;
}

/* The parameters, which depend on the family that the others tell. */
static bool read_model_parameter(struct reader *r, const char *key, void *to) {
    const struct lk_parameter *p = lk_parameter_named(key);
    if (!strcmp(key, "rewrite")) return read_rewrite(r, to);
    return p && !strcmp(p->key, key) ? read_parameter(r, p, to) : lk_json_skip(&r->j);
}

static bool read_model(struct reader *r, const char *key, void *unused) {
    struct lk_study *s = r->study;
    struct raw raw;
    const struct raw name = {key, strlen(key), '"'};
    (void)unused;
    if (s->schema == 1 && lk_study_preset_model(key) < 0) {
        static const struct setting models[] = {{.key = "flux"}, {.key = "step1x"}, {.key = "qwen"}, {0}};
        return unknown(r, models);
    }
    if (!lk_study_is_word(key, strlen(key), 40))
        return fail(r, LK_E_CONFIG_VALUE, "1 to 40 letters, digits, - or _ as a model's key", &name);
    if (s->n_models == LK_STUDY_MAX_MODELS) return fail(r, LK_E_CONFIG_VALUE, "at most 64 models", &name);
    struct lk_study_model *out = &s->models[s->n_models];
    *out = (struct lk_study_model){.key = lk_store_text(&s->store, key)};
    if (!out->key) return out_of_memory(r);
    lk_job_init(&out->job);
    if (!read_raw(r, &raw)) return false;
    for (int pass = 0; pass < 2; pass++) {
        struct reader again = *r;
        if (pass && (r->j.rc = lk_study_complete_names(s, out))) return false;
        lk_json_init(&again.j, raw.text, raw.n, s->file);
        each_member(&again, pass ? read_model_parameter : read_model_member, out);
        if ((r->j.rc = lk_json_finish(&again.j))) return false;
    }
    s->n_models++;
    return true;
}

/* The kind of an experiment: what its key is known for, or what its member "kind" says. */
static bool read_kind(struct reader *r, const char *key, const struct raw *whole, int *out) {
    struct lk_json j;
    struct raw kind = {"nothing", 7, 'n'};
    const char *member, *word = NULL;
    *out = 0;
    while (*out < LK_N_EXPERIMENTS && strcmp(lk_experiment_key(*out), key)) ++*out;
    if (*out < LK_N_EXPERIMENTS) return true;
    lk_json_init(&j, whole->text, whole->n, r->study->file);
    if (lk_json_enter(&j, '{'))
        while (lk_json_next(&j) && lk_json_key(&j, &member)) {
            const bool is_kind = !strcmp(member, "kind");
            const char *from = (const char *)j.at;
            if (lk_json_skip(&j) && is_kind)
                kind = (struct raw){from + strspn(from, " \t\r\n"), 0, '"'},
                kind.n = (size_t)((const char *)j.at - kind.text);
        }
    if ((r->j.rc = lk_json_finish(&j))) return false;
    if (kind.n > 2 && *kind.text == '"' && !(word = decode(r, &kind))) return false;
    for (*out = 0; *out < LK_N_EXPERIMENTS; ++*out)
        if (word && !strcmp(lk_experiment_kind(*out), word)) return true;
    if (r->study->schema == 1) {
        static const struct setting kinds[] = {{.key = "exp1"}, {.key = "exp2"}, {.key = "exp3"}, {.key = "t2i"}, {0}};
        return unknown(r, kinds);
    }
    return fail(r, LK_E_CONFIG_VALUE, "a \"kind\" of edit, pair, composite or t2i", &kind);
}

static bool read_experiment_member(struct reader *r, const char *key, void *to) {
    struct lk_study_experiment *x = to;
    struct raw fair;
    if (!strcmp(key, "kind")) return lk_json_skip(&r->j);
    if (x->kind == LK_EXP_T2I && !strcmp(key, "fair"))
        return read_raw(r, &fair) && !(r->j.rc = lk_study_read_fair(r->study, x, fair.text, fair.n));
    return read_member(r, lk_experiment_settings[x->kind], key, x);
}

static bool read_experiment(struct reader *r, const char *key, void *unused) {
    struct lk_study *s = r->study;
    struct raw whole;
    struct reader inner = *r;
    const struct raw name = {key, strlen(key), '"'};
    int kind;
    (void)unused;
    if (!lk_study_is_word(key, strlen(key), 40))
        return fail(r, LK_E_CONFIG_VALUE, "1 to 40 letters, digits, - or _ as an experiment's key", &name);
    if (s->n_experiments == LK_STUDY_MAX_EXPERIMENTS)
        return fail(r, LK_E_CONFIG_VALUE, "at most 16 experiments", &name);
    const char *kept = lk_store_text(&s->store, key);
    if (!kept) return out_of_memory(r);
    if (!read_raw(r, &whole)) return false;
    if (whole.kind != '{') return fail(r, LK_E_CONFIG_TYPE, "an object", &whole);
    if (!read_kind(r, kept, &whole, &kind)) return false;
    struct lk_study_experiment *x = &s->experiments[s->n_experiments++];
    *x = (struct lk_study_experiment){.key = kept, .kind = (enum lk_experiment)kind};
    set_defaults(lk_experiment_settings[kind], x);
    lk_json_init(&inner.j, whole.text, whole.n, s->file);
    each_member(&inner, read_experiment_member, x);
    return !(r->j.rc = lk_json_finish(&inner.j));
}

static bool read_analysis(struct reader *r, const char *key, void *unused) {
    const struct setting *s = find_setting(lk_analysis_settings, key);
    struct raw raw;
    (void)unused;
    if (r->study->schema == 1 && lk_study_has_no_effect(key)) return lk_json_skip(&r->j);
    if (!s) return unknown(r, lk_analysis_settings);
    const char *text = read_raw(r, &raw) ? check_value(r, s, &raw) : NULL;
    if (text) r->study->analysis[s - lk_analysis_settings] = text;
    return text != NULL;
}

static bool read_study(struct reader *r, const char *key, void *unused) {
    struct raw raw;
    if (!strcmp(key, "models")) return each_member(r, read_model, unused);
    if (!strcmp(key, "experiments")) return each_member(r, read_experiment, unused);
    if (!strcmp(key, "analysis")) return each_member(r, read_analysis, unused);
    if (!strcmp(key, "judges"))
        return read_raw(r, &raw) && !(r->j.rc = lk_study_read_judges(r->study, raw.text, raw.n));
    if (!strcmp(key, "source_files") || !strcmp(key, "jobs")) return lk_json_skip(&r->j); /* of a resolved copy */
    return read_member(r, lk_study_settings, key, r->study);
}

/* Only the number of the version, which other members depend on. */
static void read_schema(struct reader *r) {
    const char *key;
    if (!enter_object(r)) return;
    while (lk_json_next(&r->j) && lk_json_key(&r->j, &key)) {
        name_field(r, 0, key);
        if (!(strcmp(key, "schema") ? lk_json_skip(&r->j) : read_member(r, lk_study_settings, key, r->study))) return;
    }
    lk_json_end(&r->j);
}

enum lk_code lk_study_settings_read(struct lk_study *s, const char *text, size_t n) {
    struct reader r = {.study = s};
    set_defaults(lk_study_settings, s);
    for (int i = 0; lk_analysis_settings[i].key; i++) s->analysis[i] = lk_analysis_settings[i].otherwise;
    for (int pass = 0; pass < 2; pass++) {
        lk_json_init(&r.j, text, n, s->file);
        r.field[0] = 0;
        if (!pass)
            read_schema(&r);
        else if (each_member(&r, read_study, NULL))
            lk_json_end(&r.j);
        LK_TRY(lk_json_finish(&r.j));
        if (!s->schema) return lk_study_bad(s, "schema", "expected 1 or 2, got nothing");
    }
    const bool whole = !s->n_faults; /* else what lacks may be what was wrong */
    if (!s->name && whole) LK_TRY(lk_study_note(s, lk_study_bad(s, "study", "expected a name, got nothing")));
    if (!s->n_experiments && whole)
        LK_TRY(lk_study_note(s, lk_study_bad(s, "experiments", "expected an experiment such as exp1, got nothing")));
    if (!s->n_models && whole)
        LK_TRY(lk_study_note(s, lk_study_bad(s, "models", "expected a model such as flux, got nothing")));
    if (s->schema == 1) lk_study_order_version_1(s);
    return LK_OK;
}
