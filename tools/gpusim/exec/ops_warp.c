/* Exchange between the lanes of a warp: shfl, vote, match, redux, activemask, elect. The .sync forms first meet the
 * lanes they name. */
#include "exec/codes.h"
#include "exec/lanes.h"

/* Members of the op (register `reg`): each lane names its own, and lanes that stand here together may name several
 * groups. False: not all of them are here yet, *next says what to return. */
static bool meet(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask, uint32_t reg,
                 uint32_t member[GPUSIM_WARP], int *next) {
    uint32_t all = 0;
    for (int i = 0; i < GPUSIM_WARP; i++) {
        member[i] = REGS32(reg)[i];
        if (mask >> i & 1) all |= member[i];
    }
    if (!gpusim_meet(warp, mask, all, next)) return false;
    for (int i = 0; i < GPUSIM_WARP; i++) member[i] &= mask;
    if (warp->hooks && warp->hooks->warp_sync) warp->hooks->warp_sync(warp->hooks->context, warp, op, mask);
    return true;
}

/* shfl.sync d|p, a, b, c, membermask: list[0] the members, list[1] p if n_list is 2. c: clamp in bits 4..0, segment
 * mask in 12..8. */
HANDLER(shfl) {
    uint32_t member[GPUSIM_WARP], p = 0;
    int next;
    if (!meet(warp, op, mask, op->list[0], member, &next)) return next;
    const uint32_t *a = REGS32(op->a), *b = REGS32(op->b), *c = REGS32(op->c);
    uint32_t result[GPUSIM_WARP], *d = REGS32(op->d);
    for (int i = 0; i < GPUSIM_WARP; i++) {
        int shift = (int)(b[i] & 31), clamp = (int)(c[i] & 31), segment = (int)(c[i] >> 8 & 31);
        int high = (i & segment) | (clamp & ~segment), low = i & segment, j;
        bool in;
        switch (op->code) {
        case GPUSIM_SHFL_UP:
            j = i - shift, in = j >= high;
            break;
        case GPUSIM_SHFL_DOWN:
            j = i + shift, in = j <= high;
            break;
        case GPUSIM_SHFL_BFLY:
            j = i ^ shift, in = j <= high;
            break;
        default:
            j = low | (shift & ~segment), in = j <= high;
            break;
        }
        result[i] = a[in ? j & 31 : i];
        p |= (uint32_t)in << i;
    }
    LANES(d[i] = result[i]);
    if (op->n_list > 1) warp->regs[op->list[1]] = (warp->regs[op->list[1]] & ~mask) | (p & mask);
    return GPUSIM_NEXT;
}

/* vote: op->a predicate, list[0] members (none: the lanes that run). */
HANDLER(vote) {
    uint32_t member[GPUSIM_WARP], yes = 0;
    int next;
    for (int i = 0; i < GPUSIM_WARP; i++) member[i] = mask;
    if (op->n_list && !meet(warp, op, mask, op->list[0], member, &next)) return next;
    uint32_t p = warp->regs[op->a] ^ (op->flags & GPUSIM_NOT_A ? ~0u : 0);
    if (op->code == GPUSIM_VOTE_BALLOT) {
        uint32_t *d = REGS32(op->d);
        LANES(d[i] = p & member[i]);
        return GPUSIM_NEXT;
    }
    for (int i = 0; i < GPUSIM_WARP; i++) {
        uint32_t m = member[i], q = p & m;
        bool is = op->code == GPUSIM_VOTE_ALL ? q == m : op->code == GPUSIM_VOTE_ANY ? q != 0 : q == 0 || q == m;
        yes |= (uint32_t)is << i;
    }
    warp->regs[op->d] = (warp->regs[op->d] & ~mask) | (yes & mask);
    return GPUSIM_NEXT;
}

/* match.any d, a, m; match.all d|p, a, m: list[0] members, list[1] p. */
HANDLER(match) {
    uint32_t member[GPUSIM_WARP], *d = REGS32(op->d), result[GPUSIM_WARP], all = 0;
    int next;
    if (!meet(warp, op, mask, op->list[0], member, &next)) return next;
    for (int i = 0; i < GPUSIM_WARP; i++) {
        uint64_t mine = op->size == 8 ? REGS64(op->a)[i] : REGS32(op->a)[i];
        result[i] = 0;
        for (int j = 0; j < GPUSIM_WARP; j++)
            result[i] |= (uint32_t)((op->size == 8 ? REGS64(op->a)[j] : REGS32(op->a)[j]) == mine) << j;
        result[i] &= member[i];
        if (op->code && result[i] != member[i]) result[i] = 0; /* all */
        all |= (uint32_t)(result[i] != 0) << i;
    }
    LANES(d[i] = result[i]);
    if (op->code && op->n_list > 1) warp->regs[op->list[1]] = (warp->regs[op->list[1]] & ~mask) | (all & mask);
    return GPUSIM_NEXT;
}

static uint32_t reduce(const struct gpusim_op *op, const uint32_t *a, uint32_t mask) {
    uint32_t r = a[__builtin_ctz(mask)];
    for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1) {
        uint32_t x = a[__builtin_ctz(rest)];
        bool less = op->type == GPUSIM_T_S32 ? (int32_t)x < (int32_t)r : x < r;
        switch (op->code) {
        case GPUSIM_ATOM_ADD:
            r += x;
            break;
        case GPUSIM_ATOM_MIN:
            r = less ? x : r;
            break;
        case GPUSIM_ATOM_MAX:
            r = less ? r : x;
            break;
        case GPUSIM_ATOM_AND:
            r &= x;
            break;
        case GPUSIM_ATOM_OR:
            r |= x;
            break;
        default:
            r ^= x;
            break;
        }
    }
    return r;
}

HANDLER(redux) {
    uint32_t member[GPUSIM_WARP], result[GPUSIM_WARP], *d = REGS32(op->d);
    int next;
    if (!meet(warp, op, mask, op->list[0], member, &next)) return next;
    for (int i = 0; i < GPUSIM_WARP; i++) result[i] = member[i] ? reduce(op, REGS32(op->a), member[i]) : 0;
    LANES(d[i] = result[i]);
    return GPUSIM_NEXT;
}

HANDLER(activemask) {
    uint32_t *d = REGS32(op->d);
    LANES(d[i] = mask);
    return GPUSIM_NEXT;
}

/* elect.sync d|p, members: the lowest lane of them. */
HANDLER(elect) {
    uint32_t member[GPUSIM_WARP], *d = REGS32(op->d), leaders = 0;
    int next;
    if (!meet(warp, op, mask, op->list[0], member, &next)) return next;
    for (int i = 0; i < GPUSIM_WARP; i++)
        if (mask >> i & 1) leaders |= member[i] & -member[i];
    LANES(d[i] = (uint32_t)__builtin_ctz(member[i] | 1u << i));
    warp->regs[op->list[1]] = (warp->regs[op->list[1]] & ~mask) | (leaders & mask);
    return GPUSIM_NEXT;
}

const struct gpusim_entry TABLE(ops_warp)[] = {
    {"shfl", shfl},   {"vote", vote}, {"match", match}, {"redux", redux}, {"activemask", activemask},
    {"elect", elect}, {NULL, NULL},
};
