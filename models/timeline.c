/* How long a stage takes with its weights where a placement has them: the copy engine and the kernels as two clocks
 * that wait for each other where the two streams do. And which form of the weights a card should have by that. */
#include <string.h>

#include "engine/base/alloc.h"
#include "models/pipeline.h"
#include "models/placement.h"

#define CYCLES    3    /* the last one is steady */
#define SLOWER    1.05 /* than with all weights resident: what a finer precision may cost */
#define DISK_RATE 2e9  /* bytes per second, where the host has no room for what is streamed */

struct lk_device_rates lk_device_rates(const char *architecture) {
    static const struct {
        const char *architecture;
        struct lk_device_rates rates;
    } known[] = {
        /* sm_80: what cuBLAS and FlashAttention sustain on others' A100 of 400 W; none has run this program. sm_90:
         * steps of the three editors on an H200 at its limit of power, within 7.5 % (bench/RESULTS.md). RTX cards: the
         * A100's share of the data sheet's peaks; none has run it, and the range is twice as wide. */
        {"sm_80", {250e12, 200e12, 25e9, 1.8e12, 230e9, 0.97, 1.14}},  /* A100, NVLink 3 */
        {"sm_86", {57e12, 45e12, 25e9, 0.83e12, 20e9, 0.94, 1.28}},    /* RTX 3090 */
        {"sm_89", {132e12, 105e12, 25e9, 0.89e12, 20e9, 0.94, 1.28}},  /* RTX 4090 */
        {"sm_90", {426e12, 242e12, 50e9, 2.9e12, 360e9, 0.92, 1.09}},  /* H100, NVLink 4 */
        {"sm_120", {167e12, 134e12, 50e9, 1.58e12, 40e9, 0.94, 1.28}}, /* RTX 5090 */
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(architecture, known[i].architecture)) return known[i].rates;
    return known[0].rates;
}

static double seconds_of(const struct lk_visit *v, const struct lk_device_rates *rates) {
    return v->gemm_flops / rates->gemm_flops + v->attention_flops / rates->attention_flops +
           v->other_bytes / rates->memory_bytes;
}

void lk_placement_add_unpacking(struct lk_itinerary *it, const struct lk_device_rates *rates) {
    for (int i = 0; i < it->n_stages; i++) {
        uint32_t before[2] = {LK_NO_UNIT, LK_NO_UNIT};
        for (size_t k = 0; k < it->stages[i].n; k++) {
            struct lk_visit *v = &it->stages[i].visits[k];
            if (v->unit == LK_NO_UNIT || it->packed[v->unit] == 0) continue;
            const double bytes = 2 * it->packed[v->unit] * (double)it->units.entries[v->unit].bytes;
            const bool there = v->unit == before[1] && bytes <= (double)LK_PLAIN_SMALL;
            before[1] = before[0], before[0] = v->unit;
            if (there) continue;
            v->gemm_flops += ((double)lk_unit_room(it, v->unit) + bytes) / rates->memory_bytes * rates->gemm_flops;
        }
    }
}

struct clocks {
    const struct lk_placement *p;
    const struct lk_stage_placement *s;
    const struct lk_device_rates *rates;
    double copies, kernels; /* when each is done with what it was given */
    double *arrived;        /* per stay, of its last cycle */
    double *ended;          /* per visit of what travels */
    int64_t n_sent;
};

static double seconds_to_send(const struct clocks *c, uint32_t unit) {
    const int n = c->p->n_ranks;
    if (!n) return (double)lk_unit_room(&c->p->itinerary, unit) / c->rates->bus_bytes;
    return (double)lk_unit_share(&c->p->itinerary, unit, n) * (n - 1) / c->rates->link_bytes;
}

/* Copies up to stay `needed`, each after the visit that frees its place. */
static void send(struct clocks *c, int64_t needed) {
    for (; c->n_sent <= needed; c->n_sent++) {
        int64_t n = (int64_t)c->s->n_visits, i = c->n_sent % (int64_t)c->s->n_stays;
        const struct lk_stay *stay = &c->s->stays[i];
        int64_t after = stay->after + c->n_sent / (int64_t)c->s->n_stays * n;
        if (after >= 0 && c->ended[after] > c->copies) c->copies = c->ended[after];
        c->copies += seconds_to_send(c, stay->unit);
        c->arrived[i] = c->copies;
    }
}

