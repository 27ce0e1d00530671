/* Bit fields, permutes, dot products, moves and selects. */
#include "exec/lanes.h"

UNARY(popc_b32, uint32_t, uint32_t, uint32_t, __builtin_popcount(x))
UNARY(clz_b32, uint32_t, uint32_t, uint32_t, x ? __builtin_clz(x) : 32)
UNARY(brev_b64, uint64_t, uint64_t, uint64_t, __extension__({
          uint64_t v = x;
          v = (v >> 1 & 0x5555555555555555ull) | (v & 0x5555555555555555ull) << 1;
          v = (v >> 2 & 0x3333333333333333ull) | (v & 0x3333333333333333ull) << 2;
          v = (v >> 4 & 0x0f0f0f0f0f0f0f0full) | (v & 0x0f0f0f0f0f0f0f0full) << 4;
          __builtin_bswap64(v);
      }))
UNARY(brev_b32, uint32_t, uint32_t, uint32_t, __extension__({
          uint32_t v = x;
          v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
          v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
          v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
          __builtin_bswap32(v);
      }))

/* Counts and positions have 32-bit results whatever the operand. */
#define TO32(name, R, V, ...)                                                                                          \
    HANDLER(name) {                                                                                                    \
        uint32_t *d = REGS32(op->d);                                                                                   \
        const R *a = (const R *)REGS32(op->a);                                                                         \
        LANES(V x = (V)a[i]; d[i] = (uint32_t)(__VA_ARGS__));                                                          \
        return GPUSIM_NEXT;                                                                                            \
    }
#define HIGHEST(x) ((x) ? 63 - __builtin_clzll(x) : -1)
TO32(popc_b64, uint64_t, uint64_t, __builtin_popcountll(x))
TO32(clz_b64, uint64_t, uint64_t, x ? __builtin_clzll(x) : 64)
TO32(bfind_u32, uint32_t, uint32_t, HIGHEST((uint64_t)x))
TO32(bfind_s32, uint32_t, int32_t, HIGHEST((uint64_t)(uint32_t)(x < 0 ? ~x : x)))
TO32(bfind_u64, uint64_t, uint64_t, HIGHEST(x))
TO32(bfind_s64, uint64_t, int64_t, HIGHEST((uint64_t)(x < 0 ? ~x : x)))
#define SHIFT_AMOUNT(bits, found) ((found) < 0 ? ~0u : (uint32_t)((bits)-1 - (found)))
TO32(bfind_shift_u32, uint32_t, uint32_t, SHIFT_AMOUNT(32, HIGHEST((uint64_t)x)))
TO32(bfind_shift_s32, uint32_t, int32_t, SHIFT_AMOUNT(32, HIGHEST((uint64_t)(uint32_t)(x < 0 ? ~x : x))))
TO32(bfind_shift_u64, uint64_t, uint64_t, SHIFT_AMOUNT(64, HIGHEST(x)))
TO32(bfind_shift_s64, uint64_t, int64_t, SHIFT_AMOUNT(64, HIGHEST((uint64_t)(x < 0 ? ~x : x))))

static inline uint64_t extract_field(uint64_t value, uint32_t pos, uint32_t len, int bits, bool is_signed) {
    pos &= 255, len &= 255;
    uint64_t field = pos < (uint32_t)bits ? value >> pos : 0;
    bool sign = false;
    if (is_signed && len) {
        uint32_t top = pos + len - 1 < (uint32_t)bits - 1 ? pos + len - 1 : (uint32_t)bits - 1;
        sign = value >> top & 1;
    }
    uint32_t kept = pos >= (uint32_t)bits ? 0 : len < bits - pos ? len : bits - pos;
    uint64_t keep = kept >= 64 ? ~0ull : (1ull << kept) - 1;
    field &= keep;
    return sign ? field | ~keep : field;
}
static inline uint64_t insert_field(uint64_t field, uint64_t into, uint32_t pos, uint32_t len, int bits) {
    pos &= 255, len &= 255;
    if (pos >= (uint32_t)bits || !len) return into;
    uint64_t keep = (len >= 64 ? ~0ull : (1ull << len) - 1) << pos;
    return (into & ~keep) | (field << pos & keep);
}
#define BFE(name, R, BITS, SIGNED)                                                                                     \
    HANDLER(name) {                                                                                                    \
        R *d = (R *)REGS32(op->d);                                                                                     \
        const R *a = (const R *)REGS32(op->a);                                                                         \
        const uint32_t *b = REGS32(op->b), *c = REGS32(op->c);                                                         \
        LANES(d[i] = (R)extract_field(a[i], b[i], c[i], BITS, SIGNED));                                                \
        return GPUSIM_NEXT;                                                                                            \
    }
