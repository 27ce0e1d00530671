/* mma.sync of 4-bit integers and single bits, mma.sp: every shape and type of sm_80, against sums over the matrices on
 * the host. Fragments are put together as the PTX ISA's sections on them say (a_i, b_i, metadata). */
#include "tests/gpusim/common/device.h"

enum kind { S4, U4, B1, S8, U8, F16, BF16, TF32 };
static const char *const names[] = {"s4", "u4", "b1", "s8", "u8", "f16", "bf16", "tf32"};
static const int widths[] = {4, 4, 1, 8, 8, 16, 16, 32};

struct form {
    int m, k;
    enum kind a, b;
    const char *d, *suffix; /* suffix: .satfinite, .xor.popc, .and.popc */
    bool sparse;
    int selector;
};
enum { LANES = 32, MOST_K = 256 };
struct matrices {
    int a[16][MOST_K], b[8][MOST_K], c[16][8], d[16][8]; /* dense, of values; b by columns */
    int stored[16][MOST_K];                              /* of a: what a sparse operand holds, row by row */
    uint32_t fa[4][LANES], fb[4][LANES], fc[4][LANES], fd[4][LANES], metadata[LANES];
};

static uint32_t half_bits(int value) { /* |value| < 2048 as f16 */
    uint32_t size = (uint32_t)abs(value), e = 0;
    if (!size) return 0;
    while (size >> (e + 1)) e++;
    return (uint32_t)(value < 0) << 15 | (e + 15) << 10 | ((size << (10 - e)) & 1023);
}
static uint32_t float_bits(int value) {
    float real = (float)value;
    uint32_t bits;
    memcpy(&bits, &real, 4);
    return bits;
}
static uint32_t bits_of(int value, enum kind kind) {
    if (kind == F16) return half_bits(value);
    if (kind == BF16) return float_bits(value) >> 16;
    if (kind == TF32) return float_bits(value);
    return (uint32_t)value & ((1u << widths[kind]) - 1);
}
static int draw(uint64_t *seed, enum kind kind) {
    int value = (int)(test_random(seed) % (1u << (widths[kind] < 8 ? widths[kind] : 8)));
    if (kind == S4) return value - 8;
    if (kind == S8) return value - 128;
    return kind >= F16 ? value % 7 - 3 : value;
}

/* Element i of a lane's part of a factor: its row (column of B) and column (row of B) k. One register holds 32 bits of
 * k, the four lanes of a group lie next to each other; a register of rows 8 to 15 follows each of rows 0 to 7. */
static void fragment(uint32_t out[4][LANES], int rows, int k, enum kind kind, int in[][MOST_K]) {
    int per = 32 / widths[kind], n = rows * k / LANES;
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < n; i++) {
            int group = lane / 4, t = lane % 4, r = i / per;
            int row = group + (rows == 16 && r % 2 ? 8 : 0);
            int column = t * per + i % per + 4 * per * (rows == 16 ? r / 2 : r);
            out[r][lane] |= bits_of(in[row][column], kind) << i % per * widths[kind];
        }
}

/* A random sparse row: `nibble` gets the metadata of each chunk, lowest first. */
static void sparse_row(struct matrices *x, const struct form *f, int row, uint64_t *seed, uint32_t nibble[32]) {
    int unit = widths[f->a] == 4 ? 2 : 1, n = 0;
    bool pairs = f->a == TF32; /* one of two */
    for (int chunk = 0; chunk * (pairs ? 2 : 4 * unit) < f->k; chunk++) {
        uint32_t first = (uint32_t)(test_random(seed) % (pairs ? 2 : 3));
        uint32_t second = first + 1 + (uint32_t)(test_random(seed) % (3 - first));
        for (int which = 0; which < (pairs ? 1 : 2); which++)
            for (int u = 0; u < unit; u++) {
                int at = chunk * (pairs ? 2 : 4 * unit) + (int)(which ? second : first) * unit + u;
                x->a[row][at] = x->stored[row][n++] = draw(seed, f->a);
            }
        nibble[chunk] = pairs ? (first ? 0xe : 0x4) : first | second << 2;
    }
}

