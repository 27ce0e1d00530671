/* What an A100 needs at least for this project's kernels at real sizes, by the counters of the simulated GPU: modelled,
 * not measured. Each launch runs a sample of its blocks on memory that is mostly never written.
 *
 *     tools/gpusim/with-gpusim build/kernels_model [-o md|csv|json] [-n blocks] [-k word] [-v]
 *
 * -n: blocks of each launch that are run (8; 16 times as many where a block is cheap). -k: only cases whose op or
 * description has the word. -v: the simulator's own report of each case on stderr, with wasteful source lines.
 *
 * bound_us: the time of the binding resource. of_bf16: the op's FLOPs over 312 TF/s for that time. of_hbm: the
 * bytes that it must move over 2,039 GB/s for that time. bytes_over_min:
 * bytes of touched sectors, once per launch, over what the op must read and write once. conflicts: share of the
 * shared-memory wavefronts that bank conflicts cost. sectors: share of the sectors' bytes that were asked for. fill:
 * how evenly the blocks spread over 108 SMs. spills: bytes per thread. */
#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/kernels_model.h"
#include "kernels/cuda/runtime/driver.h"

/* What the simulated driver offers besides the driver's calls (tools/gpusim/counters/counts.h). */
static struct {
    void (*count)(bool on);
    void (*forget)(void);
    void (*region)(uint64_t address, uint64_t bytes);
    void (*sample)(uint64_t blocks);
    char *(*text)(const char *format);
} gpusim;

static void *symbol(void *library, const char *name) { return library ? dlsym(library, name) : NULL; }

static bool find_gpusim(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    *(void **)&gpusim.count = symbol(library, "gpusim_count");
    *(void **)&gpusim.forget = symbol(library, "gpusim_forget");
    *(void **)&gpusim.region = symbol(library, "gpusim_region");
    *(void **)&gpusim.sample = symbol(library, "gpusim_sample");
    *(void **)&gpusim.text = symbol(library, "gpusim_counts_text");
    return gpusim.count && gpusim.forget && gpusim.region && gpusim.sample && gpusim.text;
}

static double number(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItem(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}
static double sum_of(const cJSON *object, const char *key) { /* over an object's objects */
    double sum = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, object) sum += number(item, key);
    return sum;
}

/* All launches of an op. */
struct model {
    char kernels[120], bound[16];
    double seconds, longest, blocks, run, registers, spills, blocks_per_sm, fill;
    double unique, requested, sectors, wavefronts, conflicts, instructions;
};

static void add_kernel(struct model *m, const cJSON *kernel) {
    const cJSON *global = cJSON_GetObjectItem(kernel, "global"), *shared = cJSON_GetObjectItem(kernel, "shared");
    const cJSON *unique = cJSON_GetObjectItem(kernel, "unique_bytes"), *model = cJSON_GetObjectItem(kernel, "modelled");
    const cJSON *name = cJSON_GetObjectItem(kernel, "kernel"), *bound = cJSON_GetObjectItem(model, "bound");
    size_t at = strlen(m->kernels);
    snprintf(m->kernels + at, sizeof m->kernels - at, "%s%s", at ? ", " : "",
             cJSON_IsString(name) ? name->valuestring : "?");
    double seconds = number(model, "seconds");
    m->seconds += seconds;
    m->unique += number(unique, "read") + number(unique, "written");
    m->requested += sum_of(global, "bytes");
    m->sectors += sum_of(global, "sectors");
    m->wavefronts += sum_of(shared, "wavefronts");
    m->conflicts += sum_of(shared, "bank_conflicts");
    m->instructions += number(kernel, "instructions");
    if (number(kernel, "spill_bytes") > m->spills) m->spills = number(kernel, "spill_bytes");
    if (seconds < m->longest) return; /* the rest is the longest kernel's */
    m->longest = seconds;
    m->blocks = number(kernel, "blocks");
    m->run = number(kernel, "blocks_run");
    m->registers = number(kernel, "registers");
    m->blocks_per_sm = number(kernel, "blocks_per_sm");
    m->fill = number(model, "fill");
    snprintf(m->bound, sizeof m->bound, "%s", cJSON_IsString(bound) ? bound->valuestring : "?");
}

static void print_report(void) {
    char *text = gpusim.text("text");
    fprintf(stderr, "%s", text ? text : "");
    free(text);
}

static bool read_counts(struct model *m) {
    char *text = gpusim.text("json");
    cJSON *root = text ? cJSON_Parse(text) : NULL;
    const cJSON *kernel, *kernels = cJSON_GetObjectItem(root, "kernels");
    cJSON_ArrayForEach(kernel, kernels) add_kernel(m, kernel);
    bool any = cJSON_GetArraySize(kernels) > 0;
    cJSON_Delete(root);
    free(text);
    return any;
}

