/* Many sets of labels resampled at once. Sets of one size have the same draws: these are made once for a batch of sets,
 * eight resamples side by side, and each set counts how often each pair of groups was drawn. What arms and groups have,
 * and the statistics, are then sums over the few pairs of groups that occur. */
#include "eval/stats/resampling/representation_sets.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/resampling/draws.h"
#include "eval/stats/resampling/permutation.h"
#include "eval/stats/proportion.h"
#include "eval/stats/resampling/resample.h"

enum {
    DRAWS = 256,               /* at a time */
    MAX_BATCH = 64,            /* sets that share a draw */
    MAX_BATCH_UNITS = 1 << 16, /* of several sets */
    MAX_BATCH_BYTES = 4 << 20, /* their replicates */
    TABLE = 128,               /* labels up to which angles are looked up */
    GROUPS = LK_REPRESENTATION_MAX_GROUPS
};

/* Sets that are equal, computed once: the union of what they want. */
struct job {
    const struct lk_representation *const *sets;
    size_t n_sets;
    const struct lk_representation *set; /* the first */
    bool spd, bounds, h, test;
    size_t max_rows; /* pairs of groups that may occur */
};

struct batch {
    size_t first, n; /* jobs */
};

struct plan {
    const struct lk_representation **sorted;
    struct job *jobs;
    struct batch *batches;
    size_t n_jobs, n_batches, stride; /* stride: bytes of a thread */
    const struct lk_resampling *how;
    double *angles; /* of k of n labels: [n (n + 1) / 2 + k] */
};

/* A job under way, in a thread's memory. */
struct running {
    int32_t *row;                            /* [n]: of each unit */
    int16_t (*group)[2];                     /* [n_rows]: of base and other */
    uint32_t *multiplicity, *counts;         /* [n_rows], [n_rows, LK_DRAW_LANES] */
    double *totals, *replicates, *statistic; /* [arms, groups, LK_DRAW_LANES], [n_statistics, B], [n_statistics,
                                                LK_DRAW_LANES] */
    double *shares, *signs;                  /* [arms, groups]: RR, and 1 or -1 for the side of the target */
    bool *present, *loose;                   /* [n_groups]: in some arm; [arms, groups]: which side is not known */
    size_t n_rows;
};

static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

static int n_arms(const struct job *job) { return job->set->other ? 2 : 1; }
static size_t n_spd(const struct job *job) { return job->spd ? (job->set->other ? 3 : 1) : 0; }
static size_t n_numbers(const struct job *job) { return n_spd(job) + (job->h ? (size_t)job->set->n_groups : 0); }
/* Rows of replicates before those of the test: the numbers', then two of each arm for bounds. */
static size_t n_drawn(const struct job *job) { return n_numbers(job) + (job->bounds ? 2 * (size_t)n_arms(job) : 0); }

static enum lk_code check_groups(const int32_t *groups, size_t n, int n_groups) {
    for (size_t i = 0; i < n; i++)
        if (groups[i] < -1 || groups[i] >= n_groups)
            return lk_fail(LK_E_INPUT, "representation: image %zu: expected a group below %d or -1, got %d", i,
                           n_groups, groups[i]);
    return LK_OK;
}

static enum lk_code check(const struct lk_representation *set) {
    if (set->n_groups < 1 || set->n_groups > GROUPS)
        return lk_fail(LK_E_INPUT, "representation: expected 1 to %d groups, got %d", GROUPS, set->n_groups);
    if (set->n > INT32_MAX)
        return lk_fail(LK_E_INPUT, "representation: expected fewer than 2^31 images, got %zu", set->n);
    if (set->target) LK_TRY(lk_representation_check_target(set->target, set->n_groups));
    LK_TRY(check_groups(set->base, set->n, set->n_groups));
    return set->other ? check_groups(set->other, set->n, set->n_groups) : LK_OK;
}

/* Sets of one size side by side, the largest first; 0: equal. */
static int compare_sets(const struct lk_representation *x, const struct lk_representation *y) {
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    if (x->n_groups != y->n_groups) return x->n_groups < y->n_groups ? -1 : 1;
    if (!x->other != !y->other) return x->other ? 1 : -1;
    if (!x->target != !y->target) return x->target ? 1 : -1;
    int order = x->target ? memcmp(x->target, y->target, (size_t)x->n_groups * sizeof *x->target) : 0;
    if (!order && x->n) order = memcmp(x->base, y->base, x->n * sizeof *x->base);
    if (!order && x->n && x->other) order = memcmp(x->other, y->other, x->n * sizeof *x->other);
    return order;
}

