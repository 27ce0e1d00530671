/* One forward of a diffusion transformer on the CPU, beside diffusers on torch:
 *
 *     bench_dit FOLDER [--family flux2|qwen|step1x|sd|stage_c|vae] [-o md|csv|json] [-r REPETITIONS] [-t THREADS]
 *               [-d bf16|f32] [-T TXT] [-N NOISE] [-R REF] [-b] [-p PEER | -l LORA | -c ACCEL]
 *
 * FOLDER/transformer (sd: unet, stage_c: prior, vae: vae) holds the weights ("PYTHON bench/peers/diffusers_dit.py
 * --make FOLDER" makes a depth-cut model of full width; --family there too). -p "PYTHON bench/peers/diffusers_dit.py"
 * starts the peer; the two alternate, on the same inputs, and the velocities are compared at the end. Both sides embed
 * the context and make the RoPE table in each forward. -b: time per kind of op. -l: of flux2, the same model with an
 * adapter (make_lora) alternates with that without, and the two are compared. -c: of flux2, a forward alternates with
 * one whose step cache (--accel of edit, with steps=0) computes, and with one that it leaves out. */
#include <getopt.h>

#include "bench/bench.h"
#include "bench/dit_flux2.h"
#include "bench/dit_qwen.h"
#include "bench/dit_step1x.h"
#include "bench/dit_unet.h"
#include "bench/op_times.h"
#include "bench/peer.h"
#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/rng.h"
#include "models/common/cache.h"
#include "models/family.h"
#include "weights/lora/lora.h"

static const struct dit_family *const families[] = {&dit_flux2, &dit_qwen,    &dit_step1x,
                                                    &dit_sd,    &dit_stage_c, &dit_vae};

struct options {
    const char *format;
    const char *folder, *peer, *lora, *accel;
    const struct dit_family *family;
    int repetitions, threads;
    enum lk_dtype dtype;
    struct dit_tokens n;
    bool per_op;
};

struct job {
    const void *model, *adapted; /* adapted: the same with an adapter; NULL */
    const struct options *o;
    float *cos, *sin; /* host, as in inputs */
    struct dit_inputs inputs;
};

struct samples {
    double ns[BENCH_MAX_SAMPLES], cpu_ns[BENCH_MAX_SAMPLES];
};

static int64_t n_tokens(const struct options *o) { return o->n.txt + o->n.noise + o->n.ref; }

static enum lk_code make_host_arrays(struct job *job) {
    size_t n = (size_t)n_tokens(job->o), half = (size_t)job->o->family->widths(job->model).head_dim / 2;
    job->cos = lk_malloc(n * half * sizeof *job->cos);
    job->sin = lk_malloc(n * half * sizeof *job->sin);
    return job->cos && job->sin ? LK_OK : lk_fail(LK_E_NOMEM, "RoPE table: out of memory");
}

static void free_host_arrays(struct job *job) {
    lk_free(job->cos);
    lk_free(job->sin);
}

/* torch.randn(shape, generator seeded with `seed`).to(dtype) */
static enum lk_code fill(struct lk_device *dev, const struct lk_tensor *t, uint64_t seed) {
    size_t n = (size_t)lk_tensor_numel(t);
    float *values = lk_malloc(n * sizeof *values);
    if (!values) return lk_fail(LK_E_NOMEM, "inputs: out of memory");
    struct lk_rng rng;
    lk_rng_seed(&rng, seed);
    lk_rng_normal_f32(&rng, values, n);
    if (t->dtype == LK_BF16) { /* in place: a bf16 value never overtakes the float it comes from */
        for (size_t i = 0; i < n; i++) {
            uint16_t h = lk_f32_to_bf16(values[i]);
            memcpy((char *)values + i * sizeof h, &h, sizeof h);
        }
    }
    enum lk_code rc = lk_upload(dev, t, values);
    lk_free(values);
    return rc;
}

