/* Jobs and the families that they are for: what is refused, what holds where nothing was given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/family.h"
#include "models/parameters.h"
#include "models/schedule.h"

static bool has(const struct lk_pipeline *pipeline, const struct lk_parameter *p) {
    return p->families & pipeline->family->bit;
}

static enum lk_code refuse(const struct lk_parameter *p, const struct lk_pipeline *pipeline, const char *recipe) {
    if (recipe)
        return lk_fail(LK_E_METADATA, "%s: field \"%s\" of the recipe: %s has no such parameter", recipe, p->key,
                       pipeline->name);
    return lk_fail(LK_E_USAGE, "--%s: %s has no such parameter; leave it out", p->name, pipeline->name);
}

bool lk_parameter_is_idle(const struct lk_parameter *p, const char *text) {
    char *end;
    return p->idle != 0 && strtod(text, &end) == p->idle && end != text && !*end;
}

/* The documents give models without guidance a guidance scale of 1. */
static bool is_idle(const struct lk_parameter *p, const struct lk_job *job) {
    return p->idle != 0 && p->kind == LK_PARAMETER_NUMBER &&
           *(const double *)(const void *)((const char *)job + p->offset) == p->idle;
}

enum lk_code lk_job_complete(struct lk_job *job, const struct lk_pipeline *pipeline, const char *recipe) {
    struct lk_job defaults = {0};
    lk_request_init(&defaults.request, pipeline);
    enum lk_code rc = lk_schedule_complete(job, pipeline);
    if (rc) return recipe ? lk_fail_prefix(LK_E_METADATA, "%s: the recipe", recipe) : rc;
    for (size_t i = 0; i < lk_n_parameters; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        if (p->place != LK_IN_REQUEST) continue;
        bool carried = recipe && p->record == LK_RECORD_ALWAYS;
        if (!lk_job_given(job, p) || (!has(pipeline, p) && is_idle(p, job) && !carried))
            lk_parameter_copy(p, job, &defaults);
        else if (!has(pipeline, p) && !carried)
            return refuse(p, pipeline, recipe);
    }
    return LK_OK;
}

bool lk_parameter_recorded(const struct lk_parameter *p, const struct lk_job *job, const struct lk_pipeline *pipeline) {
    const struct lk_job nothing = {0};
    struct lk_job defaults;
    if (p->record != LK_RECORD_USED) return p->record == LK_RECORD_ALWAYS;
    lk_job_init(&defaults);
    if (p->place == LK_IN_RUN) return !lk_parameter_equal(p, job, &defaults);
    if (!has(pipeline, p)) return false;
    if (!strcmp(p->group, "Thinking")) return job->request.thinking_mode || job->request.reflection_mode;
    if (!strcmp(p->group, "Concepts")) return job->request.n_concepts > 0;
    lk_request_init(&defaults.request, pipeline);
    return !lk_parameter_equal(p, job, &nothing) ||
           (p->kind == LK_PARAMETER_NUMBER && !lk_parameter_equal(p, &defaults, &nothing));
}

static enum lk_code check_range(const struct lk_parameter *p, const struct lk_job *job) {
    const void *at = (const char *)job + p->offset;
    double value;
    if (p->kind == LK_PARAMETER_INT)
        value = *(const int *)at;
    else if (p->kind == LK_PARAMETER_NUMBER)
        value = *(const double *)at;
    else
        return LK_OK;
    if (value >= p->min && value <= p->max) return LK_OK;
    return lk_fail(LK_E_USAGE, "%s: expected %.10g to %.10g, got %.10g", p->key, p->min, p->max, value);
}

enum lk_code lk_request_check(const struct lk_request *request, const struct lk_pipeline *pipeline) {
    const struct lk_job job = {.request = *request};
    struct lk_job defaults = {0};
    lk_request_init(&defaults.request, pipeline);
    for (size_t i = 0; i < lk_n_parameters; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        if (p->place != LK_IN_REQUEST || lk_parameter_equal(p, &job, &defaults)) continue;
        if (has(pipeline, p))
            LK_TRY(check_range(p, &job));
        else if (p->record != LK_RECORD_ALWAYS && !is_idle(p, &job))
            return lk_fail(LK_E_USAGE, "%s: %s has no such parameter; leave it out", p->key, pipeline->name);
    }
    int n = request->num_inference_steps;
    if (request->input_sigmas) LK_TRY(lk_sigmas_read("input_sigmas", request->input_sigmas, NULL, &n));
    if (n != request->num_inference_steps)
        return lk_fail(LK_E_USAGE, "num_inference_steps: expected %d, as many as input_sigmas, got %d", n,
                       request->num_inference_steps);
    return LK_OK;
}

void lk_parameter_default(const struct lk_parameter *p, char *out, size_t size) {
    const char *words = p->otherwise ? p->otherwise : p->initial ? p->initial : "";
    char values[LK_MAX_FAMILIES][64] = {""};
    bool alike = true;
    int n = 0;
    snprintf(out, size, "%s", words);
    if (*words) return;
    for (int i = 0; lk_families[i]; i++) {
        struct lk_job job = {0};
        if (!(p->families & lk_families[i]->bit)) continue;
        lk_families[i]->defaults(&job.request);
        lk_parameter_print(p, &job, values[n], sizeof values[n]);
        alike = alike && !strcmp(values[n], values[0]);
        n++;
    }
    if (alike && strcmp(values[0], "-")) snprintf(out, size, "%s", values[0]);
    n = 0;
    for (int i = 0; lk_families[i] && !alike; i++) {
        if (!(p->families & lk_families[i]->bit)) continue;
        size_t used = strlen(out);
        snprintf(out + used, size - used, "%s%s %s", n ? ", " : "", values[n], lk_families[i]->title);
        n++;
        for (int k = 0; k < LK_MAX_VARIANTS && p == lk_parameter_named("num-inference-steps"); k++) {
            used = strlen(out);
            if (lk_families[i]->steps[k])
                snprintf(out + used, size - used, ", %d %s", lk_families[i]->steps[k], lk_families[i]->names[k]);
        }
    }
}

unsigned lk_family_bit_of(const char *model) {
    for (int i = 0; lk_families[i]; i++)
        for (int j = 0; j < LK_MAX_VARIANTS && lk_families[i]->names[j]; j++)
            if (!strcmp(lk_families[i]->names[j], model)) return lk_families[i]->bit;
    return LK_FOR_ALL;
}

void lk_parameter_families(const struct lk_parameter *p, char *out, size_t size) {
    size_t used = 0;
    *out = 0;
    for (int i = 0; lk_families[i] && p->families != LK_FOR_ALL; i++)
        if (p->families & lk_families[i]->bit && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", lk_families[i]->title);
}
