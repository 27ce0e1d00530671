/* Steps of text generation on the CPU, beside llama.cpp and transformers:
 *
 *     bench_decode FOLDER [-o md|csv|json] [-r REPETITIONS] [-t THREADS] [-B SEQUENCES] [-P PROMPT] [-S STEPS]
 *                  [-p PEER]...
 *
 * FOLDER is a model as "PYTHON bench/peers/decode.py --make FOLDER" makes it: released widths, few layers. Each -p
 * "PYTHON bench/peers/decode.py" with --peer ... starts a peer. A repetition is a run of each in turn, and a plain read
 * of as many bytes as a step's weights have: STEPS greedy steps of all sequences together, after their prompts. "of
 * read" is the speed at which weights pass over that of the plain read; ratios to peers are within a repetition. The
 * last column says how many of the ids are the peer's too: arithmetic differs, so later ones may be others. */
#include <unistd.h>

#include "bench/bench.h"
#include "bench/peer.h"
#include "bench/probe.h"
#include "engine/base/alloc.h"
#include "models/common/files.h"
#include "models/text/generate.h"
#include "models/text/mistral3.h"
#include "models/text/qwen25_vl.h"

#define MAX_PEERS 4
#define MAX_IDS   4096 /* of a prompt, and of all replies */

struct options {
    const char *format, *folder, *peers[MAX_PEERS];
    int repetitions, threads, n_sequences, n_prompt, n_steps, n_peers;
};

struct samples {
    double ns[BENCH_MAX_SAMPLES], cpu_ns[BENCH_MAX_SAMPLES];
};

struct job {
    const struct options *o;
    struct lk_device *dev;
    struct lk_checkpoint checkpoint;
    struct lk_vlm vlm;
    union {
        struct lk_qwen25_vl qwen;
        struct lk_mistral3 mistral;
    };
    bool is_mistral;
    double bytes; /* of the weights that a step reads */
    int32_t prompts[LK_VLM_MAX_SEQUENCES][MAX_IDS], ids[MAX_IDS];
    int n_first;             /* sequences that have their first token */
    double start, cpu_start; /* when all had */
    struct samples sides[1 + MAX_PEERS];
    double read[BENCH_MAX_SAMPLES]; /* GB/s */
    struct bench_peer running[MAX_PEERS];
};

static enum lk_code open_model(struct job *job) {
    struct lk_config *json;
    const char *type = "";
    LK_TRY(lk_component_config(&json, job->o->folder, "config.json", NULL));
    lk_config_string_or(json, "model_type", &type, "");
    job->is_mistral = !strcmp(type, "mistral3");
    if (job->is_mistral) {
        struct lk_mistral3_config config;
        LK_TRY(lk_mistral3_config_read(&config, json));
        LK_TRY(lk_mistral3_bind(&job->mistral, &config, &job->checkpoint, LK_BF16));
        job->vlm = lk_mistral3_view(&job->mistral);
    } else {
        struct lk_qwen25_vl_config config;
        LK_TRY(lk_qwen25_vl_config_read(&config, json));
        LK_TRY(lk_qwen25_vl_bind(&job->qwen, &config, true, &job->checkpoint, LK_BF16));
        job->vlm = lk_qwen25_vl_view(&job->qwen);
    }
    job->bytes = (double)lk_tensor_bytes(job->vlm.lm_head);
    for (int64_t i = 0; i < job->vlm.n_layers; i++) {
        struct lk_decoder_layer l;
        job->vlm.layer(job->vlm.model, i, &l);
        const struct lk_tensor *read[] = {l.q.weight, l.k.weight, l.v.weight, l.o.weight, l.gate, l.up, l.down};
        for (size_t j = 0; j < sizeof read / sizeof *read; j++) job->bytes += (double)lk_tensor_bytes(read[j]);
    }
    return LK_OK;
}

/* Sequence after sequence gets its first token; steps of all follow. */
static enum lk_code on_token(void *context, int32_t id, int64_t n) {
    struct job *job = context;
    (void)id;
    if (n == 1 && ++job->n_first == job->o->n_sequences) {
        job->start = bench_now_ns();
        job->cpu_start = bench_cpu_ns();
    }
    return LK_OK;
}