/* 16-bit types and tf32: a thread holds four chunks of row g in its low half and of row g + 8 in its high half, the
 * next four chunks are the next thread's. Integers: eight chunks of row g, the next thread those of row g + 8. */
static void put_metadata(struct matrices *x, const struct form *f, int row, const uint32_t nibble[32]) {
    bool whole = f->a < F16;
    int chunks = f->a == TF32 ? f->k / 2 : widths[f->a] == 4 ? f->k / 8 : f->k / 4;
    int threads = chunks / 4;
    for (int c = 0; c < chunks; c++) {
        int thread = f->selector * threads + (whole ? c / 8 * 2 + row / 8 : c / 4);
        int shift = whole ? c % 8 * 4 : row / 8 * 16 + c % 4 * 4;
        x->metadata[row % 8 * 4 + thread] |= nibble[c] << shift;
    }
}

static int product(const struct form *f, int a, int b) {
    return strstr(f->suffix, "xor") ? a ^ b : strstr(f->suffix, "and") ? a & b : a * b;
}

static void fill(struct matrices *x, const struct form *f, uint64_t *seed) {
    memset(x, 0, sizeof *x);
    bool half = !strcmp(f->d, "f16"), whole = !strcmp(f->d, "s32"), saturates = strstr(f->suffix, "sat") != NULL;
    int threads = (f->a == TF32 ? f->k / 2 : widths[f->a] == 4 ? f->k / 8 : f->k / 4) / 4;
    for (int l = 0; l < LANES && f->sparse; l++) /* what the selector does not choose does not matter */
        if (l % 4 / threads != f->selector) x->metadata[l] = (uint32_t)test_random(seed);
    for (int i = 0; i < f->m; i++) {
        uint32_t nibble[32] = {0};
        for (int h = 0; h < f->k && !f->sparse; h++) x->a[i][h] = draw(seed, f->a);
        if (!f->sparse) continue;
        sparse_row(x, f, i, seed, nibble);
        put_metadata(x, f, i, nibble);
    }
    for (int j = 0; j < 8; j++)
        for (int h = 0; h < f->k; h++) x->b[j][h] = draw(seed, f->b);
    for (int i = 0; i < f->m; i++)
        for (int j = 0; j < 8; j++) {
            x->c[i][j] = (int)(test_random(seed) % 19) - 9;
            if (whole && (i + j) % 3 == 0) x->c[i][j] = saturates ? (i & 1 ? INT32_MAX - 5 : INT32_MIN + 5) : 1 << 30;
            int64_t sum = x->c[i][j];
            for (int h = 0; h < f->k; h++) sum += product(f, x->a[i][h], x->b[j][h]);
            x->d[i][j] = (int)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
        }
    fragment(x->fa, f->m, f->sparse ? f->k / 2 : f->k, f->a, f->sparse ? x->stored : x->a);
    fragment(x->fb, 8, f->k, f->b, x->b);
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < f->m * 8 / LANES; i++) {
            int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
            int c = x->c[row][column], d = x->d[row][column];
            if (half) {
                x->fc[i / 2][lane] |= half_bits(c) << 16 * (i % 2);
                x->fd[i / 2][lane] |= half_bits(d) << 16 * (i % 2);
            } else {
                x->fc[i][lane] = whole ? (uint32_t)c : float_bits(c);
                x->fd[i][lane] = whole ? (uint32_t)d : float_bits(d);
            }
        }
}

static int registers(char *out, const char *name, int n) { /* {name0, name1, ...} */
    int at = sprintf(out, "{");
    for (int r = 0; r < n; r++) at += sprintf(out + at, "%s%s%d", r ? ", " : "", name, r);
    return at + sprintf(out + at, "}");
}

