/* Integer and bit instructions, one module for all: each case is an instruction on registers a, b, c (and e), compared
 * lane by lane with the same computed here after the PTX ISA. */
#include "tests/gpusim/common/device.h"

enum { N = 256 };

#define OPERANDS uint64_t a, uint64_t b, uint64_t c
typedef uint64_t expected_fn(OPERANDS);
#define CASE(name, ...)                                                                                                \
    static uint64_t name(OPERANDS) {                                                                                   \
        (void)a, (void)b, (void)c;                                                                                     \
        return (uint64_t)(__VA_ARGS__);                                                                                \
    }
#define A32  ((uint32_t)a)
#define B32  ((uint32_t)b)
#define C32  ((uint32_t)c)
#define SA32 ((int32_t)a)
#define SB32 ((int32_t)b)
#define SC32 ((int32_t)c)

static uint32_t reverse(uint32_t v) {
    uint32_t r = 0;
    for (int i = 0; i < 32; i++) r |= (v >> i & 1) << (31 - i);
    return r;
}
static uint32_t highest(uint64_t v) {
    for (int i = 63; i >= 0; i--)
        if (v >> i & 1) return (uint32_t)i;
    return ~0u;
}
static uint32_t field(uint32_t v, uint32_t pos, uint32_t len, bool is_signed) {
    uint32_t out = 0, top = pos + len - 1 < 31 ? pos + len - 1 : 31;
    bool sign = is_signed && len && (v >> top & 1);
    for (uint32_t i = 0; i < 32; i++) {
        bool bit = i < len && pos + i <= 31 ? v >> (pos + i) & 1 : sign;
        out |= (uint32_t)bit << i;
    }
    return out;
}
static uint32_t insert(uint32_t from, uint32_t into, uint32_t pos, uint32_t len) {
    for (uint32_t i = 0; i < len && pos + i <= 31; i++)
        into = (into & ~(1u << (pos + i))) | (from >> i & 1) << (pos + i);
    return into;
}
static uint32_t permute(uint32_t x, uint32_t y, uint32_t s) {
    uint8_t bytes[8];
    uint32_t out = 0;
    memcpy(bytes, &x, 4);
    memcpy(bytes + 4, &y, 4);
    for (int k = 0; k < 4; k++) {
        uint32_t n = s >> (4 * k) & 15, v = bytes[n & 7];
        if (n & 8) v = v & 0x80 ? 255 : 0;
        out |= v << (8 * k);
    }
    return out;
}
static uint32_t table3(uint32_t x, uint32_t y, uint32_t z, uint32_t table) {
    uint32_t out = 0;
    for (int i = 0; i < 32; i++) out |= (table >> ((x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1)) & 1) << i;
    return out;
}
static uint32_t dot4(uint32_t x, uint32_t y, uint32_t z) {
    for (int k = 0; k < 4; k++) z += (uint32_t)((int8_t)(x >> 8 * k) * (int)(uint8_t)(y >> 8 * k));
    return z;
}
static uint32_t dot2_high(uint32_t x, uint32_t y, uint32_t z) {
    for (int k = 0; k < 2; k++) z += (uint32_t)((int16_t)(x >> 16 * k) * (int)(int8_t)(y >> (16 + 8 * k)));
    return z;
}
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