static enum lk_code make_tensors(struct lk_device *dev, struct job *job) {
    struct dit_widths w = job->o->family->widths(job->model);
    const struct options *o = job->o;
    struct dit_inputs *in = &job->inputs;
    int64_t n = n_tokens(o);
    LK_TRY(LK_NEW(&dev->arena, &in->x, o->dtype, o->n.noise + o->n.ref, w.in_channels));
    LK_TRY(LK_NEW(&dev->arena, &in->prompt_embeds, o->dtype, o->n.txt, w.joint_attention_dim));
    LK_TRY(LK_NEW(&dev->arena, &in->velocity, o->dtype, o->n.noise, w.out_channels));
    LK_TRY(LK_NEW(&dev->arena, &in->context, o->dtype, o->n.txt, w.dim));
    LK_TRY(LK_NEW(&dev->arena, &in->cos, LK_F32, n, w.head_dim / 2));
    return LK_NEW(&dev->arena, &in->sin, LK_F32, n, w.head_dim / 2);
}

static enum lk_code forward(struct lk_device *dev, struct job *job) {
    const struct dit_family *family = job->o->family;
    if (dev->kind != LK_DEVICE_PLAN) LK_TRY(family->rope(job->model, &job->o->n, job->cos, job->sin));
    LK_TRY(lk_upload(dev, &job->inputs.cos, job->cos));
    LK_TRY(lk_upload(dev, &job->inputs.sin, job->sin));
    return family->forward(dev, job->model, &job->inputs);
}

/* The same code on the plan device says how much memory and work it is. */
static enum lk_code prepare(struct lk_device *dev, struct job *job, struct lk_cost *cost) {
    struct lk_device *plan;
    LK_TRY(lk_device_plan_create(dev, &plan));
    enum lk_code rc = make_tensors(plan, job);
    if (!rc) rc = forward(plan, job);
    size_t bytes = plan->arena.peak;
    *cost = plan->cost;
    lk_device_free(plan);
    if (!rc) rc = lk_device_prepare(dev, bytes);
    if (!rc) rc = make_tensors(dev, job);
    if (!rc) rc = fill(dev, &job->inputs.x, 1);
    if (!rc) rc = fill(dev, &job->inputs.prompt_embeds, 2);
    return rc;
}

static bool start_peer(struct bench_peer *peer, const struct options *o) {
    char numbers[4][24];
    const int64_t values[4] = {o->threads, o->n.txt, o->n.noise, o->n.ref};
    for (int i = 0; i < 4; i++) snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)values[i]);
    char *args[] = {(char *)o->folder,
                    "--family",
                    (char *)o->family->name,
                    "--dtype",
                    o->dtype == LK_BF16 ? "bf16" : "f32",
                    "--threads",
                    numbers[0],
                    "--txt",
                    numbers[1],
                    "--noise",
                    numbers[2],
                    "--ref",
                    numbers[3],
                    NULL};
    return bench_peer_start(peer, o->peer, args);
}

/* ||ours - peer's|| / ||peer's||, NaN when the peer's file cannot be read. */
static double relative_error(struct lk_device *dev, const struct job *job, struct bench_peer *peer) {
    char path[] = "/tmp/bench_dit_XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) return NAN;
    close(fd);
    size_t n = (size_t)lk_tensor_numel(&job->inputs.velocity);
    float *ours = lk_calloc(n, sizeof *ours), *theirs = lk_calloc(n, sizeof *theirs);
    FILE *file = ours && theirs && bench_peer_dump(peer, path) ? fopen(path, "rb") : NULL;
    double difference = 0, norm = NAN;
    if (file && fread(theirs, sizeof *theirs, n, file) == n && !lk_download(dev, ours, &job->inputs.velocity)) {
        for (size_t i = n; job->inputs.velocity.dtype == LK_BF16 && i-- > 0;) { /* in place, from the end */
            uint16_t h;
            memcpy(&h, (char *)ours + i * sizeof h, sizeof h);
            ours[i] = lk_bf16_to_f32(h);
        }
        norm = 0;
        for (size_t i = 0; i < n; i++) {
            difference += ((double)ours[i] - theirs[i]) * ((double)ours[i] - theirs[i]);
            norm += (double)theirs[i] * theirs[i];
        }
    }
    if (file) fclose(file);
    unlink(path);
    lk_free(ours);
    lk_free(theirs);
    return sqrt(difference / norm);
}

