/* How far a run is: a line on the terminal (elsewhere every 30 s), or JSON every 10 s. */
#include <stdio.h>

#include "engine/base/log.h"
#include "tools/cli/study/runner.h"

#define JSON_S 10

void study_progress_begin(struct study_progress *p, const struct lk_journal_counts *counts) {
    *p = (struct study_progress){.total = counts->total,
                                 .before = counts->all[LK_JOB_DONE] + counts->all[LK_JOB_FAILED] +
                                           counts->all[LK_JOB_REFUSED],
                                 .started_s = lk_log_now()};
    p->shown_s = p->started_s;
}

/* Jobs that have got through this run's workers, and steps of those under way as parts of one. */
static double made(const struct study_run *run, int64_t *n_done, double *step_s) {
    double n = 0, per_step = 0;
    int n_stepping = 0;
    *n_done = 0;
    for (int i = 0; i < run->n_workers; i++) {
        struct study_slot *s = &run->shared->slots[i];
        int64_t us = atomic_load(&s->step_us);
        *n_done += atomic_load(&s->n_done);
        n += (double)atomic_load(&s->n_done) + 1e-6 * (double)atomic_load(&s->parts);
        per_step += 1e-6 * (double)us;
        n_stepping += us > 0;
    }
    *step_s = n_stepping ? per_step / n_stepping : 0;
    return n;
}

void study_progress_show(struct study_progress *p, const struct study_run *run) {
    int64_t n_done;
    double step_s, now = lk_log_now(), got = made(run, &n_done, &step_s), left = (double)(p->total - p->before) - got;
    double eta_s = got > 0 ? (now - p->started_s) / got * (left > 0 ? left : 0) : 0;
    const struct study_slot *slot = &run->shared->slots[0];
    for (int i = 1; i < run->n_workers; i++) /* the latest of all */
        if (atomic_load(&run->shared->slots[i].changed_us) > atomic_load(&slot->changed_us))
            slot = &run->shared->slots[i];
    int model = atomic_load(&slot->model);
    const char *name = n_done || got > 0 || model > 0 ? lk_study_model_key(run->study, model) : "";
    if (run->json) {
        if (now - p->shown_s < JSON_S) return;
        p->shown_s = now;
        printf("{\"event\":\"progress\",\"done\":%lld,\"total\":%lld,\"model\":\"%s\",\"step\":%d,\"steps\":%d,"
               "\"seconds_per_step\":%.3f,\"eta_seconds\":%.0f}\n",
               (long long)(p->before + n_done), (long long)p->total, name, atomic_load(&slot->step),
               atomic_load(&slot->n_steps), step_s, eta_s);
        fflush(stdout);
        return;
    }
    char line[200], eta[32];
    lk_log_duration(eta_s, eta);
    snprintf(line, sizeof line, "job %lld/%lld  %s  step %d/%d  %.2f s/it  ETA %s", (long long)(p->before + n_done),
             (long long)p->total, name, atomic_load(&slot->step), atomic_load(&slot->n_steps), step_s,
             got > 0 ? eta : "?");
    lk_log_status(line, now);
}