CASE(add, A32 + B32)
CASE(add64, a + b)
CASE(sub16, (uint16_t)(a - b))
CASE(mul_lo, A32 *B32)
CASE(mul_hi_s, ((int64_t)SA32 * SB32) >> 32)
CASE(mul_hi_u64, ((u128)a * b) >> 64)
CASE(mul_hi_s64, ((s128)(int64_t)a * (int64_t)b) >> 64)
CASE(mul_wide_s, (int64_t)SA32 *SB32)
CASE(mul_wide_u, (uint64_t)A32 *B32)
CASE(mad_wide_s, (uint64_t)((int64_t)SA32 *SB32) + c)
CASE(mul_wide_s16, (int32_t)(int16_t)a *(int16_t)b)
CASE(mad_lo, A32 *B32 + C32)
CASE(mad_hi, (uint32_t)((uint64_t)A32 *B32 >> 32) + C32)
CASE(mul24, ((int32_t)(A32 << 8) >> 8) * (int64_t)((int32_t)(B32 << 8) >> 8))
CASE(sad, C32 + (SA32 > SB32 ? A32 - B32 : B32 - A32))
CASE(div_s, (int64_t)SA32 / (SB32 | 1))
CASE(div_u, A32 / (B32 | 1))
CASE(rem_s, (int64_t)SA32 % (SB32 | 1))
CASE(rem_u64, a % (b | 1))
CASE(min_s, SA32 < SB32 ? SA32 : SB32)
CASE(max_u64, a > b ? a : b)
CASE(abs_s, SA32 < 0 ? 0u - A32 : A32)
CASE(add_sat, (int64_t)SA32 + SB32 > INT32_MAX ? INT32_MAX : (int64_t)SA32 + SB32 < INT32_MIN ? INT32_MIN : SA32 + SB32)
CASE(shl, (B32 & 63) > 31 ? 0 : A32 << (B32 & 31))
CASE(shr_s, SA32 >> ((B32 & 63) > 31 ? 31 : B32 & 63))
CASE(shr_u64, (B32 & 127) > 63 ? 0 : a >> (B32 & 63))
CASE(popc64, __builtin_popcountll(a))
CASE(clz, A32 ? (uint32_t)__builtin_clz(A32) : 32)
CASE(brev, reverse(A32))
CASE(bfind, highest(A32))
CASE(bfind_s64, highest((int64_t)a < 0 ? ~a : a))
CASE(bfe_s, field(A32, B32 & 63, C32 & 63, true))
CASE(bfe_u, field(A32, B32 & 63, C32 & 63, false))
CASE(bfi, insert(A32, B32, C32 & 63, 11))
CASE(lop3, table3(A32, B32, C32, 0x1d))
CASE(lop3_x, table3(A32, B32, C32, 0x6a))
CASE(prmt, permute(A32, B32, C32 & 0xffff))
CASE(shf_l, (((uint64_t)B32 << 32 | A32) << (C32 & 31)) >> 32)
CASE(shf_r, ((uint64_t)B32 << 32 | A32) >> ((C32 & 63) < 32 ? C32 & 63 : 32))
CASE(dp4a, dot4(A32, B32, C32))
CASE(dp2a, dot2_high(A32, B32, C32))
CASE(carry, a + b)
CASE(borrow, a - b)
CASE(selp, SA32 < SB32 ? A32 : C32)
CASE(setp_and, (SA32 < SB32) && !(A32 >= C32) ? 7 : 9)
CASE(set_u, A32 > B32 ? ~0u : 0)
CASE(cvt_s8, (int32_t)(int8_t)a)
CASE(cvt_sat, SA32 > 127 ? 127 : SA32 < -128 ? -128 : SA32)
CASE(cvt_u16, (uint16_t)a)
CASE(pack, (a & 0xffff) | (b & 0xffff) << 16)
CASE(unpack, (a >> 32) ^ (uint32_t)a)
CASE(slct, SC32 >= 0 ? A32 : B32)