static int by_content(const void *a, const void *b) {
    return compare_sets(*(const struct lk_representation *const *)a, *(const struct lk_representation *const *)b);
}

static void make_jobs(struct plan *plan, size_t n_sets) {
    for (size_t i = 0; i < n_sets; i++) {
        const struct lk_representation *set = plan->sorted[i];
        if (!i || compare_sets(plan->sorted[i - 1], set)) {
            size_t groups = (size_t)set->n_groups + 1, rows = set->other ? groups * groups : groups;
            plan->jobs[plan->n_jobs++] =
                (struct job){.sets = &plan->sorted[i], .set = set, .max_rows = rows < set->n ? rows : set->n};
        }
        struct job *job = &plan->jobs[plan->n_jobs - 1];
        job->n_sets++;
        job->bounds |= set->bounds[0] || set->bounds[1] || set->bounds[2];
        job->spd |= job->bounds || set->spd[0] || set->spd[1] || set->spd[2];
        job->h |= set->h != NULL;
        job->test |= set->test != NULL;
    }
}

/* The job's parts from `at` on; NULL: only their size, which is given. */
static size_t place(const struct job *job, size_t n_replicates, unsigned char *at, struct running *out) {
    size_t n_statistics = n_drawn(job) + job->test, n_groups = (size_t)job->set->n_groups;
    size_t n_shares = (size_t)n_arms(job) * n_groups;
    size_t sizes[] = {job->set->n * sizeof *out->row,
                      job->max_rows * sizeof *out->group,
                      job->max_rows * sizeof *out->multiplicity,
                      job->max_rows * LK_DRAW_LANES * sizeof *out->counts,
                      (size_t)n_arms(job) * n_groups * LK_DRAW_LANES * sizeof *out->totals,
                      n_statistics * n_replicates * sizeof *out->replicates,
                      n_statistics * LK_DRAW_LANES * sizeof *out->statistic,
                      n_shares * sizeof *out->shares,
                      n_shares * sizeof *out->signs,
                      n_groups * sizeof *out->present,
                      n_shares * sizeof *out->loose};
    enum { PARTS = sizeof sizes / sizeof *sizes };
    size_t bytes = 0;
    unsigned char *parts[PARTS] = {NULL};
    for (int i = 0; i < PARTS; i++) {
        if (at) parts[i] = at + bytes;
        bytes += round_up(sizes[i]);
    }
    if (at)
        *out = (struct running){(void *)parts[0], (void *)parts[1], (void *)parts[2],  (void *)parts[3],
                                (void *)parts[4], (void *)parts[5], (void *)parts[6],  (void *)parts[7],
                                (void *)parts[8], (void *)parts[9], (void *)parts[10], 0};
    return bytes;
}

static size_t scratch_bytes(const struct plan *plan) {
    size_t rows = (GROUPS + 1) * (GROUPS + 1) * sizeof(int32_t);
    size_t values = 2 * (size_t)plan->how->n_replicates * sizeof(double);
    return round_up(MAX_BATCH * sizeof(struct running)) + round_up(rows > values ? rows : values);
}

static void make_batches(struct plan *plan) {
    size_t bytes = 0, units = 0;
    for (size_t i = 0; i < plan->n_jobs; i++) {
        const struct job *job = &plan->jobs[i];
        size_t more = place(job, (size_t)plan->how->n_replicates, NULL, NULL);
        struct batch *last = plan->n_batches ? &plan->batches[plan->n_batches - 1] : NULL;
        if (!last || last->n == MAX_BATCH || job->set->n != plan->jobs[last->first].set->n ||
            units + job->set->n > MAX_BATCH_UNITS || bytes + more > MAX_BATCH_BYTES) {
            last = &plan->batches[plan->n_batches++];
            *last = (struct batch){i, 0};
            bytes = units = 0;
        }
        last->n++;
        bytes += more;
        units += job->set->n;
        if (bytes > plan->stride) plan->stride = bytes;
    }
    plan->stride += scratch_bytes(plan);
}