/* A kernel k(a, b, c, e, d) that gives each lane its words. */
static CUmodule kernel(const struct form *f, int n_a, int n_b, int n_d) {
    static char text[8192];
    static const char operands[] = "abced";
    const int counts[] = {n_a, n_b, n_d, 1, n_d};
    char *at = text + sprintf(text, ".version 8.5\n.target sm_80\n.address_size 64\n.visible .entry k(");
    for (int o = 0; o < 5; o++) at += sprintf(at, "%s.param .u64 p%c", o ? ", " : "", operands[o]);
    at += sprintf(
        at, ")\n{\n.reg .b32 lane;\n.reg .b64 offset, p;\nmov.u32 lane, %%tid.x;\nmul.wide.u32 offset, lane, 4;\n");
    for (int o = 0; o < 5; o++) {
        at += sprintf(at, ".reg .b32 %c<4>;\n", operands[o]);
        if (o == 4) break;
        at += sprintf(at, "ld.param.u64 p, [p%c];\nadd.u64 p, p, offset;\n", operands[o]);
        for (int r = 0; r < counts[o]; r++) at += sprintf(at, "ld.global.b32 %c%d, [p+%d];\n", operands[o], r, 128 * r);
    }
    char regs[4][64];
    const int order[] = {4, 0, 1, 2};
    for (int o = 0; o < 4; o++) {
        const char name[] = {operands[order[o]], 0};
        registers(regs[o], name, counts[order[o]]);
    }
    at += sprintf(at, "mma%s.sync.aligned.m%dn8k%d.row.col%s.%s.%s.%s.%s%s %s, %s, %s, %s", f->sparse ? ".sp" : "",
                  f->m, f->k, strstr(f->suffix, "sat") ? f->suffix : "", f->d, names[f->a], names[f->b], f->d,
                  strstr(f->suffix, "sat") ? "" : f->suffix, regs[0], regs[1], regs[2], regs[3]);
    if (f->sparse) at += sprintf(at, ", e0, 0x%x", f->selector);
    at += sprintf(at, ";\nld.param.u64 p, [pd];\nadd.u64 p, p, offset;\n");
    for (int r = 0; r < n_d; r++) at += sprintf(at, "st.global.b32 [p+%d], d%d;\n", 128 * r, r);
    sprintf(at, "ret;\n}\n");
    if (getenv("MMA_PTX")) printf("%s\n", text);
    CUmodule module;
    CUresult result = cuModuleLoadData(&module, text);
    if (result) fail_msg("%d: %s", (int)result, text);
    return module;
}

static void check(const struct form *f) {
    static struct matrices x;
    uint64_t seed = 11;
    uint32_t got[4][LANES];
    int n_d = f->m * 8 / (strcmp(f->d, "f16") ? 32 : 64);
    int n_a = f->m * f->k * widths[f->a] / (f->sparse ? 2048 : 1024), n_b = 8 * f->k * widths[f->b] / 1024;
    CUmodule module = kernel(f, n_a, n_b, n_d);
    for (int round = 0; round < 3; round++) {
        fill(&x, f, &seed);
        CUdeviceptr a = device_put(x.fa, sizeof x.fa), b = device_put(x.fb, sizeof x.fb),
                    c = device_put(x.fc, sizeof x.fc), e = device_put(x.metadata, sizeof x.metadata),
                    d = device_zeros(sizeof got);
        cu_ok(device_run(device_function(module, "k"), 1, 32, 0, (void *)&a, (void *)&b, (void *)&c, (void *)&e,
                         (void *)&d, NULL));
        device_get(got, d, sizeof got);
        if (memcmp(got, x.fd, sizeof got[0] * (size_t)n_d))
            fail_msg("m%dn8k%d %s %s %s %s%s, selector %d: sums differ", f->m, f->k, f->d, names[f->a], names[f->b],
                     f->suffix, f->sparse ? " sparse" : "", f->selector);
        const CUdeviceptr all[] = {a, b, c, d, e};
        for (int i = 0; i < 5; i++) cu_ok(cuMemFree_v2(all[i]));
    }
    cu_ok(cuModuleUnload(module));
}