#define AND32 "and.b32 n, b, 63; "
static const struct {
    const char *name, *text;
    expected_fn *expected;
    bool wide; /* result in d64, else in d */
} cases[] = {
    {"add", "add.s32 d, a, b;", add, false},
    {"add64", "add.u64 d64, a64, b64;", add64, true},
    {"sub16", "cvt.u16.u32 h, a; cvt.u16.u32 i, b; sub.s16 h, h, i; cvt.u32.u16 d, h;", sub16, false},
    {"mul_lo", "mul.lo.s32 d, a, b;", mul_lo, false},
    {"mul_hi_s", "mul.hi.s32 d, a, b;", mul_hi_s, false},
    {"mul_hi_u64", "mul.hi.u64 d64, a64, b64;", mul_hi_u64, true},
    {"mul_hi_s64", "mul.hi.s64 d64, a64, b64;", mul_hi_s64, true},
    {"mul_wide_s", "mul.wide.s32 d64, a, b;", mul_wide_s, true},
    {"mul_wide_u", "mul.wide.u32 d64, a, b;", mul_wide_u, true},
    {"mad_wide_s", "mad.wide.s32 d64, a, b, c64;", mad_wide_s, true},
    {"mul_wide_s16", "cvt.u16.u32 h, a; cvt.u16.u32 i, b; mul.wide.s16 d, h, i;", mul_wide_s16, false},
    {"mad_lo", "mad.lo.u32 d, a, b, c;", mad_lo, false},
    {"mad_hi", "mad.hi.u32 d, a, b, c;", mad_hi, false},
    {"mul24", "mul24.lo.s32 d, a, b;", mul24, false},
    {"sad", "sad.s32 d, a, b, c;", sad, false},
    {"div_s", "or.b32 n, b, 1; div.s32 d, a, n;", div_s, false},
    {"div_u", "or.b32 n, b, 1; div.u32 d, a, n;", div_u, false},
    {"rem_s", "or.b32 n, b, 1; rem.s32 d, a, n;", rem_s, false},
    {"rem_u64", "or.b64 d64, b64, 1; rem.u64 d64, a64, d64;", rem_u64, true},
    {"min_s", "min.s32 d, a, b;", min_s, false},
    {"max_u64", "max.u64 d64, a64, b64;", max_u64, true},
    {"abs_s", "abs.s32 d, a;", abs_s, false},
    {"add_sat", "add.sat.s32 d, a, b;", add_sat, false},
    {"shl", AND32 "shl.b32 d, a, n;", shl, false},
    {"shr_s", AND32 "shr.s32 d, a, n;", shr_s, false},
    {"shr_u64", "and.b32 n, b, 127; shr.u64 d64, a64, n;", shr_u64, true},
    {"popc64", "popc.b64 d, a64;", popc64, false},
    {"clz", "clz.b32 d, a;", clz, false},
    {"brev", "brev.b32 d, a;", brev, false},
    {"bfind", "bfind.u32 d, a;", bfind, false},
    {"bfind_s64", "bfind.s64 d, a64;", bfind_s64, false},
    {"bfe_s", AND32 "and.b32 m, c, 63; bfe.s32 d, a, n, m;", bfe_s, false},
    {"bfe_u", AND32 "and.b32 m, c, 63; bfe.u32 d, a, n, m;", bfe_u, false},
    {"bfi", "and.b32 n, c, 63; bfi.b32 d, a, b, n, 11;", bfi, false},
    {"lop3", "lop3.b32 d, a, b, c, 0x1d;", lop3, false},
    {"lop3_x", "lop3.b32 d, a, b, c, 0x6a;", lop3_x, false},
    {"prmt", "and.b32 n, c, 0xffff; prmt.b32 d, a, b, n;", prmt, false},
    {"shf_l", "shf.l.wrap.b32 d, a, b, c;", shf_l, false},
    {"shf_r", "and.b32 n, c, 63; shf.r.clamp.b32 d, a, b, n;", shf_r, false},
    {"dp4a", "dp4a.s32.u32 d, a, b, c;", dp4a, false},
    {"dp2a", "dp2a.hi.s32.s32 d, a, b, c;", dp2a, false},
    {"carry", "mov.b64 {n, m}, a64; mov.b64 {d, e}, b64; add.cc.u32 n, n, d; addc.u32 m, m, e; mov.b64 d64, {n, m};",
     carry, true},
    {"borrow", "mov.b64 {n, m}, a64; mov.b64 {d, e}, b64; sub.cc.u32 n, n, d; subc.u32 m, m, e; mov.b64 d64, {n, m};",
     borrow, true},
    {"selp", "setp.lt.s32 p, a, b; selp.b32 d, a, c, p;", selp, false},
    {"setp_and", "setp.ge.u32 q, a, c; setp.lt.and.s32 p, a, b, !q; selp.b32 d, 7, 9, p;", setp_and, false},
    {"set_u", "set.gt.u32.u32 d, a, b;", set_u, false},
    {"cvt_s8", "cvt.s32.s8 d, a;", cvt_s8, false},
    {"cvt_sat", "cvt.sat.s8.s32 d, a;", cvt_sat, false},
    {"cvt_u16", "cvt.u16.u64 h, a64; cvt.u32.u16 d, h;", cvt_u16, false},
    {"pack", "cvt.u16.u32 h, a; cvt.u16.u32 i, b; mov.b32 d, {h, i};", pack, false},
    {"unpack", "mov.b64 {n, m}, a64; xor.b32 d, n, m;", unpack, false},
    {"slct", "slct.b32.s32 d, a, b, c;", slct, false},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static const char before[] =
    ".visible .entry %s(.param .u64 in, .param .u64 out) {\n"
    ".reg .b32 a, b, c, d, e, n, m, t; .reg .b64 a64, b64, c64, d64, in64, out64, at; .reg .b16 h, i; .reg .pred p, "
    "q;\n"
    "ld.param.u64 in64, [in]; ld.param.u64 out64, [out]; mov.u32 t, %%tid.x;\n"
    "mul.wide.u32 at, t, 24; add.s64 in64, in64, at; mul.wide.u32 at, t, 8; add.s64 out64, out64, at;\n"
    "ld.global.u64 a64, [in64]; ld.global.u64 b64, [in64+8]; ld.global.u64 c64, [in64+16];\n"
    "cvt.u32.u64 a, a64; cvt.u32.u64 b, b64; cvt.u32.u64 c, c64;\n%s\n%sst.global.u64 [out64], d64; ret; }\n";

static void test_cases(void **state) {
    (void)state;
    static char text[1 << 17];
    static uint64_t in[N][3], out[N];
    uint64_t seed = 11;
    static const uint64_t edges[] = {0,         1, ~0ull, 1ull << 31, 1ull << 63, 0x7fffffff, 0x7fffffffffffffffull,
                                     0xffffffff};
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) {
            uint64_t r = test_random(&seed);
            in[i][k] = i < 64 ? edges[r % 8] : r >> (test_random(&seed) % 48);
        }
    size_t used = (size_t)snprintf(text, sizeof text, ".version 9.0\n.target sm_80\n.address_size 64\n");
    for (int k = 0; k < N_CASES; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, before, cases[k].name, cases[k].text,
                                 cases[k].wide ? "" : "cvt.u64.u32 d64, d;\n");
    device_open();
    CUmodule module;
    cu_ok(cuModuleLoadData(&module, text));
    CUdeviceptr din = device_put(in, sizeof in), dout = device_zeros(sizeof out);
    for (int k = 0; k < N_CASES; k++) {
        cu_ok(device_run(device_function(module, cases[k].name), 1, N, 0, (void *)&din, (void *)&dout, NULL));
        device_get(out, dout, sizeof out);
        for (int i = 0; i < N; i++) {
            uint64_t expected = cases[k].expected(in[i][0], in[i][1], in[i][2]);
            if (!cases[k].wide) expected = (uint32_t)expected;
            if (out[i] != expected)
                fail_msg("%s of %llx, %llx, %llx: expected %llx, got %llx", cases[k].text, (unsigned long long)in[i][0],
                         (unsigned long long)in[i][1], (unsigned long long)in[i][2], (unsigned long long)expected,
                         (unsigned long long)out[i]);
        }
    }
    device_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