static double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

static void print_row(struct bench_table *table, const struct model_case *c, const struct lk_cost *cost,
                      const struct model *m) {
    char sizes[96] = "";
    for (int i = 0, n = 0; i < 4 && c->sizes[i]; i++)
        n += snprintf(sizes + n, sizeof sizes - (size_t)n, "%s%lld", i ? "x" : "", (long long)c->sizes[i]);
    bench_text(table, "op", "%s", c->op);
    bench_text(table, "what", "%s", c->what);
    bench_text(table, "sizes", "%s", sizes);
    bench_text(table, "kernels", "%s", m->kernels);
    bench_number(table, "blocks", 0, m->blocks);
    bench_number(table, "run", 0, m->run);
    bench_number(table, "per_sm", 0, m->blocks_per_sm);
    bench_number(table, "registers", 0, m->registers);
    bench_number(table, "spills", 0, m->spills);
    bench_number(table, "bound_us", 1, 1e6 * m->seconds);
    bench_text(table, "bound", "%s", m->bound);
    bench_number(table, "of_bf16", 3, share((double)cost->flops, m->seconds * 312e12));
    bench_number(table, "of_hbm", 3, share((double)cost->bytes, m->seconds * 2.039e12));
    bench_number(table, "bytes_over_min", 3, share(m->unique, (double)cost->bytes));
    bench_number(table, "sectors", 3, share(m->requested, 32 * m->sectors));
    bench_number(table, "conflicts", 4, share(m->conflicts, m->wavefronts));
    bench_number(table, "fill", 3, m->fill);
    bench_end_row(table);
}

static bool is_product(const struct model_case *c) {
    return !strcmp(c->op, "linear") || !strcmp(c->op, "attention") || !strcmp(c->op, "conv2d");
}

static enum lk_code model(struct lk_device *dev, const struct model_case *c, uint64_t blocks, bool report,
                          struct bench_table *table) {
    struct model m = {.bound = ""};
    size_t mark = lk_arena_mark(&dev->arena);
    dev->cost = (struct lk_cost){0};
    gpusim.forget();
    gpusim.sample(is_product(c) ? blocks : 16 * blocks);
    enum lk_code rc = c->run(dev, c->sizes);
    uint32_t wait;
    struct lk_tensor last = LK_TENSOR(dev->arena.base, LK_I32, 1);
    if (!rc) rc = lk_download(dev, &wait, &last); /* waits for the launch */
    lk_arena_release(&dev->arena, mark);
    if (!rc && !read_counts(&m)) rc = lk_fail(LK_E_INTERNAL, "%s, %s: no launch was counted", c->op, c->what);
    if (!rc && report) print_report();
    if (!rc) print_row(table, c, &dev->cost, &m);
    return rc;
}

int main(int argc, char **argv) {
    struct bench_table table = {.format = "md"};
    const char *blocks = "8", *word = "";
    int option, n;
    bool report = false;
    while ((option = getopt(argc, argv, "o:n:k:v")) != -1) {
        if (option == 'o') table.format = optarg;
        if (option == 'n') blocks = optarg;
        if (option == 'k') word = optarg;
        if (option == 'v') report = true;
        if (option == '?') return 2;
    }
    if (!bench_format_known(table.format)) {
        fprintf(stderr, "kernels_model: -o %s: expected md, csv or json\n", table.format);
        return 2;
    }
    if ((n = atoi(blocks)) < 1) {
        fprintf(stderr, "kernels_model: -n %s: expected a number of blocks\n", blocks);
        return 2;
    }
    /* Before the driver is loaded: it reads them once. Sums in order do for counting. */
    setenv("GPUSIM_SAMPLE", blocks, 1);
    setenv("GPUSIM_MMA", "fast", 0);
    struct lk_device *dev = NULL;
    enum lk_code rc = lk_device_cuda_create(0, &dev);
    if (!rc && !find_gpusim())
        rc = lk_fail(LK_E_DEVICE, "kernels_model: %s is no simulated GPU; use tools/gpusim/with-gpusim", dev->name);
    if (!rc) rc = lk_device_prepare(dev, (size_t)16 << 30);
    if (!rc) {
        gpusim.count(true);
        model_on_tensor = gpusim.region;
    }
    for (size_t i = 0; !rc && i < n_model_cases; i++)
        if (strstr(model_cases[i].op, word) || strstr(model_cases[i].what, word))
            rc = model(dev, &model_cases[i], (uint64_t)n, report, &table);
    bench_end(&table);
    if (rc) fprintf(stderr, "%s\n", lk_error_text());
    lk_device_free(dev);
    return lk_exit_code(rc);
}
