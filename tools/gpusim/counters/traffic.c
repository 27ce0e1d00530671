#include "counters/traffic.h"

#include <string.h>

enum { SECTOR = 32, BANKS = 32, WORD = 4 };

/* All lanes next to each other, in order. */
static bool contiguous(const uint64_t address[GPUSIM_WARP], uint32_t bytes) {
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < GPUSIM_WARP; i++) wrong |= address[i] ^ (address[0] + i * bytes);
    return !wrong;
}

static void any_sectors(const uint64_t address[GPUSIM_WARP], uint32_t mask, uint32_t bytes,
                        struct gpusim_sectors *out) {
    uint32_t covered[GPUSIM_WARP], last = 0;
    const uint32_t ones = bytes >= SECTOR ? UINT32_MAX : (1u << bytes) - 1;
    out->n = out->bytes = 0;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint64_t at = address[__builtin_ctz(rest)], sector = at / SECTOR;
        uint32_t piece = ones << at % SECTOR;
        if (!out->n || out->sector[last] != sector) {
            for (last = 0; last < out->n && out->sector[last] != sector; last++) {
            }
            if (last == out->n) out->sector[out->n] = sector, covered[out->n++] = 0;
        }
        covered[last] |= piece;
    }
    for (uint32_t s = 0; s < out->n; s++) out->bytes += (uint32_t)__builtin_popcount(covered[s]);
}

void gpusim_find_sectors(const uint64_t address[GPUSIM_WARP], uint32_t mask, uint32_t bytes,
                         struct gpusim_sectors *out) {
    out->run = mask == UINT32_MAX && contiguous(address, bytes);
    if (!out->run) {
        any_sectors(address, mask, bytes, out);
        return;
    }
    uint64_t first = address[0] / SECTOR, end = (address[31] + bytes - 1) / SECTOR;
    out->n = (uint32_t)(end - first) + 1;
    out->bytes = GPUSIM_WARP * bytes;
    for (uint32_t s = 0; s < out->n; s++) out->sector[s] = first + s;
}

/* One phase: lanes [first, first + n) of the mask. */
static uint32_t phase(const uint64_t address[GPUSIM_WARP], uint32_t mask, uint32_t bytes, bool atomic, uint32_t first,
                      uint32_t n) {
    uint32_t used[BANKS] = {0}, most = 0;
    uint64_t word[BANKS][GPUSIM_WARP];
    uint32_t words = bytes > WORD ? bytes / WORD : 1;
    for (uint32_t i = first; i < first + n; i++) {
        if (!(mask >> i & 1)) continue;
        for (uint32_t k = 0; k < words; k++) {
            uint64_t w = address[i] / WORD + k;
            uint32_t bank = (uint32_t)(w % BANKS), at = atomic ? used[bank] : 0;
            while (at < used[bank] && word[bank][at] != w) at++;
            if (at < used[bank]) continue;
            word[bank][used[bank]++] = w;
            if (used[bank] > most) most = used[bank];
        }
    }
    return most;
}

/* The usual case of full phases without conflicts: every bank is used once. */
static bool all_banks(const uint64_t address[GPUSIM_WARP], uint32_t bytes, uint32_t first, uint32_t n) {
    uint32_t banks = 0;
    const uint32_t ones = bytes == 16 ? 15 : bytes == 8 ? 3 : 1;
    for (uint32_t i = first; i < first + n; i++) banks |= ones << address[i] / WORD % BANKS;
    return banks == UINT32_MAX;
}

/* One lane, or all lanes the same place. */
static bool one_place(const uint64_t address[GPUSIM_WARP]) {
    uint64_t differ = 0;
    for (int i = 1; i < GPUSIM_WARP; i++) differ |= address[i] ^ address[0];
    return !differ;
}

uint32_t gpusim_wavefronts(const uint64_t address[GPUSIM_WARP], uint32_t mask, uint32_t bytes, bool atomic,
                           uint32_t *least) {
    uint32_t n = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8, total = 0;
    const uint32_t lanes = n == 32 ? UINT32_MAX : (1u << n) - 1;
    const bool one = !atomic && one_place(address);
    *least = 0;
    for (uint32_t first = 0; first < GPUSIM_WARP; first += n) {
        uint32_t part = mask >> first & lanes;
        if (!part) continue;
        ++*least;
        if (one || (part == lanes && bytes >= WORD && all_banks(address, bytes, first, n)))
            total++;
        else
            total += phase(address, mask, bytes, atomic, first, n);
    }
    return total;
}