BFE(bfe_u32, uint32_t, 32, false)
BFE(bfe_s32, uint32_t, 32, true)
BFE(bfe_u64, uint64_t, 64, false)
BFE(bfe_s64, uint64_t, 64, true)
#define BFI(name, R, BITS)                                                                                             \
    HANDLER(name) {                                                                                                    \
        R *d = (R *)REGS32(op->d);                                                                                     \
        const R *a = (const R *)REGS32(op->a), *b = (const R *)REGS32(op->b);                                          \
        const uint32_t *c = REGS32(op->c), *e = REGS32(op->list[0]);                                                   \
        LANES(d[i] = (R)insert_field(a[i], b[i], c[i], e[i], BITS));                                                   \
        return GPUSIM_NEXT;                                                                                            \
    }
BFI(bfi_b32, uint32_t, 32)
BFI(bfi_b64, uint64_t, 64)

BINARY(bmsk_clamp, uint32_t, uint32_t, uint32_t,
       (x >= 32 || !y) ? 0 : (uint32_t)((y >= 32 - x ? ~0ull : (1ull << y) - 1) << x))
BINARY(bmsk_wrap, uint32_t, uint32_t, uint32_t, (uint32_t)(((1ull << (y & 31)) - 1) << (x & 31)))
BINARY(szext_clamp_u32, uint32_t, uint32_t, uint32_t, y >= 32 ? x : y ? x & ((1u << y) - 1) : 0)
BINARY(szext_clamp_s32, uint32_t, uint32_t, uint32_t,
       y >= 32 ? x
       : y     ? (uint32_t)((int32_t)(x << (32 - y)) >> (32 - y))
               : 0)
BINARY(szext_wrap_u32, uint32_t, uint32_t, uint32_t, (y & 31) ? x &((1u << (y & 31)) - 1) : 0)
BINARY(szext_wrap_s32, uint32_t, uint32_t, uint32_t,
       (y & 31) ? (uint32_t)((int32_t)(x << (32 - (y & 31))) >> (32 - (y & 31))) : 0)

HANDLER(fns_b32) { /* the |n|-th set bit of a at or above (below for n < 0) base */
    uint32_t *d = REGS32(op->d);
    const uint32_t *a = REGS32(op->a), *b = REGS32(op->b), *c = REGS32(op->c);
    EACH_LANE({
        int32_t n = (int32_t)c[i];
        int step = n < 0 ? -1 : 1, left = n < 0 ? -n : n, at = (int)b[i];
        uint32_t found = ~0u;
        if (!n && at >= 0 && at < 32) found = a[i] >> at & 1 ? (uint32_t)at : ~0u;
        for (; n && at >= 0 && at < 32 && found == ~0u; at += step)
            if (a[i] >> at & 1 && --left == 0) found = (uint32_t)at;
        d[i] = found;
    })
    return GPUSIM_NEXT;
}

/* Any function of three bits, as the sum of the table's minterms. */
HANDLER(lop3_b32) {
    uint32_t *d = REGS32(op->d);
    const uint32_t *a = REGS32(op->a), *b = REGS32(op->b), *c = REGS32(op->c);
    uint32_t keep[8];
    for (int t = 0; t < 8; t++) keep[t] = op->imm >> t & 1 ? ~0u : 0;
    LANES(uint32_t x = a[i]; uint32_t y = b[i]; uint32_t z = c[i];
          d[i] = (~x & ((~y & ((~z & keep[0]) | (z & keep[1]))) | (y & ((~z & keep[2]) | (z & keep[3]))))) |
                 (x & ((~y & ((~z & keep[4]) | (z & keep[5]))) | (y & ((~z & keep[6]) | (z & keep[7]))))));
    return GPUSIM_NEXT;
}
TERNARY(lop3_and_xor, uint32_t, uint32_t, uint32_t, (x & y) ^ z)
TERNARY(lop3_xor3, uint32_t, uint32_t, uint32_t, x ^ y ^ z)
TERNARY(lop3_and_or, uint32_t, uint32_t, uint32_t, (x & y) | z)