/* Numbers the pairs of groups that occur. of_pair: scratch. */
static void make_rows(const struct job *job, int32_t *of_pair, struct running *r) {
    size_t width = (size_t)job->set->n_groups + 1, n_pairs = job->set->other ? width * width : width;
    for (size_t i = 0; i < n_pairs; i++) of_pair[i] = -1;
    memset(r->present, 0, width - 1);
    r->n_rows = 0;
    for (size_t i = 0; i < job->set->n; i++) {
        int32_t base = job->set->base[i], other = job->set->other ? job->set->other[i] : -1;
        int32_t *row = &of_pair[(size_t)(other + 1) * width + (size_t)(base + 1)];
        if (*row < 0) {
            *row = (int32_t)r->n_rows++;
            r->group[*row][0] = (int16_t)base;
            r->group[*row][1] = (int16_t)other;
            r->multiplicity[*row] = 0;
            if (base >= 0) r->present[base] = true;
            if (other >= 0) r->present[other] = true;
        }
        r->multiplicity[*row]++;
        r->row[i] = *row;
    }
}

/* Each arm's shares, and on which side of the target they lie. */
static void find_signs(const struct job *job, struct running *r) {
    int n_groups = job->set->n_groups;
    for (int arm = 0; arm < n_arms(job); arm++) {
        double *shares = r->shares + arm * n_groups, n = 0;
        memset(shares, 0, (size_t)n_groups * sizeof *shares);
        for (size_t i = 0; i < r->n_rows; i++)
            if (r->group[i][arm] >= 0) shares[r->group[i][arm]] += r->multiplicity[i];
        for (int g = 0; g < n_groups; g++) n += shares[g];
        double threshold = 2 * sqrt(2 * log(fmax(log(n), 1.1))), side = 1;
        for (int g = 0; g < n_groups; g++) {
            double p = shares[g] /= n, t = job->set->target[g], error = sqrt(fmax(p * (1 - p), t * (1 - t)) / n);
            bool on_target = fabs(p - t) < 1e-12; /* either side will do, but not the same one for all */
            r->signs[arm * n_groups + g] = on_target ? (side = -side) : p < t ? -1 : 1;
            r->loose[arm * n_groups + g] = !(fabs(p - t) > threshold * error);
        }
    }
}

/* How far a resample lies from the shares: in the direction of the signs, and as SPD may at most; out [2]. */
static void deviations(const struct job *job, const struct running *r, const double *totals, int arm,
                       double (*out)[LK_DRAW_LANES]) {
    double sums[LK_DRAW_LANES];
    int n_groups = job->set->n_groups;
    const double *of_arm = totals + arm * n_groups * LK_DRAW_LANES;
    for (int lane = 0; lane < LK_DRAW_LANES; lane++) sums[lane] = out[0][lane] = out[1][lane] = 0;
    for (int g = 0; g < n_groups; g++)
        for (int lane = 0; lane < LK_DRAW_LANES; lane++) sums[lane] += of_arm[g * LK_DRAW_LANES + lane];
    for (int g = 0; g < n_groups; g++)
        for (int lane = 0; lane < LK_DRAW_LANES; lane++) {
            int i = arm * n_groups + g;
            double off = r->signs[i] * (of_arm[g * LK_DRAW_LANES + lane] / sums[lane] - r->shares[i]);
            out[0][lane] += off;
            out[1][lane] += r->loose[i] ? fabs(off) : off;
        }
}

/* Of resamples first..first + 7 ("boot|", n draws), or of permutations ("perm|"): a draw of 0 swaps the arms of a unit,
 * as the shuffle of two does. */
static void count(const struct plan *plan, const struct job *jobs, struct running *running, size_t n_jobs,
                  uint64_t first, bool permute) {
    struct lk_lanes lanes;
    _Alignas(64) uint32_t draws[DRAWS * LK_DRAW_LANES];
    size_t n = jobs->set->n;
    lk_lanes_numbered(&lanes, plan->how->seed, permute ? "perm|" : "boot|", first);
    for (size_t j = 0; j < n_jobs; j++)
        memset(running[j].counts, 0, running[j].n_rows * LK_DRAW_LANES * sizeof(uint32_t));
    for (size_t from = 0; from < n; from += DRAWS) {
        size_t m = n - from < DRAWS ? n - from : DRAWS;
        lk_lanes_bounded(&lanes, permute ? 2 : (uint32_t)n, 0, m, draws);
        for (size_t j = 0; j < n_jobs; j++) {
            const int32_t *row = running[j].row;
            uint32_t *counts = running[j].counts;
            if (permute && !jobs[j].test) continue;
            for (size_t i = 0; i < m && permute; i++)
                for (size_t lane = 0; lane < LK_DRAW_LANES; lane++)
                    counts[(size_t)row[from + i] * LK_DRAW_LANES + lane] += 1 - draws[i * LK_DRAW_LANES + lane];
            for (size_t i = 0; i < m && !permute; i++)
                for (size_t lane = 0; lane < LK_DRAW_LANES; lane++)
                    counts[(size_t)row[draws[i * LK_DRAW_LANES + lane]] * LK_DRAW_LANES + lane]++;
        }
    }
}