static void print_side(struct bench_table *table, const struct options *o, const char *what, const struct lk_cost *cost,
                       const struct samples *samples) {
    const double *ns = samples->ns;
    struct bench_statistics s = bench_statistics(ns, o->repetitions);
    bench_text(table, "implementation", "%s", what);
    bench_text(table, "dtype", "%s", lk_dtype_name(o->dtype));
    bench_text(table, "tokens", "%lld + %lld + %lld", (long long)o->n.txt, (long long)o->n.noise, (long long)o->n.ref);
    bench_number(table, "median_ms", 0, s.median * 1e-6);
    bench_number(table, "mean_ms", 0, s.mean * 1e-6);
    bench_number(table, "sd_ms", 0, s.sd * 1e-6);
    bench_number(table, "best_ms", 0, s.min * 1e-6);
    bench_number(table, "cpu_ms", 0, bench_statistics(samples->cpu_ns, o->repetitions).median * 1e-6);
    bench_number(table, "gflops", 0, (double)cost->flops / s.median);
    bench_samples(table, ns, o->repetitions);
}

static enum lk_code print_per_op(struct lk_device *dev, struct job *job, const char *format) {
    struct bench_table table = {.format = format};
    bench_op_times_begin(dev);
    double start = bench_cpu_ns();
    enum lk_code rc = forward(dev, job);
    double total = bench_cpu_ns() - start;
    bench_op_times_end(dev);
    for (int i = 0; i < BENCH_OP_COUNT; i++) {
        if (!bench_op_times[i].calls) continue;
        bench_text(&table, "op", "%s", bench_op_names[i]);
        bench_number(&table, "calls", 0, (double)bench_op_times[i].calls);
        bench_number(&table, "ms", 1, bench_op_times[i].ns * 1e-6);
        bench_number(&table, "cpu_ms", 1, bench_op_times[i].cpu_ns * 1e-6);
        bench_number(&table, "percent_cpu", 1, 100 * bench_op_times[i].cpu_ns / total);
        bench_number(&table, "gflops", 1, bench_op_times[i].flops / bench_op_times[i].ns);
        bench_number(&table, "gflops_per_cpu_s", 1, bench_op_times[i].flops / bench_op_times[i].cpu_ns);
        bench_end_row(&table);
    }
    bench_end(&table);
    return rc;
}

static void print_sides(struct lk_device *dev, const struct job *job, const struct lk_cost *cost,
                        const struct samples sides[2], struct bench_peer *peer) {
    const struct options *o = job->o;
    struct bench_table table = {.format = o->format};
    print_side(&table, o, dev->name, cost, &sides[0]);
    if (o->peer) {
        double ratios[2];
        for (int i = 0; i < 2; i++)
            ratios[i] = bench_statistics(i ? sides[1].cpu_ns : sides[1].ns, o->repetitions).median /
                        bench_statistics(i ? sides[0].cpu_ns : sides[0].ns, o->repetitions).median;
        bench_number(&table, "peer_over_ours", 2, ratios[0]);
        bench_number(&table, "peer_over_ours_cpu", 2, ratios[1]);
        bench_text(&table, "relative_error", "%.2e", relative_error(dev, job, peer));
        bench_end_row(&table);
        print_side(&table, o, peer->description, cost, &sides[1]);
        bench_number(&table, "peer_over_ours", 2, 1);
        bench_number(&table, "peer_over_ours_cpu", 2, 1);
        bench_text(&table, "relative_error", "0");
    }
    bench_end_row(&table);
    bench_end(&table);
}

