/* Runs a fuzz target without libFuzzer, the one by whose name the program is called: every file of the corpus folder as
 * it is, then a fixed number of seeded mutations of them (FUZZ_RUNS, default 20000), so that the everyday suite
 * exercises each parser the same way on every machine. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int target_fn(const uint8_t *data, size_t size);
#define TARGET(name) target_fn name;
#include "fuzz_targets.h"
#undef TARGET

static const struct {
    const char *name;
    target_fn *fn;
} targets[] = {
#define TARGET(name) {#name, name},
#include "fuzz_targets.h"
};

struct sample {
    uint8_t *bytes;
    size_t n;
};

static uint64_t seed = 1;
static uint64_t next_random(void) {
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

/* Each input in a block of its own exact size, so that AddressSanitizer sees a read past its end. */
static void run(target_fn *target, const uint8_t *bytes, size_t n) {
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact) abort();
    memcpy(exact, bytes, n);
    target(exact, n);
    free(exact);
}

static size_t mutate(uint8_t *bytes, size_t n, size_t max, const struct sample *other) {
    static const uint8_t interesting[] = {0,   1,   0x7f, 0x80, 0xff, '"', '{', '}',
                                          '[', ']', ',',  ':',  '\\', '-', '9', 'e'};
    int n_edits = 1 + (int)(next_random() % 6);
    for (int i = 0; i < n_edits; i++) {
        size_t at = n ? next_random() % n : 0, length = 1 + next_random() % 16;
        switch (next_random() % 7) {
        case 0: /* flip a bit */
            if (n) bytes[at] ^= (uint8_t)(1u << (next_random() % 8));
            break;
        case 1:
            if (n) bytes[at] = interesting[next_random() % sizeof interesting];
            break;
        case 2:
            if (n) bytes[at] = (uint8_t)next_random();
            break;
        case 3: /* delete */
            if (length > n - at) length = n - at;
            memmove(bytes + at, bytes + at + length, n - at - length);
            n -= length;
            break;
        case 4: /* repeat a piece */
            if (length > n - at) length = n - at;
            if (n + length > max) break;
            memmove(bytes + at + length, bytes + at, n - at);
            n += length;
            break;
        case 5: /* cut */
            if (n && next_random() % 4 == 0) n = at;
            break;
        case 6: /* splice from another sample */
            if (!other->n) break;
            {
                size_t from = next_random() % other->n;
                if (length > other->n - from) length = other->n - from;
                if (at + length > n) break;
                memcpy(bytes + at, other->bytes + from, length);
            }
            break;
        }
    }
    return n;
}

int main(int argc, char **argv) {
    const char *runs_text = getenv("FUZZ_RUNS");
    long n_runs = runs_text ? atol(runs_text) : 20000;
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    target_fn *target = NULL;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(targets[i].name, name)) target = targets[i].fn;
    struct dirent **entries;
    int n_entries = argc > 1 && target ? scandir(argv[1], &entries, NULL, by_name) : -1;
    if (n_entries < 0) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    struct sample *samples = calloc((size_t)n_entries + 1, sizeof *samples);
    size_t n_samples = 0, largest = 0;
    for (int i = 0; i < n_entries; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], entries[i]->d_name);
        FILE *f = entries[i]->d_name[0] == '.' ? NULL : fopen(path, "rb");
        free(entries[i]);
        if (!f) continue;
        fseek(f, 0, SEEK_END);
        struct sample *s = &samples[n_samples++];
        s->n = (size_t)ftell(f);
        rewind(f);
        s->bytes = malloc(s->n + 1);
        if (!s->bytes || fread(s->bytes, 1, s->n, f) != s->n) return 1;
        fclose(f);
        if (s->n > largest) largest = s->n;
        run(target, s->bytes, s->n);
    }
    free(entries);
    if (!n_samples) {
        fprintf(stderr, "%s: no corpus in %s\n", argv[0], argv[1]);
        return 1;
    }
    size_t max = largest * 2 + 64;
    uint8_t *work = malloc(max);
    for (long i = 0; i < n_runs; i++) {
        const struct sample *s = &samples[next_random() % n_samples];
        memcpy(work, s->bytes, s->n);
        run(target, work, mutate(work, s->n, max, &samples[next_random() % n_samples]));
    }
    printf("%zu corpus files, %ld mutations\n", n_samples, n_runs);
    for (size_t i = 0; i < n_samples; i++) free(samples[i].bytes);
    free(samples);
    free(work);
    return 0;
}