static void run_cycle(struct clocks *c, const struct lk_stage_visits *visits, int64_t cycle) {
    const int64_t n = (int64_t)c->s->n_visits;
    int64_t k = cycle * n;
    for (size_t i = 0; i < visits->n; i++) {
        const struct lk_visit *v = &visits->visits[i];
        const bool travels = v->unit != LK_NO_UNIT && n && k < (cycle + 1) * n && c->s->visits[k % n].unit == v->unit;
        if (travels) {
            uint32_t stay = c->s->visits[k % n].stay;
            send(c, cycle * (int64_t)c->s->n_stays + stay);
            if (c->arrived[stay] > c->kernels) c->kernels = c->arrived[stay];
        }
        c->kernels += seconds_of(v, c->rates);
        if (travels) c->ended[k++] = c->kernels;
    }
}

enum lk_code lk_placement_predict(const struct lk_placement *p, int stage, const struct lk_device_rates *rates,
                                  struct lk_prediction *out) {
    const struct lk_stage_visits *visits = &p->itinerary.stages[stage];
    struct clocks c = {.p = p, .s = &p->stages[stage], .rates = rates};
    *out = (struct lk_prediction){0};
    for (size_t i = 0; i < visits->n; i++) out->resident_s += seconds_of(&visits->visits[i], rates);
    out->placed_s = out->resident_s;
    if (p->whole || !c.s->n_stays) return LK_OK;
    c.arrived = lk_calloc(c.s->n_stays, sizeof *c.arrived);
    c.ended = lk_calloc(CYCLES * c.s->n_visits, sizeof *c.ended);
    enum lk_code rc = c.arrived && c.ended ? LK_OK : lk_fail(LK_E_NOMEM, "timeline: out of memory");
    double before = 0;
    for (int64_t i = 0; !rc && i < CYCLES; i++) {
        before = c.kernels;
        run_cycle(&c, visits, i);
    }
    out->placed_s = c.kernels - before;
    lk_free(c.arrived);
    lk_free(c.ended);
    return rc;
}

const struct lk_plan_placed *lk_plan_transformer(const struct lk_plan *plan) {
    for (int i = 0; i < plan->n_placed && plan->fits; i++)
        if (!strcmp(plan->placed[i].name, "transformer")) return &plan->placed[i];
    return NULL;
}

/* What fits is chosen by time, what does not by how little is missing. Jobs that visit a layer together wait for it
 * once. */
enum lk_code lk_pipeline_choose_quantize(const struct lk_quantize_question *q, struct lk_device *target,
                                         enum lk_quantize *out) {
    static const enum lk_quantize forms[] = {LK_QUANTIZE_NONE, LK_QUANTIZE_Q8, LK_QUANTIZE_NF4};
    const struct lk_budget budget = target->budget;
    double resident = 0, fastest = 0;
    uint64_t least = UINT64_MAX;
    *out = LK_QUANTIZE_NONE;
    for (size_t i = 0; i < sizeof forms / sizeof *forms && target->memory->place; i++) {
        struct lk_pipeline_options options = *q->options;
        struct lk_pipeline *pipeline;
        struct lk_plan plan = {0};
        options.configs = true;
        options.quantize = forms[i];
        LK_TRY(lk_pipeline_open_with(&pipeline, q->model, &options));
        target->budget.host_bytes = q->host_bytes;
        enum lk_code rc = lk_pipeline_plan(pipeline, target, q->request, &plan);
        target->budget = budget;
        lk_pipeline_close(pipeline);
        LK_TRY(rc);
        const struct lk_plan_placed *t = lk_plan_transformer(&plan);
        if (!t) {
            if (fastest == 0 && plan.least_bytes < least) *out = forms[i], least = plan.least_bytes;
            continue;
        }
        const double from_disk = t->pinned || plan.n_ranks ? 0 : (double)t->streamed_bytes / DISK_RATE - t->resident_s;
        const double waits = t->placed_s - t->resident_s;
        const double seconds = t->resident_s + (from_disk > waits ? from_disk : waits) / q->jobs_per_visit;
        if (resident == 0) resident = t->resident_s;
        if (fastest == 0 || seconds < fastest) *out = forms[i], fastest = seconds;
        if (seconds <= SLOWER * resident || (!i && t->packed)) break;
    }
    return LK_OK;
}