static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t out = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t s = selector >> (4 * k) & 15, byte = bytes >> (8 * (s & 7)) & 255;
        if (s & 8) byte = byte & 128 ? 255 : 0;
        out |= byte << (8 * k);
    }
    return out;
}
TERNARY(prmt_b32, uint32_t, uint32_t, uint32_t, permute(x, y, z))
static inline uint32_t prmt_selector(int mode, uint32_t n) {
    static const uint16_t selectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, {0x3210, 0x2107, 0x1076, 0x0765}, /* f4e, b4e */
        {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333}, /* rc8, ecl */
        {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}, /* ecr, rc16 */
    };
    return selectors[mode][n & 3];
}
TERNARY(prmt_mode, uint32_t, uint32_t, uint32_t, permute(x, y, prmt_selector(op->code, z)))

#define FUNNEL(name, LIMIT, EXPR)                                                                                      \
    TERNARY(name, uint32_t, uint32_t, uint32_t, __extension__({                                                        \
                uint32_t n = LIMIT;                                                                                    \
                uint64_t both = (uint64_t)y << 32 | x;                                                                 \
                (uint32_t)(EXPR);                                                                                      \
            }))
FUNNEL(shf_l_wrap, z & 31, both << n >> 32)
FUNNEL(shf_l_clamp, z < 32 ? z : 32, both << n >> 32)
FUNNEL(shf_r_wrap, z & 31, both >> n)
FUNNEL(shf_r_clamp, z < 32 ? z : 32, both >> n)

#define BYTE_U(v, k) ((uint32_t)((v) >> (8 * (k)) & 255))
#define BYTE_S(v, k) ((uint32_t)(int32_t)(int8_t)((v) >> (8 * (k))))
#define DOT4(A, B)   z + A(x, 0) * B(y, 0) + A(x, 1) * B(y, 1) + A(x, 2) * B(y, 2) + A(x, 3) * B(y, 3)
TERNARY(dp4a_uu, uint32_t, uint32_t, uint32_t, DOT4(BYTE_U, BYTE_U))
TERNARY(dp4a_us, uint32_t, uint32_t, uint32_t, DOT4(BYTE_U, BYTE_S))
TERNARY(dp4a_su, uint32_t, uint32_t, uint32_t, DOT4(BYTE_S, BYTE_U))
TERNARY(dp4a_ss, uint32_t, uint32_t, uint32_t, DOT4(BYTE_S, BYTE_S))
#define HALF_U(v, k)  ((uint32_t)((v) >> (16 * (k)) & 65535))
#define HALF_S(v, k)  ((uint32_t)(int32_t)(int16_t)((v) >> (16 * (k))))
#define DOT2(A, B, k) z + A(x, 0) * B(y, k) + A(x, 1) * B(y, k + 1)
TERNARY(dp2a_lo_uu, uint32_t, uint32_t, uint32_t, DOT2(HALF_U, BYTE_U, 0))
TERNARY(dp2a_lo_us, uint32_t, uint32_t, uint32_t, DOT2(HALF_U, BYTE_S, 0))
TERNARY(dp2a_lo_su, uint32_t, uint32_t, uint32_t, DOT2(HALF_S, BYTE_U, 0))
TERNARY(dp2a_lo_ss, uint32_t, uint32_t, uint32_t, DOT2(HALF_S, BYTE_S, 0))
TERNARY(dp2a_hi_uu, uint32_t, uint32_t, uint32_t, DOT2(HALF_U, BYTE_U, 2))
TERNARY(dp2a_hi_us, uint32_t, uint32_t, uint32_t, DOT2(HALF_U, BYTE_S, 2))
TERNARY(dp2a_hi_su, uint32_t, uint32_t, uint32_t, DOT2(HALF_S, BYTE_U, 2))
TERNARY(dp2a_hi_ss, uint32_t, uint32_t, uint32_t, DOT2(HALF_S, BYTE_S, 2))

