#include "exec/registry.h"
#include "exec/lanes.h"

#include <stdio.h>

#define FILES(X)                                                                                                       \
    X(ops_integer)                                                                                                     \
    X(ops_bits)                                                                                                        \
    X(ops_number)                                                                                                      \
    X(ops_compare)                                                                                                     \
    X(ops_memory)                                                                                                      \
    X(ops_control)                                                                                                     \
    X(ops_convert)                                                                                                     \
    X(ops_warp)                                                                                                        \
    X(ops_atomic)                                                                                                      \
    X(ops_async)                                                                                                       \
    X(ops_matrix)                                                                                                      \
    X(ops_wmma)                                                                                                        \
    X(ops_builtin)
#define DECLARE(file)                                                                                                  \
    extern const struct gpusim_entry gpusim_##file##_base[], gpusim_##file##_avx2[], gpusim_##file##_avx512[];
FILES(DECLARE)
enum { N_SLOTS = 4096 };
static const struct gpusim_entry *slots[N_SLOTS];

static uint32_t hash(const char *key) {
    uint32_t h = 2166136261u;
    for (; *key; key++) h = (h ^ (uint8_t)*key) * 16777619u;
    return h;
}

static void add_table(const struct gpusim_entry *entry) {
    for (; entry->key; entry++) {
        uint32_t at = hash(entry->key) % N_SLOTS;
        while (slots[at]) at = (at + 1) % N_SLOTS;
        slots[at] = entry;
    }
}

static void fill(void) {
    const char *isa = gpusim_settings()->isa;
    gpusim_num_jitter(gpusim_settings()->mufu);
    if (isa) gpusim_num_use(!strcmp(isa, "base") ? "portable" : isa);
#define BASE(file)   add_table(gpusim_##file##_base);
#define AVX2(file)   add_table(gpusim_##file##_avx2);
#define AVX512(file) add_table(gpusim_##file##_avx512);
#ifdef __x86_64__
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx512 && (!isa || !strcmp(isa, "avx512"))) {
        FILES(AVX512)
        return;
    }
    if (avx2 && (!isa || !strcmp(isa, "avx2") || !strcmp(isa, "avx512"))) {
        FILES(AVX2)
        return;
    }
#endif
    (void)isa;
    FILES(BASE)
}

static gpusim_handler *find(const char *key) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    for (uint32_t at = hash(key) % N_SLOTS; slots[at]; at = (at + 1) % N_SLOTS)
        if (!strcmp(slots[at]->key, key)) return slots[at]->run;
    return NULL;
}

gpusim_handler *gpusim_find_handler(const char *key, const char *type) {
    char full[96];
    if (!type) return find(key);
    snprintf(full, sizeof full, "%s.%s", key, type);
    gpusim_handler *run = find(full);
    if (run || !strchr("usf", type[0]) || strlen(type) > 3) return run;
    snprintf(full, sizeof full, "%s.b%s", key, type + 1);
    return find(full);
}