/* What the adapter adds: to time, and to what is computed. */
static void print_adapter(const struct options *o, struct bench_table *table, const struct lk_cost costs[2],
                          const struct samples sides[2]) {
    double over[2][BENCH_MAX_SAMPLES]; /* of runs side by side */
    for (int i = 0; i < o->repetitions; i++) {
        over[0][i] = sides[1].ns[i] / sides[0].ns[i];
        over[1][i] = sides[1].cpu_ns[i] / sides[0].cpu_ns[i];
    }
    for (int side = 0; side < 2; side++) {
        print_side(table, o, side ? o->lora : "without", &costs[side], &sides[side]);
        bench_number(table, "over_without", 3, side ? bench_statistics(over[0], o->repetitions).median : 1);
        bench_number(table, "over_without_cpu", 3, side ? bench_statistics(over[1], o->repetitions).median : 1);
        bench_number(table, "flops_over_without", 3, (double)costs[side].flops / (double)costs[0].flops);
        bench_end_row(table);
    }
    bench_end(table);
}

/* The two in turn, each first in half of the rounds. */
static enum lk_code run_adapter(struct lk_device *dev, struct job *job) {
    const struct options *o = job->o;
    struct job jobs[2] = {*job, *job};
    struct lk_cost costs[2];
    struct samples *sides = lk_calloc(2, sizeof *sides);
    struct bench_table table = {.format = o->format};
    jobs[1].model = job->adapted;
    enum lk_code rc = sides ? prepare(dev, &jobs[0], &costs[0]) : lk_fail(LK_E_NOMEM, "samples: out of memory");
    if (!rc) rc = prepare(dev, &jobs[1], &costs[1]); /* the larger arena, for both */
    jobs[0].inputs = jobs[1].inputs;
    for (int i = -1; i < o->repetitions && !rc; i++)
        for (int k = 0; k < 2 && !rc; k++) {
            const int side = k ^ (i & 1), at = i < 0 ? 0 : i;
            const double start = bench_now_ns(), cpu_start = bench_cpu_ns();
            rc = forward(dev, &jobs[side]);
            sides[side].ns[at] = bench_now_ns() - start;
            sides[side].cpu_ns[at] = bench_cpu_ns() - cpu_start;
        }
    if (!rc) print_adapter(o, &table, costs, sides);
    lk_free(sides);
    return rc;
}

/* A step cache's gates for two steps, of which the second is left out. */
static enum lk_code begin_cache(struct lk_device *dev, const struct job *job, struct lk_walk *walk) {
    const struct lk_flux2_transformer_config *c = &((const struct lk_flux2_transformer *)job->model)->config;
    const struct dit_tokens *n = &job->o->n;
    const struct lk_cache_sizes sizes = {
        n->txt, n->noise + n->ref, n->noise, c->dim, {c->num_layers, c->num_single_layers}};
    walk->dev = dev;
    walk->dtype = job->o->dtype;
    return lk_cache_prepare(walk, 0, 1, &sizes);
}

static enum lk_code forward_of(struct lk_device *dev, struct job *job, struct lk_walk *walk, int side) {
    dit_flux2_cache = side ? lk_walk_cache(walk, 0) : NULL;
    dit_flux2_step = side == 2;
    return forward(dev, job);
}

enum { SIDES = 3 }; /* without a cache, computed, left out */

/* Memory for all, and what each costs. */
static enum lk_code prepare_cached(struct lk_device *dev, struct job *job, struct lk_walk *walk,
                                   struct lk_cost costs[SIDES]) {
    struct lk_device *plan;
    LK_TRY(lk_device_plan_create(dev, &plan));
    enum lk_code rc = make_tensors(plan, job);
    if (!rc) rc = begin_cache(plan, job, walk);
    for (int side = 0; side < SIDES && !rc; side++) rc = forward_of(plan, job, walk, side);
    const size_t bytes = plan->arena.peak;
    lk_device_free(plan);
    if (!rc) rc = lk_device_prepare(dev, bytes);
    if (!rc) rc = make_tensors(dev, job);
    if (!rc) rc = begin_cache(dev, job, walk);
    if (!rc) rc = fill(dev, &job->inputs.x, 1);
    if (!rc) rc = fill(dev, &job->inputs.prompt_embeds, 2);
    for (int side = 0; side < SIDES && !rc; side++) {
        const uint64_t before = dev->cost.flops;
        rc = forward_of(dev, job, walk, side);
        costs[side].flops = dev->cost.flops - before;
    }
    return rc;
}

