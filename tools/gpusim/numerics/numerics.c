#include "tools/gpusim/numerics/numerics.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "tools/gpusim/numerics/jitter.h"
#include "tools/gpusim/numerics/lanes.h"

extern const struct num_table num_table_portable;
#if defined(NUMERICS_X86)
extern const struct num_table num_table_avx2, num_table_avx512;
static int always(void) { return 1; }
static int has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
static int has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
static const struct choice {
    const char *name;
    int (*present)(void);
    const struct num_table *table;
} choices[] = {{"avx512", has_avx512, &num_table_avx512},
               {"avx2", has_avx2, &num_table_avx2},
               {"portable", always, &num_table_portable}};
#else
static int always(void) { return 1; }
static const struct choice {
    const char *name;
    int (*present)(void);
    const struct num_table *table;
} choices[] = {{"portable", always, &num_table_portable}};
#endif
enum { N_CHOICES = sizeof choices / sizeof choices[0] };

static atomic_int chosen = -1;

static const struct choice *current(void) {
    int i = atomic_load(&chosen);
    if (i < 0) {
        for (i = 0; !choices[i].present(); i++) {
        }
        atomic_store(&chosen, i);
    }
    return &choices[i];
}

bool gpusim_num_use(const char *name) {
    for (int i = 0; i < N_CHOICES; i++)
        if (!strcmp(choices[i].name, name) && choices[i].present()) {
            atomic_store(&chosen, i);
            return true;
        }
    return false;
}

const char *gpusim_num_in_use(void) { return current()->name; }

gpusim_num_fn *gpusim_num_arith(enum gpusim_num_op op, enum gpusim_num_type type, enum gpusim_num_rounding rounding,
                                unsigned flags) {
    const struct num_table *table = current()->table;
    if ((unsigned)op >= GPUSIM_NUM_N_OPS || (unsigned)rounding > GPUSIM_NUM_RPI) return NULL;
    if (op >= GPUSIM_NUM_DIV_APPROX)
        return rounding == GPUSIM_NUM_RN ? gpusim_num_jittered(op, type, flags, table->approx(op, type, flags)) : NULL;
    if (type == GPUSIM_NUM_F32) return table->arith_f32(op, rounding, flags);
    if (type == GPUSIM_NUM_F64) return table->arith_f64(op, rounding, flags);
    return table->arith_half(op, type, rounding, flags);
}

gpusim_num_fn *gpusim_num_convert(enum gpusim_num_type to, enum gpusim_num_type from, enum gpusim_num_rounding rounding,
                                  unsigned flags) {
    if ((unsigned)to >= GPUSIM_NUM_N_TYPES || (unsigned)from >= GPUSIM_NUM_N_TYPES) return NULL;
    if ((unsigned)rounding > GPUSIM_NUM_RPI) return NULL;
    return current()->table->convert(to, from, rounding, flags);
}

gpusim_num_compare_fn *gpusim_num_compare(enum gpusim_num_comparison comparison, enum gpusim_num_type type,
                                          unsigned flags) {
    if ((unsigned)comparison >= GPUSIM_NUM_N_COMPARISONS) return NULL;
    return current()->table->compare(comparison, type, flags);
}

gpusim_num_compare_fn *gpusim_num_testp(enum gpusim_num_test test, enum gpusim_num_type type) {
    return (unsigned)test < GPUSIM_NUM_N_TESTS ? current()->table->testp(test, type) : NULL;
}

/* Elements of a 32-bit register. */
static int per_register(enum gpusim_num_type type) {
    if (type == GPUSIM_NUM_F16 || type == GPUSIM_NUM_BF16) return 2;
    return type == GPUSIM_NUM_S8 || type == GPUSIM_NUM_U8 ? 4 : 1;
}

struct gpusim_num_mma_registers gpusim_num_mma_registers(const struct gpusim_num_mma *mma) {
    int matrices = mma->k == 4 && mma->a == GPUSIM_NUM_F16 ? 4 : 1; /* m8n8k4 computes four */
    int cd = matrices * mma->m * mma->n, a = matrices * mma->m * mma->k, b = matrices * mma->k * mma->n;
    return (struct gpusim_num_mma_registers){cd / 32 / per_register(mma->d), a / 32 / per_register(mma->a),
                                             b / 32 / per_register(mma->b), cd / 32 / per_register(mma->c)};
}

gpusim_num_mma_fn *gpusim_num_mma(const struct gpusim_num_mma *mma) { return current()->table->mma(mma); }