UNARY(mov_b32, uint32_t, uint32_t, uint32_t, x)
UNARY(mov_b64, uint64_t, uint64_t, uint64_t, x)
HANDLER(mov_pred) {
    uint32_t *d = warp->regs + op->d;
    *d = (*d & ~mask) | (warp->regs[op->a] & mask);
    return GPUSIM_NEXT;
}
HANDLER(selp_b32) {
    uint32_t *d = REGS32(op->d);
    const uint32_t *a = REGS32(op->a), *b = REGS32(op->b);
    uint32_t p = warp->regs[op->c] ^ (op->flags & GPUSIM_NOT_C ? ~0u : 0);
    LANES(d[i] = p >> i & 1 ? a[i] : b[i]);
    return GPUSIM_NEXT;
}
HANDLER(selp_b64) {
    uint64_t *d = REGS64(op->d);
    const uint64_t *a = REGS64(op->a), *b = REGS64(op->b);
    uint32_t p = warp->regs[op->c] ^ (op->flags & GPUSIM_NOT_C ? ~0u : 0);
    LANES(d[i] = p >> i & 1 ? a[i] : b[i]);
    return GPUSIM_NEXT;
}
/* slct: a where c >= 0 (-0 counts, NaN does not), else b. */
#define SLCT(name, R, TEST)                                                                                            \
    HANDLER(name) {                                                                                                    \
        R *d = (R *)REGS32(op->d);                                                                                     \
        const R *a = (const R *)REGS32(op->a), *b = (const R *)REGS32(op->b);                                          \
        const uint32_t *c = REGS32(op->c);                                                                             \
        LANES(d[i] = (TEST) ? a[i] : b[i]);                                                                            \
        return GPUSIM_NEXT;                                                                                            \
    }
#define GE_F32(v) (!((v) >> 31) ? (v) <= 0x7f800000u : (v) == 0x80000000u)
SLCT(slct_s32_b16, uint32_t, (int32_t)c[i] >= 0)
SLCT(slct_s32_b64, uint64_t, (int32_t)c[i] >= 0)
SLCT(slct_f32_b16, uint32_t, GE_F32(c[i]))
SLCT(slct_f32_b64, uint64_t, GE_F32(c[i]))
#define FLUSHED(v) (((v)&0x7f800000u) ? (v) : (v)&0x80000000u)
SLCT(slct_ftz_f32_b16, uint32_t, GE_F32(FLUSHED(c[i])))
SLCT(slct_ftz_f32_b64, uint64_t, GE_F32(FLUSHED(c[i])))

/* mov between a register and a vector of narrower ones: list holds the vector, op->size its elements' bytes. */
HANDLER(mov_pack) {
    uint32_t *d = REGS32(op->d);
    uint64_t *wide_d = REGS64(op->d);
    bool d64 = op->flags & GPUSIM_REG64;
    uint64_t value[GPUSIM_WARP] = {0};
    for (int k = 0; k < op->n_list; k++) {
        const uint32_t *s = REGS32(op->list[k]);
        const uint64_t keep = ((1ull << (op->size * 8)) - 1);
        for (int i = 0; i < GPUSIM_WARP; i++) value[i] |= (s[i] & keep) << (op->size * 8 * k);
    }
    if (d64)
        LANES(wide_d[i] = value[i]);
    else
        LANES(d[i] = (uint32_t)value[i]);
    return GPUSIM_NEXT;
}
HANDLER(mov_unpack) {
    uint64_t value[GPUSIM_WARP];
    const uint32_t *a = REGS32(op->a);
    const uint64_t *wide_a = REGS64(op->a);
    if (op->flags & GPUSIM_REG64)
        for (int i = 0; i < GPUSIM_WARP; i++) value[i] = wide_a[i];
    else
        for (int i = 0; i < GPUSIM_WARP; i++) value[i] = a[i];
    const uint64_t keep = ((1ull << (op->size * 8)) - 1);
    for (int k = 0; k < op->n_list; k++) {
        uint32_t *d = REGS32(op->list[k]);
        LANES(d[i] = (uint32_t)(value[i] >> (op->size * 8 * k) & keep));
    }
    return GPUSIM_NEXT;
}