static enum lk_code run_cached(struct lk_device *dev, struct job *job) {
    static const char *const names[SIDES] = {"without", "computed", "left out"};
    const struct options *o = job->o;
    const struct lk_request request = {.accel = o->accel, .num_inference_steps = 2};
    const struct lk_pipeline pipeline = {.family = &lk_family_flux2, .name = "flux2-dev"};
    struct lk_walk walk = {.request = &request};
    struct lk_cost costs[SIDES];
    struct samples *sides = lk_calloc(SIDES, sizeof *sides);
    struct bench_table table = {.format = o->format};
    enum lk_code rc = sides ? lk_cache_begin_walk(&walk, &pipeline) : lk_fail(LK_E_NOMEM, "samples: out of memory");
    if (!rc && !walk.caches) rc = lk_fail(LK_E_USAGE, "-c: expected a step cache, got %s", o->accel);
    if (!rc) rc = prepare_cached(dev, job, &walk, costs);
    for (int i = 0; i < o->repetitions && !rc; i++)
        for (int side = 0; side < SIDES && !rc; side++) {
            const double start = bench_now_ns(), cpu_start = bench_cpu_ns();
            rc = forward_of(dev, job, &walk, side);
            sides[side].ns[i] = bench_now_ns() - start;
            sides[side].cpu_ns[i] = bench_cpu_ns() - cpu_start;
        }
    for (int side = 0; side < SIDES && !rc; side++) {
        double over[BENCH_MAX_SAMPLES];
        for (int i = 0; i < o->repetitions; i++) over[i] = sides[side].cpu_ns[i] / sides[0].cpu_ns[i];
        print_side(&table, o, names[side], &costs[side], &sides[side]);
        bench_number(&table, "over_without_cpu", 4, bench_statistics(over, o->repetitions).median);
        bench_number(&table, "flops_over_without", 4, (double)costs[side].flops / (double)costs[0].flops);
        bench_end_row(&table);
    }
    if (!rc) bench_end(&table);
    lk_cache_end_walk(&walk);
    lk_free(sides);
    return rc;
}

static enum lk_code run(struct lk_device *dev, struct job *job) {
    const struct options *o = job->o;
    struct lk_cost cost;
    struct samples sides[2]; /* ours, the peer's */
    struct bench_peer peer = {0};
    LK_TRY(prepare(dev, job, &cost));
    bool peer_runs = !o->peer || start_peer(&peer, o);
    enum lk_code rc = LK_OK;
    for (int i = -1; i < o->repetitions && !rc && peer_runs; i++) { /* -1: warm-up */
        int at = i < 0 ? 0 : i;
        double start = bench_now_ns(), cpu_start = bench_cpu_ns();
        rc = forward(dev, job);
        sides[0].ns[at] = bench_now_ns() - start;
        sides[0].cpu_ns[at] = bench_cpu_ns() - cpu_start;
        if (o->peer) peer_runs = bench_peer_run(&peer, &sides[1].ns[at], &sides[1].cpu_ns[at]);
    }
    if (!peer_runs) rc = lk_fail(LK_E_INPUT, "peer: %s: did not start or answer", o->peer);
    if (!rc) print_sides(dev, job, &cost, sides, &peer);
    bench_peer_stop(&peer);
    if (!rc && o->per_op) rc = print_per_op(dev, job, o->format);
    return rc;
}

/* The model, and with -l the same with its adapter. */
static enum lk_code open_models(const struct options *o, const struct lk_checkpoint *checkpoint, void *models[2],
                                struct lk_loras **loras) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/config.json", o->folder, o->family->folder);
    if (o->lora) LK_TRY(lk_loras_open(loras, &o->lora, 1, true));
    for (int i = 0; i < (o->lora ? 2 : 1); i++) {
        struct lk_config *json;
        LK_TRY(lk_config_open(&json, path));
        dit_flux2_loras = i ? *loras : NULL;
        LK_TRY(o->family->open(&models[i], json, checkpoint, o->dtype));
    }
    return LK_OK;
}

