/* The turns of a case: the cpu device, the other device, the other device on some of the rows. */
#include "kernels/selftest/selftest.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/selftest/case.h"

#define SCRATCH_OF_LIBRARIES ((size_t)256 << 20)
#define ARENA_SMALL          ((size_t)16 << 20)
#define ARENA_LARGE          ((size_t)1 << 30)
#define BAR_F32              1e-10
#define BAR_BF16             1e-5

/* An op with its type forgotten: its tensors come first (engine/ops.h). */
struct call {
    const char *name;
    int n_tensors;
    union {
#define MEMBER(name, last) struct lk_##name name;
        LK_OPS(MEMBER)
        const struct lk_tensor *tensors[SELFTEST_MOST_TENSORS];
    } op;
    enum lk_code (*run)(struct lk_device *dev, const struct call *call);
};

#define CALL(op_name, last)                                                                                            \
    static enum lk_code call_##op_name(struct lk_device *dev, const struct call *call) {                               \
        return lk_##op_name(dev, &call->op.op_name);                                                                   \
    }                                                                                                                  \
    static void make_##op_name(struct selftest_case *c, struct call *call) {                                           \
        *call = (struct call){.name = #op_name, .n_tensors = LK_TENSORS_##op_name, .run = call_##op_name};             \
        lk_selftest_##op_name(c, &call->op.op_name);                                                                      \
    }
LK_OPS(CALL)

#define NAME(name, last) #name,
const char *const lk_selftest_ops[] = {LK_OPS(NAME)};
#define MAKE(name, last) make_##name,
static void (*const make_case[])(struct selftest_case *, struct call *) = {LK_OPS(MAKE)};
const int lk_selftest_n_ops = sizeof lk_selftest_ops / sizeof *lk_selftest_ops;

/* What group sums are worth, the norm shows: conv2d with sums is followed by group norm of its output, in place, with
 * the bias as weight and bias. */
static enum lk_code run_call(struct lk_device *dev, const struct call *call) {
    const struct lk_conv2d *op = &call->op.conv2d;
    LK_TRY(call->run(dev, call));
    if (call->run != call_conv2d || !op->group_sums) return LK_OK;
    return lk_group_norm(dev, &(struct lk_group_norm){.y = op->y,
                                                      .x = op->y,
                                                      .w = op->bias,
                                                      .b = op->bias,
                                                      .sums = op->group_sums,
                                                      .n_groups = (int)op->group_sums->shape[0],
                                                      .eps = 1e-6f});
}