/* Address of frame memory: imm plus where the frame starts; of dynamic shared memory: imm plus where that starts. */
HANDLER(mov_frame) {
    uint64_t value = (uint64_t)op->imm + (op->base == GPUSIM_BASE_FRAME            ? warp->frame->local_base
                                          : op->base == GPUSIM_BASE_DYNAMIC_SHARED ? warp->launch->dynamic_base
                                                                                   : 0);
    if (op->flags & GPUSIM_REG64) {
        uint64_t *d = REGS64(op->d);
        LANES(d[i] = value);
    } else {
        uint32_t *d = REGS32(op->d);
        LANES(d[i] = (uint32_t)value);
    }
    return GPUSIM_NEXT;
}

#define ROW_DP(key, name)                                                                                              \
    {key ".u32.u32", name##_uu}, {key ".u32.s32", name##_us}, {key ".s32.u32", name##_su}, { key ".s32.s32", name##_ss }
const struct gpusim_entry TABLE(ops_bits)[] = {
    {"popc.b32", popc_b32},
    {"popc.b64", popc_b64},
    {"clz.b32", clz_b32},
    {"clz.b64", clz_b64},
    {"brev.b32", brev_b32},
    {"brev.b64", brev_b64},
    {"bfind.u32", bfind_u32},
    {"bfind.s32", bfind_s32},
    {"bfind.u64", bfind_u64},
    {"bfind.s64", bfind_s64},
    {"bfind.shiftamt.u32", bfind_shift_u32},
    {"bfind.shiftamt.s32", bfind_shift_s32},
    {"bfind.shiftamt.u64", bfind_shift_u64},
    {"bfind.shiftamt.s64", bfind_shift_s64},
    {"bfe.u32", bfe_u32},
    {"bfe.s32", bfe_s32},
    {"bfe.u64", bfe_u64},
    {"bfe.s64", bfe_s64},
    {"bfi.b32", bfi_b32},
    {"bfi.b64", bfi_b64},
    {"bmsk.clamp.b32", bmsk_clamp},
    {"bmsk.wrap.b32", bmsk_wrap},
    {"szext.clamp.u32", szext_clamp_u32},
    {"szext.clamp.s32", szext_clamp_s32},
    {"szext.wrap.u32", szext_wrap_u32},
    {"szext.wrap.s32", szext_wrap_s32},
    {"fns.b32", fns_b32},
    {"lop3.b32", lop3_b32},
    {"lop3.and_xor", lop3_and_xor},
    {"lop3.xor3", lop3_xor3},
    {"lop3.and_or", lop3_and_or},
    {"prmt.b32", prmt_b32},
    {"prmt.mode", prmt_mode},
    {"shf.l.wrap.b32", shf_l_wrap},
    {"shf.l.clamp.b32", shf_l_clamp},
    {"shf.r.wrap.b32", shf_r_wrap},
    {"shf.r.clamp.b32", shf_r_clamp},
    ROW_DP("dp4a", dp4a),
    ROW_DP("dp2a.lo", dp2a_lo),
    ROW_DP("dp2a.hi", dp2a_hi),
    {"mov.b16", mov_b32},
    {"mov.b32", mov_b32},
    {"mov.b64", mov_b64},
    {"mov.pred", mov_pred},
    {"mov.pack", mov_pack},
    {"mov.unpack", mov_unpack},
    {"mov.frame", mov_frame},
    {"selp.b16", selp_b32},
    {"selp.b32", selp_b32},
    {"selp.b64", selp_b64},
    {"slct.s32.b16", slct_s32_b16},
    {"slct.s32.b32", slct_s32_b16},
    {"slct.s32.b64", slct_s32_b64},
    {"slct.f32.b16", slct_f32_b16},
    {"slct.f32.b32", slct_f32_b16},
    {"slct.f32.b64", slct_f32_b64},
    {"slct.ftz.f32.b16", slct_ftz_f32_b16},
    {"slct.ftz.f32.b32", slct_ftz_f32_b16},
    {"slct.ftz.f32.b64", slct_ftz_f32_b64},
    {NULL, NULL},
};