/* Adds a row's counts to the totals of a group of one arm. */
static void add(double *totals, int16_t group, const uint32_t *counts) {
    if (group < 0) return;
#pragma omp simd
    for (int lane = 0; lane < LK_DRAW_LANES; lane++) totals[group * LK_DRAW_LANES + lane] += (double)counts[lane];
}

/* What each arm has of each group; swapped: counts are of the units whose arms are swapped. */
static void total(const struct job *job, const struct running *r, bool swapped) {
    size_t arm = (size_t)job->set->n_groups * LK_DRAW_LANES;
    memset(r->totals, 0, (size_t)n_arms(job) * arm * sizeof *r->totals);
    for (size_t i = 0; i < r->n_rows; i++) {
        const uint32_t *counts = r->counts + i * LK_DRAW_LANES;
        int16_t base = r->group[i][0], other = r->group[i][1];
        uint32_t kept[LK_DRAW_LANES];
        add(r->totals, swapped ? other : base, counts);
        if (!job->set->other) continue;
        add(r->totals + arm, swapped ? base : other, counts);
        if (!swapped) continue;
        for (int lane = 0; lane < LK_DRAW_LANES; lane++) kept[lane] = r->multiplicity[i] - counts[lane];
        add(r->totals, base, kept);
        add(r->totals + arm, other, kept);
    }
}

static void sum(const double *totals, int n_groups, double *sums) {
    memset(sums, 0, LK_DRAW_LANES * sizeof *sums);
    for (int g = 0; g < n_groups; g++)
        for (int lane = 0; lane < LK_DRAW_LANES; lane++) sums[lane] += totals[g * LK_DRAW_LANES + lane];
}

/* NaN without labels, for 0 / 0. */
static void spd_of(const double *totals, int n_groups, const double *target, double *out) {
    double sums[LK_DRAW_LANES];
    sum(totals, n_groups, sums);
    memset(out, 0, LK_DRAW_LANES * sizeof *out);
    for (int g = 0; g < n_groups; g++)
#pragma omp simd
        for (int lane = 0; lane < LK_DRAW_LANES; lane++)
            out[lane] += fabs(totals[g * LK_DRAW_LANES + lane] / sums[lane] - target[g]);
}

static void change_of(const double *base, const double *other, double *out) {
    for (int lane = 0; lane < LK_DRAW_LANES; lane++) out[lane] = other[lane] - base[lane];
}

static double angle(const double *table, double k, double n) {
    size_t at = (size_t)n;
    return n <= TABLE ? table[at * (at + 1) / 2 + (size_t)k] : lk_cohen_angle(k / n);
}

/* SPD of each arm and their difference, as far as wanted, then h of the groups that occur. */
static void statistics(const struct plan *plan, const struct job *job, const struct running *r, double *out) {
    int n = job->set->n_groups;
    const double *other = r->totals + n * LK_DRAW_LANES;
    if (job->spd) {
        spd_of(r->totals, n, job->set->target, out);
        if (job->set->other) {
            spd_of(other, n, job->set->target, out + LK_DRAW_LANES);
            change_of(out, out + LK_DRAW_LANES, out + 2 * LK_DRAW_LANES);
        }
        for (int arm = 0; arm < n_arms(job) && job->bounds; arm++)
            deviations(job, r, r->totals, arm,
                       (double(*)[LK_DRAW_LANES])(out + (n_numbers(job) + 2 * (size_t)arm) * LK_DRAW_LANES));
        out += n_spd(job) * LK_DRAW_LANES;
    }
    if (!job->h) return;
    double of_base[LK_DRAW_LANES], of_other[LK_DRAW_LANES];
    sum(r->totals, n, of_base);
    sum(other, n, of_other);
    for (int g = 0; g < n; g++)
        for (int lane = 0; lane < LK_DRAW_LANES && r->present[g]; lane++) {
            int i = g * LK_DRAW_LANES + lane;
            out[i] =
                2 * (angle(plan->angles, other[i], of_other[lane]) - angle(plan->angles, r->totals[i], of_base[lane]));
        }
}