static enum lk_code generate(struct job *job, double *ns, double *cpu_ns) {
    const struct options *o = job->o;
    struct lk_generate_request requests[LK_VLM_MAX_SEQUENCES] = {0};
    struct lk_generation out[LK_VLM_MAX_SEQUENCES];
    const int n_new = o->n_steps + 1;
    for (int i = 0; i < o->n_sequences; i++) {
        struct lk_generate_request *r = &requests[i];
        *r = (struct lk_generate_request){.ids = job->prompts[i],
                                          .n_ids = o->n_prompt,
                                          .n_valid_ids = job->vlm.vocab_size,
                                          .token = on_token,
                                          .token_context = job};
        lk_generation_config_init(&r->config);
        r->config.max_new_tokens = n_new;
    }
    job->n_first = 0;
    enum lk_code rc = lk_generate(job->dev, &job->vlm, LK_BF16, requests, o->n_sequences, o->n_sequences, out);
    *ns = bench_now_ns() - job->start;
    *cpu_ns = bench_cpu_ns() - job->cpu_start;
    for (int i = 0; i < o->n_sequences; i++) {
        if (!rc) memcpy(job->ids + i * n_new, out[i].ids, (size_t)n_new * sizeof *job->ids);
        lk_generation_free(&out[i]);
    }
    return rc;
}

static bool start_peer(struct bench_peer *peer, const struct options *o, const char *command) {
    char numbers[4][16];
    const int values[4] = {o->threads, o->n_sequences, o->n_prompt, o->n_steps};
    for (int i = 0; i < 4; i++) snprintf(numbers[i], sizeof numbers[i], "%d", values[i]);
    char *args[] = {(char *)o->folder, "--threads", numbers[0], "--batch",  numbers[1],
                    "--prompt",        numbers[2],  "--steps",  numbers[3], NULL};
    return bench_peer_start(peer, command, args);
}

/* Share of the peer's ids that are ours; NaN when its file cannot be read. */
static double same_ids(const struct job *job, struct bench_peer *peer) {
    char path[] = "/tmp/bench_decode_XXXXXX";
    const int n = job->o->n_sequences * (job->o->n_steps + 1);
    int32_t theirs[MAX_IDS];
    int fd = mkstemp(path), same = 0;
    if (fd < 0) return NAN;
    close(fd);
    FILE *file = bench_peer_dump(peer, path) ? fopen(path, "rb") : NULL;
    const bool whole = file && fread(theirs, sizeof *theirs, (size_t)n, file) == (size_t)n;
    if (file) fclose(file);
    unlink(path);
    for (int i = 0; whole && i < n; i++) same += theirs[i] == job->ids[i];
    return whole ? (double)same / n : NAN;
}

/* The median of numerator / denominator, repetition by repetition. */
static double ratio(const double *numerator, const double *denominator, int n) {
    double ratios[BENCH_MAX_SAMPLES];
    for (int i = 0; i < n; i++) ratios[i] = numerator[i] / denominator[i];
    return bench_statistics(ratios, n).median;
}

static void print_side(struct bench_table *table, struct job *job, int side) {
    const struct options *o = job->o;
    const struct samples *s = &job->sides[side];
    const int n = o->repetitions;
    double speed[BENCH_MAX_SAMPLES];
    for (int i = 0; i < n; i++) speed[i] = job->bytes * o->n_steps / s->ns[i];
    const double step_ms = bench_statistics(s->ns, n).median * 1e-6 / o->n_steps;
    bench_text(table, "implementation", "%s", side ? job->running[side - 1].description : job->dev->name);
    bench_number(table, "sequences", 0, o->n_sequences);
    bench_number(table, "ms_a_step", 1, step_ms);
    bench_number(table, "best_ms", 1, bench_statistics(s->ns, n).min * 1e-6 / o->n_steps);
    bench_number(table, "cpu_ms", 1, bench_statistics(s->cpu_ns, n).median * 1e-6 / o->n_steps);
    bench_number(table, "tokens_per_s", 2, o->n_sequences * 1e3 / step_ms);
    bench_number(table, "gb_per_s", 1, bench_statistics(speed, n).median);
    bench_number(table, "of_read", 2, ratio(speed, job->read, n));
    bench_number(table, "over_ours", 2, ratio(s->ns, job->sides[0].ns, n));
    bench_number(table, "over_ours_cpu", 2, ratio(s->cpu_ns, job->sides[0].cpu_ns, n));
    bench_number(table, "same_ids", 2, side ? same_ids(job, &job->running[side - 1]) : 1);
    bench_samples(table, s->ns, n);
    bench_end_row(table);
}

