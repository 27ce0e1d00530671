/* What the plan device has noted, as an itinerary: visits of weights that may travel, stage by stage. */
#include <string.h>

#include "engine/base/alloc.h"
#include "kernels/plan/plan.h"

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "plan device: out of memory for the itinerary"); }

static uint32_t unit_of(const struct lk_itinerary *it, const struct lk_plan_note *note) {
    const struct lk_range *e = note->start ? lk_ranges_find(&it->units, note->start, note->bytes) : NULL;
    return e ? (uint32_t)(e - it->units.entries) : LK_NO_UNIT;
}

/* Scales lie and travel with their weight. Those of several, as the one scale of an fp8 matrix whose rows are
 * multiplied in parts, stay where they are, as all that does not travel. */
static void pair_scales(const struct lk_plan_device *plan, struct lk_itinerary *it) {
    const uint32_t shared = LK_NO_UNIT - 1;
    for (size_t i = 0; i < plan->n_notes; i++) {
        const struct lk_plan_note leader = {.start = plan->notes[i].leader, .bytes = 1};
        const uint32_t unit = unit_of(it, &plan->notes[i]), of = unit_of(it, &leader);
        if (of == LK_NO_UNIT || !it->travels[of] || it->leader[unit] == of || it->leader[unit] == shared) continue;
        if (it->leader[unit] == LK_NO_UNIT && it->follower[of] == LK_NO_UNIT) {
            it->leader[unit] = of;
            it->follower[of] = unit;
            continue;
        }
        if (it->leader[unit] != LK_NO_UNIT) it->follower[it->leader[unit]] = LK_NO_UNIT;
        it->leader[unit] = shared;
    }
    for (size_t u = 0; u < it->units.n; u++)
        if (it->leader[u] == shared) it->leader[u] = LK_NO_UNIT;
}

/* A weight travels if no op reads it as something else. */
static enum lk_code classify(const struct lk_plan_device *plan, struct lk_itinerary *it) {
    size_t n = plan->weights.n;
    it->units.entries = lk_calloc(n + 1, sizeof *it->units.entries);
    it->travels = lk_calloc(n + 1, sizeof *it->travels);
    it->leader = lk_malloc((n + 1) * sizeof *it->leader);
    it->follower = lk_malloc((n + 1) * sizeof *it->follower);
    it->packed = lk_calloc(n + 1, sizeof *it->packed);
    if (!it->units.entries || !it->travels || !it->leader || !it->follower || !it->packed) return out_of_memory();
    it->units.n = it->units.capacity = n;
    for (size_t i = 0; i < n; i++) {
        it->units.entries[i] = plan->weights.entries[i];
        it->travels[i] = true;
        it->leader[i] = it->follower[i] = LK_NO_UNIT;
    }
    for (size_t i = 0; i < plan->n_notes; i++) {
        uint32_t unit = unit_of(it, &plan->notes[i]);
        if (unit == LK_NO_UNIT) continue;
        it->travels[unit] &= plan->notes[i].travels;
        if (plan->notes[i].packed > 0) it->packed[unit] = plan->notes[i].packed;
    }
    pair_scales(plan, it);
    return LK_OK;
}

static enum lk_code add_visit(struct lk_stage_visits *s, const struct lk_plan_note *note, uint32_t unit) {
    if (!s->n || s->visits[s->n - 1].unit != unit) {
        LK_TRY(lk_grow(&s->visits, &s->capacity, s->n + 1, sizeof *s->visits));
        s->visits[s->n++] = (struct lk_visit){.unit = unit};
    }
    struct lk_visit *v = &s->visits[s->n - 1];
    v->rows += note->rows;
    v->gemm_flops += note->gemm_flops;
    v->attention_flops += note->attention_flops;
    return LK_OK;
}

/* Several jobs, prompts or passes repeat the same visits: one of them stands for all. */
static enum lk_code find_cycle(struct lk_stage_visits *s) {
    size_t n = s->n, *border = lk_calloc(n + 1, sizeof *border);
    if (!border) return out_of_memory();
    for (size_t i = 1, k = 0; i < n; i++) {
        while (k && s->visits[i].unit != s->visits[k].unit) k = border[k - 1];
        k += s->visits[i].unit == s->visits[k].unit;
        border[i] = k;
    }
    size_t period = n ? n - border[n - 1] : 0;
    lk_free(border);
    s->n_cycles = 1;
    if (!period || n % period) return LK_OK;
    s->n_cycles = (int)(n / period);
    s->n = period;
    return LK_OK;
}

static enum lk_code build(const struct lk_plan_device *plan, struct lk_itinerary *it) {
    LK_TRY(classify(plan, it));
    it->n_stages = plan->n_stages ? plan->n_stages : 1;
    for (int i = 0; i < it->n_stages; i++) {
        struct lk_stage_visits *s = &it->stages[i];
        memcpy(s->name, plan->stages[i], sizeof s->name);
        s->arena_bytes = plan->stage_peaks[i];
        s->reads = lk_calloc(it->units.n + 1, sizeof *s->reads);
        if (!s->reads) return out_of_memory();
    }
    for (size_t i = 0; i < plan->n_notes; i++) {
        const struct lk_plan_note *note = &plan->notes[i];
        struct lk_stage_visits *s = &it->stages[note->stage];
        uint32_t unit = unit_of(it, note);
        if (unit != LK_NO_UNIT) s->reads[unit] = true;
        if (unit != LK_NO_UNIT && !it->travels[unit]) unit = LK_NO_UNIT;
        if (unit != LK_NO_UNIT || note->gemm_flops + note->attention_flops > 0) LK_TRY(add_visit(s, note, unit));
        if (s->n) s->visits[s->n - 1].other_bytes += note->other_bytes;
    }
    for (int i = 0; i < it->n_stages; i++) {
        struct lk_stage_visits *s = &it->stages[i];
        LK_TRY(find_cycle(s));
        for (size_t k = 0; k < s->n; k++) s->flops += s->visits[k].gemm_flops + s->visits[k].attention_flops;
    }
    return LK_OK;
}

enum lk_code lk_device_plan_itinerary(const struct lk_device *dev, struct lk_itinerary *out) {
    struct lk_plan_device *plan = lk_plan_device_of(dev);
    *out = (struct lk_itinerary){0};
    if (dev->arena.peak > plan->stage_peaks[plan->stage]) plan->stage_peaks[plan->stage] = dev->arena.peak;
    enum lk_code rc = build(plan, out);
    if (rc) lk_itinerary_free(out);
    return rc;
}