static void swapped_statistic(const struct job *job, const struct running *r, double *out) {
    double spd[2][LK_DRAW_LANES];
    int n = job->set->n_groups;
    total(job, r, true);
    spd_of(r->totals, n, job->set->target, spd[0]);
    spd_of(r->totals + n * LK_DRAW_LANES, n, job->set->target, spd[1]);
    change_of(spd[0], spd[1], out);
}

/* The statistics of lanes, from the one numbered `from`, to their rows of replicates. */
static void keep(const struct running *r, size_t from, size_t to, size_t n_replicates, size_t first) {
    size_t n = n_replicates - first < LK_DRAW_LANES ? n_replicates - first : LK_DRAW_LANES;
    for (size_t s = from; s < to; s++)
        memcpy(r->replicates + s * n_replicates + first, r->statistic + s * LK_DRAW_LANES, n * sizeof *r->replicates);
}

/* The number and its interval to all sets that want it. */
static void give(const struct job *job, const struct lk_number *number, size_t which) {
    for (size_t i = 0; i < job->n_sets; i++) {
        const struct lk_representation *set = job->sets[i];
        struct lk_number *out = which < n_spd(job) ? set->spd[which] : set->h ? &set->h[which - n_spd(job)] : NULL;
        if (out) *out = *number;
    }
}

static void give_bounds(const struct job *job, const struct lk_number *number, size_t which) {
    for (size_t i = 0; i < job->n_sets; i++)
        if (job->sets[i]->bounds[which]) *job->sets[i]->bounds[which] = *number;
}

static void finish_bounds(const struct plan *plan, const struct job *job, const struct running *r, double *scratch,
                          const struct lk_number spd[3]) {
    size_t n = (size_t)plan->how->n_replicates;
    struct lk_number bounds[3];
    lk_representation_bounds(job->set, r->replicates + n_numbers(job) * n, n, plan->how->confidence, spd, scratch,
                             bounds);
    for (size_t which = 0; which < n_spd(job); which++) give_bounds(job, &bounds[which], which);
}

static void finish_test(const struct job *job, const double *replicates, int n_replicates, double observed) {
    size_t n = job->set->n;
    struct lk_test test = {.name = "permutation of arms within seeds", .method = "permutation", .n = 2 * n};
    if (!n) {
        test.undefined = "no unit";
    } else if (isnan(observed)) {
        test.undefined = "the statistic does not exist";
    } else {
        test.statistic = observed;
        lk_permutation_compare(replicates, n_replicates, &test);
    }
    for (size_t i = 0; i < job->n_sets; i++)
        if (job->sets[i]->test) *job->sets[i]->test = test;
}

/* The labels themselves, in lane 0; then what their resamples say about them. */
static void finish(const struct plan *plan, const struct job *job, const struct running *r, double *scratch) {
    size_t n_replicates = (size_t)plan->how->n_replicates, labelled[2] = {0, 0};
    double observed[LK_DRAW_LANES];
    for (size_t i = 0; i < r->n_rows; i++) {
        for (int lane = 0; lane < LK_DRAW_LANES; lane++)
            r->counts[i * LK_DRAW_LANES + (size_t)lane] = r->multiplicity[i];
        for (int arm = 0; arm < 2; arm++)
            if (r->group[i][arm] >= 0) labelled[arm] += r->multiplicity[i];
    }
    struct lk_number spd[3] = {{0}};
    total(job, r, false);
    statistics(plan, job, r, r->statistic);
    for (size_t s = 0; s < n_numbers(job); s++) {
        bool is_h = s >= n_spd(job), occurs = !is_h || r->present[s - n_spd(job)];
        struct lk_number number = {.n = is_h ? labelled[0] + labelled[1] : s == 2 ? job->set->n : labelled[s]};
        double value = occurs ? r->statistic[s * LK_DRAW_LANES] : labelled[0] && labelled[1] ? 0 : NAN;
        if (isnan(value))
            number.undefined = "no image with a label";
        else
            number.value = value;
        if (!number.undefined && occurs) /* else h is 0 in all resamples */
            lk_interval_percentile_in(r->replicates + s * n_replicates, n_replicates, plan->how->confidence, scratch,
                                      &number);
        give(job, &number, s);
        if (!is_h) spd[s] = number;
    }
    if (job->bounds) finish_bounds(plan, job, r, scratch, spd);
    if (!job->test) return;
    memset(r->counts, 0, r->n_rows * LK_DRAW_LANES * sizeof *r->counts);
    swapped_statistic(job, r, observed);
    finish_test(job, r->replicates + n_drawn(job) * n_replicates, plan->how->n_replicates, observed[0]);
}