static void case_fails(struct selftest_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void case_fails(struct selftest_case *c, const char *format, ...) {
    struct lk_selftest_result *r = c->result;
    va_list args;
    va_start(args, format);
    if (!r->message[0]) vsnprintf(r->message, sizeof r->message, format, args);
    va_end(args);
}

/* What differs between the bytes around the elements of two blocks; NULL if nothing. */
static const char *difference_around(const struct lk_selftest_tensor *s, const unsigned char *a,
                                     const unsigned char *b) {
    const struct lk_tensor *t = &s->cpu;
    size_t size = lk_dtype_size(t->dtype), row = (size_t)lk_tensor_row_numel(t) * size, ld = (size_t)t->ld * size;
    if (memcmp(a, b, s->offset)) return "before it";
    if (memcmp(a + s->bytes - SELFTEST_GUARD, b + s->bytes - SELFTEST_GUARD, SELFTEST_GUARD)) return "after it";
    for (int64_t r = 0; r + 1 < t->shape[0]; r++) {
        size_t gap = s->offset + (size_t)r * ld + row;
        if (ld > row && memcmp(a + gap, b + gap, ld - row)) return "between its rows";
    }
    return NULL;
}

/* Error of an output against the cpu device's. */
static void compare(struct selftest_case *c, const struct call *call, const struct lk_selftest_tensor *s) {
    struct lk_selftest_result *r = c->result;
    const struct lk_tensor *t = &s->cpu;
    double squares = 0.0, norm = 0.0, bar = t->dtype == LK_F32 ? BAR_F32 : BAR_BF16;
    int64_t n = lk_tensor_numel(t), different = 0;
    for (int64_t i = 0; i < n; i++) {
        double want = lk_selftest_get(t, s->computed + s->offset, i), got = lk_selftest_get(t, s->got + s->offset, i);
        bool same = want == got ? signbit(want) == signbit(got) : isnan(want) && isnan(got);
        if (same) got = want = isfinite(want) ? want : 0.0;
        squares += (got - want) * (got - want);
        norm += want * want;
        different += !same;
    }
    double error = norm > 0.0 ? squares / norm : squares;
    double *worst = t->dtype == LK_F32 ? &r->worst_f32 : &r->worst_bf16;
    if (!(error <= *worst)) *worst = error;
    r->n_values += n;
    r->n_different += different;
    char shape[96];
    int64_t most = c->exact ? 0 : c->nearly ? n / 100 : n;
    if (different > most)
        case_fails(c, "%s: output %s: %lld of %lld values have other bits", call->name, lk_tensor_describe(t, shape),
                   (long long)different, (long long)n);
    if (!(error <= bar))
        case_fails(c, "%s: output %s: expected an NMSE of at most %g, got %g", call->name, lk_tensor_describe(t, shape),
                   bar, error);
}

/* Puts all blocks on the device as they were in the beginning. */
static enum lk_code upload(struct selftest_case *c, struct lk_device *dev) {
    for (int i = 0; i < c->n_tensors; i++) {
        struct lk_selftest_tensor *s = &c->tensors[i];
        struct lk_tensor block = LK_TENSOR(s->device, LK_U8, (int64_t)s->bytes);
        LK_TRY(lk_upload(dev, &block, s->initial));
    }
    return LK_OK;
}

static enum lk_code download(struct selftest_case *c, struct lk_device *dev, bool part) {
    for (int i = 0; i < c->n_tensors; i++) {
        struct lk_selftest_tensor *s = &c->tensors[i];
        struct lk_tensor block = LK_TENSOR(s->device, LK_U8, (int64_t)s->bytes);
        LK_TRY(lk_download(dev, part ? s->part : s->got, &block));
    }
    return LK_OK;
}

/* The call with the device's tensors; rows [first, first + n) of those that have the op's rows, all if n is 0. */
static void remap(struct selftest_case *c, const struct call *call, struct call *out, struct lk_tensor *tensors,
                  int64_t first, int64_t n) {
    *out = *call;
    for (int i = 0; i < call->n_tensors; i++) {
        if (!call->op.tensors[i]) continue;
        struct lk_selftest_tensor *s = lk_selftest_find(c, call->op.tensors[i]);
        tensors[i] = s->cpu;
        tensors[i].data = s->device + s->offset;
        if (n && s->rows) tensors[i] = lk_tensor_rows(&tensors[i], first, n);
        out->op.tensors[i] = &tensors[i];
    }
}

/* Some rows alone must give the bits that they have among the others. */
static enum lk_code check_rows(struct selftest_case *c, struct lk_device *dev, const struct call *call) {
    struct call here;
    struct lk_tensor tensors[SELFTEST_MOST_TENSORS];
    int64_t n_rows = 0;
    for (int i = 0; i < c->n_tensors; i++)
        if (c->tensors[i].rows) n_rows = c->tensors[i].cpu.shape[0];
    if (n_rows < 2) return LK_OK;
    int64_t first = lk_selftest_int(c, 0, n_rows - 1), n = lk_selftest_int(c, 1, n_rows - first);
    LK_TRY(upload(c, dev));
    remap(c, call, &here, tensors, first, n);
    LK_TRY(here.run(dev, &here));
    LK_TRY(download(c, dev, true));
    for (int i = 0; i < c->n_tensors; i++) {
        const struct lk_selftest_tensor *s = &c->tensors[i];
        size_t size = lk_dtype_size(s->cpu.dtype), row = (size_t)lk_tensor_row_numel(&s->cpu) * size;
        if (!s->output || !s->rows) continue;
        for (int64_t r = first; r < first + n; r++) {
            size_t at = s->offset + (size_t)(r * s->cpu.ld) * size;
            if (memcmp(s->got + at, s->part + at, row))
                case_fails(c, "%s: row %lld has other bits among %lld rows than among %lld", call->name, (long long)r,
                           (long long)n, (long long)n_rows);
        }
    }
    return LK_OK;
}

static enum lk_code place(struct selftest_case *c, struct lk_device *dev) {
    for (int i = 0; i < c->n_tensors; i++) {
        struct lk_selftest_tensor *s = &c->tensors[i];
        void *block;
        memcpy(s->computed, s->initial, s->bytes);
        LK_TRY(lk_arena_alloc(&dev->arena, s->bytes, &block));
        s->device = block;
    }
    return LK_OK;
}

static enum lk_code run_case(struct selftest_case *c, struct lk_device *dev, struct lk_device *cpu,
                             const struct call *call) {
    struct call here;
    struct lk_tensor tensors[SELFTEST_MOST_TENSORS];
    LK_TRY(place(c, dev));
    LK_TRY(run_call(cpu, call));
    LK_TRY(upload(c, dev));
    remap(c, call, &here, tensors, 0, 0);
    LK_TRY(run_call(dev, &here));
    LK_TRY(download(c, dev, false));
    for (int i = 0; i < c->n_tensors; i++) {
        const struct lk_selftest_tensor *s = &c->tensors[i];
        const char *where = difference_around(s, s->initial, s->got);
        char shape[96];
        if (where) case_fails(c, "%s: %s was written %s", call->name, lk_tensor_describe(&s->cpu, shape), where);
        if (s->output)
            compare(c, call, s);
        else if (!s->own && memcmp(s->initial, s->got, s->bytes))
            case_fails(c, "%s: the input %s was written", call->name, lk_tensor_describe(&s->cpu, shape));
    }
    return c->rows_may_differ ? LK_OK : check_rows(c, dev, call);
}

/* A count in host memory has to be told apart for the two devices. */
static enum lk_code run_nonfinite(struct selftest_case *c, struct lk_device *dev, struct lk_device *cpu,
                                  const struct call *call) {
    int64_t counts[2] = {0, 0};
    struct call here = *call, there;
    struct lk_tensor tensors[SELFTEST_MOST_TENSORS];
    LK_TRY(place(c, dev));
    here.op.nonfinite.count = &counts[0];
    LK_TRY(here.run(cpu, &here));
    LK_TRY(upload(c, dev));
    remap(c, call, &there, tensors, 0, 0);
    there.op.nonfinite.count = &counts[1];
    LK_TRY(there.run(dev, &there));
    c->result->n_values++;
    c->result->n_different += counts[0] != counts[1];
    if (counts[0] != counts[1])
        case_fails(c, "nonfinite: expected %lld, got %lld", (long long)counts[0], (long long)counts[1]);
    return LK_OK;
}

static enum lk_code one_case(struct lk_device *dev, struct lk_device *cpu, int op, struct selftest_case *c) {
    struct call call;
    int64_t count = 0;
    make_case[op](c, &call);
    if (c->failed) return lk_fail(c->failed, "selftest: %s: out of memory", call.name);
    size_t mark = lk_arena_mark(&dev->arena);
    bool nonfinite = !strcmp(call.name, "nonfinite");
    if (nonfinite) call.op.nonfinite.count = &count;
    enum lk_code rc = (nonfinite ? run_nonfinite : run_case)(c, dev, cpu, &call);
    lk_arena_release(&dev->arena, mark);
    return rc;
}

enum lk_code lk_selftest_op(struct lk_device *dev, struct lk_device *cpu, int op,
                            const struct lk_selftest_options *options, struct lk_selftest_result *out) {
    const size_t arena = options->large ? ARENA_LARGE : ARENA_SMALL;
    *out = (struct lk_selftest_result){0};
    LK_TRY(lk_device_prepare(dev, arena + (options->libraries ? SCRATCH_OF_LIBRARIES : 0)));
    LK_TRY(lk_device_prepare(cpu, arena));
    for (int i = 0; i < options->n_cases; i++) {
        struct lk_selftest_result one = {0};
        struct selftest_case c = {.random = options->seed * 1000003u + (uint64_t)op * 7919u + (uint64_t)i,
                                  .large = options->large,
                                  .rows_may_differ = options->libraries,
                                  .dtype = i % 2 ? LK_F32 : LK_BF16,
                                  .result = &one};
        enum lk_code rc = one_case(dev, cpu, op, &c);
        lk_selftest_case_free(&c);
        if (rc) return lk_fail_prefix(rc, "selftest: %s, case %d", lk_selftest_ops[op], i);
        out->n_cases++;
        out->n_failed += one.message[0] != 0;
        out->n_values += one.n_values;
        out->n_different += one.n_different;
        if (!(one.worst_f32 <= out->worst_f32)) out->worst_f32 = one.worst_f32;
        if (!(one.worst_bf16 <= out->worst_bf16)) out->worst_bf16 = one.worst_bf16;
        if (!out->message[0] && one.message[0])
            snprintf(out->message, sizeof out->message, "case %d: %.480s", i, one.message);
    }
    return LK_OK;
}