static void test_small(void **state) {
    static const int shapes[][2] = {{8, 32}, {16, 32}, {16, 64}}, bit_shapes[][2] = {{8, 128}, {16, 128}, {16, 256}};
    (void)state;
    device_open();
    for (int s = 0; s < 3; s++)
        for (int which = 0; which < 4; which++) {
            struct form f = {shapes[s][0], shapes[s][1], which & 1 ? U4 : S4, which & 2 ? U4 : S4, "s32", "", false, 0};
            check(&f);
            f.suffix = ".satfinite";
            check(&f);
        }
    for (int s = 0; s < 3; s++) {
        check(&(struct form){bit_shapes[s][0], bit_shapes[s][1], B1, B1, "s32", ".xor.popc", false, 0});
        check(&(struct form){bit_shapes[s][0], bit_shapes[s][1], B1, B1, "s32", ".and.popc", false, 0});
    }
    device_close();
}

static void test_sparse(void **state) {
    static const struct form forms[] = {
        {16, 16, F16, F16, "f32", "", true, 4},         {16, 32, F16, F16, "f32", "", true, 2},
        {16, 16, F16, F16, "f16", "", true, 4},         {16, 32, F16, F16, "f16", "", true, 2},
        {16, 16, BF16, BF16, "f32", "", true, 4},       {16, 32, BF16, BF16, "f32", "", true, 2},
        {16, 8, TF32, TF32, "f32", "", true, 4},        {16, 16, TF32, TF32, "f32", "", true, 2},
        {16, 32, S8, U8, "s32", "", true, 2},           {16, 64, U8, S8, "s32", "", true, 1},
        {16, 32, S8, S8, "s32", ".satfinite", true, 2}, {16, 64, U8, U8, "s32", ".satfinite", true, 1},
        {16, 64, S4, U4, "s32", "", true, 2},           {16, 128, U4, S4, "s32", "", true, 1},
        {16, 64, U4, U4, "s32", ".satfinite", true, 2}, {16, 128, S4, S4, "s32", ".satfinite", true, 1},
    };
    (void)state;
    device_open();
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        for (int selector = 0; selector < forms[i].selector; selector++) {
            struct form f = forms[i];
            f.selector = selector;
            check(&f);
        }
    device_close();
}

/* What sm_80 does not have is refused. */
static void test_refused(void **state) {
    static const char *const lines[] = {
        "mma.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32 {a,a,a,a}, {a,a,a,a}, {a,a}, {a,a,a,a};",
        "mma.sync.aligned.m8n8k32.row.col.s32.s4.s8.s32 {a,a}, a, a, {a,a};",
        "mma.sync.aligned.m8n8k32.col.row.s32.s4.s4.s32 {a,a}, a, a, {a,a};",
        "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32 {a,a}, a, a, {a,a};",
        "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32.xor.popc {a,a}, a, a, {a,a};",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {a,a,a,a}, {a,a}, {a,a}, {a,a,a,a}, a, 4;",
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {a,a,a,a}, {a,a,a,a}, {a,a,a,a}, {a,a,a,a}, a, 2;",
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {a,a,a,a}, {a,a,a,a}, {a,a,a,a}, {a,a,a,a};",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {a,a,a,a}, {a,a}, {a,a}, {a,a,a,a}, a, 0;",
        "mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32 {a,a,a,a}, {a,a,a,a}, {a,a,a,a}, {a,a,a,a}, a, 0;",
    };
    (void)state;
    device_open();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[512];
        CUmodule module;
        snprintf(text, sizeof text,
                 ".version 8.5\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 a;\nmov.b32 a, "
                 "0;\n%s\nret;\n}\n",
                 lines[i]);
        if (cuModuleLoadData(&module, text) == CUDA_SUCCESS) fail_msg("taken: %s", lines[i]);
    }
    device_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small), cmocka_unit_test(test_sparse),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