static void run_batch(const struct plan *plan, const struct batch *batch, unsigned char *work) {
    struct running *running = (struct running *)(void *)work;
    double *scratch = (double *)(void *)(work + round_up(MAX_BATCH * sizeof *running));
    const struct job *jobs = plan->jobs + batch->first;
    size_t n_replicates = (size_t)plan->how->n_replicates;
    bool numbers = false, test = false;
    work += scratch_bytes(plan);
    for (size_t j = 0; j < batch->n; j++) {
        work += place(&jobs[j], n_replicates, work, &running[j]);
        make_rows(&jobs[j], (int32_t *)(void *)scratch, &running[j]);
        if (jobs[j].bounds) find_signs(&jobs[j], &running[j]);
        numbers |= n_numbers(&jobs[j]) > 0;
        test |= jobs[j].test;
    }
    for (size_t first = 0; first < n_replicates && jobs->set->n; first += LK_DRAW_LANES) {
        if (numbers) count(plan, jobs, running, batch->n, first, false);
        for (size_t j = 0; j < batch->n && numbers; j++) {
            total(&jobs[j], &running[j], false);
            statistics(plan, &jobs[j], &running[j], running[j].statistic);
            keep(&running[j], 0, n_drawn(&jobs[j]), n_replicates, first);
        }
        if (test) count(plan, jobs, running, batch->n, first, true);
        for (size_t j = 0; j < batch->n && test; j++) {
            size_t row = n_drawn(&jobs[j]);
            if (!jobs[j].test) continue;
            swapped_statistic(&jobs[j], &running[j], running[j].statistic + row * LK_DRAW_LANES);
            keep(&running[j], row, row + 1, n_replicates, first);
        }
    }
    for (size_t j = 0; j < batch->n; j++) finish(plan, &jobs[j], &running[j], scratch);
}

static enum lk_code run(struct plan *plan) {
    int n_threads = lk_resampling_threads(plan->how);
    if ((size_t)n_threads > plan->n_batches) n_threads = (int)plan->n_batches;
    unsigned char *work = lk_malloc(plan->stride * (size_t)n_threads);
    if (!work) return lk_fail(LK_E_NOMEM, "representation: no memory for %d threads", n_threads);
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
    for (size_t i = 0; i < plan->n_batches; i++)
        run_batch(plan, &plan->batches[i], work + (size_t)omp_get_thread_num() * plan->stride);
    lk_free(work);
    return LK_OK;
}

static enum lk_code make(struct plan *plan, const struct lk_representation *sets, size_t n_sets) {
    plan->sorted = lk_malloc(n_sets * sizeof *plan->sorted);
    plan->jobs = lk_malloc(n_sets * sizeof *plan->jobs);
    plan->batches = lk_malloc(n_sets * sizeof *plan->batches);
    plan->angles = lk_malloc((TABLE + 1) * (TABLE + 2) / 2 * sizeof *plan->angles);
    if (!plan->sorted || !plan->jobs || !plan->batches || !plan->angles)
        return lk_fail(LK_E_NOMEM, "representation: no memory for %zu sets of labels", n_sets);
    for (size_t i = 0; i < n_sets; i++) plan->sorted[i] = &sets[i];
    qsort(plan->sorted, n_sets, sizeof *plan->sorted, by_content);
    make_jobs(plan, n_sets);
    make_batches(plan);
    for (size_t n = 0, at = 0; n <= TABLE; n++)
        for (size_t k = 0; k <= n; k++) plan->angles[at++] = lk_cohen_angle((double)k / (double)n);
    return LK_OK;
}

enum lk_code lk_representation_resample(const struct lk_representation *sets, size_t n_sets,
                                        const struct lk_resampling *how) {
    struct plan plan = {.how = how};
    if (how->n_replicates < 1)
        return lk_fail(LK_E_INPUT, "representation: replicates: expected 1 or more, got %d", how->n_replicates);
    for (size_t i = 0; i < n_sets; i++) LK_TRY(check(&sets[i]));
    if (!n_sets) return LK_OK;
    enum lk_code rc = make(&plan, sets, n_sets);
    if (!rc) rc = run(&plan);
    lk_free(plan.sorted);
    lk_free(plan.jobs);
    lk_free(plan.batches);
    lk_free(plan.angles);
    return rc;
}