static enum lk_code run(struct job *job) {
    const struct options *o = job->o;
    struct bench_table table = {.format = o->format};
    struct lk_decoder_layer first;
    for (int s = 0; s < o->n_sequences; s++)
        for (int i = 0; i < o->n_prompt; i++) /* as the peer has them */
            job->prompts[s][i] = 16 + (int32_t)((s * 7919LL + i * 104729LL) % (job->vlm.vocab_size / 2));
    job->vlm.layer(job->vlm.model, 0, &first);
    bool peers_run = true;
    for (int p = 0; p < o->n_peers && peers_run; p++) peers_run = start_peer(&job->running[p], o, o->peers[p]);
    enum lk_code rc = LK_OK;
    for (int i = -1; i < o->repetitions && !rc && peers_run; i++) { /* -1: warm-up */
        const int at = i < 0 ? 0 : i;
        rc = generate(job, &job->sides[0].ns[at], &job->sides[0].cpu_ns[at]);
        job->read[at] = probe_read(o->threads, first.gate->data, lk_tensor_bytes(first.gate));
        for (int p = 0; p < o->n_peers && peers_run; p++)
            peers_run = bench_peer_run(&job->running[p], &job->sides[1 + p].ns[at], &job->sides[1 + p].cpu_ns[at]);
    }
    if (!peers_run) rc = lk_fail(LK_E_INPUT, "a peer did not start or answer");
    for (int side = 0; side <= o->n_peers && !rc; side++) print_side(&table, job, side);
    bench_end(&table);
    for (int p = 0; p < o->n_peers; p++)
        if (job->running[p].pid) bench_peer_stop(&job->running[p]);
    return rc;
}

static enum lk_code open_and_run(struct job *job) {
    LK_TRY(lk_checkpoint_open(&job->checkpoint, job->o->folder, "model"));
    enum lk_code rc = open_model(job);
    if (!rc) rc = run(job);
    if (job->is_mistral)
        lk_mistral3_free(&job->mistral);
    else
        lk_qwen25_vl_free(&job->qwen);
    lk_checkpoint_close(&job->checkpoint);
    return rc;
}

static bool parse(struct options *o, int argc, char **argv) {
    for (int c; (c = getopt(argc, argv, "o:r:t:B:P:S:p:")) != -1;) {
        if (c == 'o')
            o->format = optarg;
        else if (c == 'r')
            o->repetitions = atoi(optarg);
        else if (c == 't')
            o->threads = atoi(optarg);
        else if (c == 'B')
            o->n_sequences = atoi(optarg);
        else if (c == 'P')
            o->n_prompt = atoi(optarg);
        else if (c == 'S')
            o->n_steps = atoi(optarg);
        else if (c == 'p' && o->n_peers < MAX_PEERS)
            o->peers[o->n_peers++] = optarg;
        else
            return false;
    }
    if (optind + 1 != argc) return false;
    o->folder = argv[optind];
    return bench_format_known(o->format) && o->repetitions >= 1 && o->repetitions <= BENCH_MAX_SAMPLES &&
           o->threads >= 1 && o->n_sequences >= 1 && o->n_sequences <= LK_VLM_MAX_SEQUENCES && o->n_prompt >= 1 &&
           o->n_prompt <= MAX_IDS && o->n_steps >= 1 && o->n_sequences * (o->n_steps + 1) <= MAX_IDS;
}

int main(int argc, char **argv) {
    static struct options o = {
        .format = "md", .repetitions = 5, .threads = 2, .n_sequences = 1, .n_prompt = 32, .n_steps = 8};
    static struct job job = {.o = &o};
    if (!parse(&o, argc, argv)) {
        fputs("usage: bench_decode FOLDER [-o md|csv|json] [-r REPETITIONS] [-t THREADS] [-B SEQUENCES] [-P PROMPT] "
              "[-S STEPS] [-p PEER]...\n",
              stderr);
        return 2;
    }
    enum lk_code rc = lk_device_cpu_create(o.threads, &job.dev);
    if (!rc) {
        rc = open_and_run(&job);
        lk_device_free(job.dev);
    }
    if (rc) fprintf(stderr, "bench_decode: %s\n", lk_error_text());
    return rc ? lk_exit_code(rc) : 0;
}