static enum lk_code open_and_run(const struct options *o, struct lk_device *dev) {
    char path[4096];
    struct lk_checkpoint checkpoint;
    struct lk_loras *loras = NULL;
    void *models[2] = {NULL, NULL};
    snprintf(path, sizeof path, "%s/%s", o->folder, o->family->folder);
    LK_TRY(lk_checkpoint_open(&checkpoint, path, "diffusion_pytorch_model"));
    enum lk_code rc = open_models(o, &checkpoint, models, &loras);
    if (!rc) {
        struct job job = {.model = models[0], .adapted = models[1], .o = o};
        rc = make_host_arrays(&job);
        if (!rc) rc = (o->lora ? run_adapter : o->accel ? run_cached : run)(dev, &job);
        free_host_arrays(&job);
    }
    for (int i = 0; i < 2; i++)
        if (models[i]) o->family->close(models[i]);
    lk_loras_close(loras);
    lk_checkpoint_close(&checkpoint);
    return rc;
}

static const struct dit_family *find_family(const char *name) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!strcmp(families[i]->name, name)) return families[i];
    return NULL;
}

static bool parse(struct options *o, int argc, char **argv) {
    static const struct option long_options[] = {{"family", required_argument, NULL, 'f'}, {0}};
    for (int c; (c = getopt_long(argc, argv, "f:o:r:t:d:T:N:R:p:l:c:b", long_options, NULL)) != -1;) {
        if (c == 'f')
            o->family = find_family(optarg);
        else if (c == 'o')
            o->format = optarg;
        else if (c == 'r')
            o->repetitions = atoi(optarg);
        else if (c == 't')
            o->threads = atoi(optarg);
        else if (c == 'd' && !strcmp(optarg, "f32"))
            o->dtype = LK_F32;
        else if (c == 'd' && !strcmp(optarg, "bf16"))
            o->dtype = LK_BF16;
        else if (c == 'T')
            o->n.txt = atoi(optarg);
        else if (c == 'N')
            o->n.noise = atoi(optarg);
        else if (c == 'R')
            o->n.ref = atoi(optarg);
        else if (c == 'p')
            o->peer = optarg;
        else if (c == 'l')
            o->lora = optarg;
        else if (c == 'c')
            o->accel = optarg;
        else if (c == 'b')
            o->per_op = true;
        else
            return false;
    }
    if (optind + 1 != argc) return false;
    o->folder = argv[optind];
    if ((o->lora || o->accel) && (o->peer || o->family != &dit_flux2)) return false;
    if (o->lora && o->accel) return false;
    return o->family && bench_format_known(o->format) && o->repetitions >= 1 && o->repetitions <= BENCH_MAX_SAMPLES &&
           o->threads >= 1 && o->n.txt >= 1 && o->n.noise >= 1 && o->n.ref >= 0;
}

int main(int argc, char **argv) {
    struct options o = {.format = "md", .repetitions = 5, .threads = 2, .dtype = LK_BF16};
    o.family = &dit_flux2;
    o.n = (struct dit_tokens){.txt = 512, .noise = 256, .ref = 256};
    if (!parse(&o, argc, argv)) {
        fputs("usage: bench_dit FOLDER [--family flux2|qwen|step1x|sd|stage_c|vae] [-o md|csv|json] [-r REPETITIONS] "
              "[-t THREADS] "
              "[-d bf16|f32] [-T TXT] [-N NOISE] [-R REF] [-b] [-p PEER | -l LORA | -c ACCEL]\n",
              stderr);
        return 2;
    }
    struct lk_device *dev;
    enum lk_code rc = lk_device_cpu_create(o.threads, &dev);
    if (!rc) {
        rc = open_and_run(&o, dev);
        lk_device_free(dev);
    }
    if (rc) fprintf(stderr, "bench_dit: %s\n", lk_error_text());
    return rc ? lk_exit_code(rc) : 0;
}
