/* Planted defects of tensors in one allocation and of lanes with masks of their own; see check_core.cu. */
#include "check_defects.h"

DEFECT(tensor_read) { /* the first half of a is a tensor, and what follows another one */
    b[I] = a[T / 2 + (bad && T == 127)]; // @tensor_read
}
DEFECT(tensor_vector) {
    int4 v = *(int4 *)(a + T / 8 * 4 + (bad && T >= 120) * 4); // @tensor_vector
    b[I] = v.x + v.w;
}
DEFECT(tensor_write) {
    if (T < 64) a[T + (bad && T == 63)] = T; // @tensor_write
    b[I] = T;
}

/* Halves of a warp that stand together and name themselves: each has its own result. Bad: the upper half names the lower
 * one. */
#define HALVES unsigned mask = T < 16 || bad ? 0x0000ffffu : 0xffff0000u
#define EXPECT(x, low, high)                                                                                           \
    if ((x) != (T < 16 ? (low) : (high))) __trap()
DEFECT(vote_halves) {
    HALVES;
    b[I] = (int)__ballot_sync(mask, T % 3 == 0); // @vote_halves
    EXPECT((unsigned)b[I], 0x00009249u, 0x49240000u);
    EXPECT(__any_sync(mask, T == 3), 1, 0);
    EXPECT(__all_sync(mask, T >= 16), 0, 1);
}
DEFECT(match_halves) {
    HALVES;
    int all;
    b[I] = (int)__match_any_sync(mask, a[T]); // @match_halves
    EXPECT((unsigned)b[I], 0x0000ffffu, 0xffff0000u);
    __match_all_sync(mask, T < 16 ? 1 : T, &all);
    EXPECT(all, 1, 0);
}
DEFECT(reduce_halves) {
    HALVES;
    b[I] = __reduce_add_sync(mask, T); // @reduce_halves
    EXPECT(b[I], 120, 376);
    EXPECT(__reduce_max_sync(mask, T), 15, 31);
}
