/* QwenEmbedRope: the positions of text and image tokens. */
#include "engine/base/alloc.h"
#include "engine/rope_table.h"
#include "models/qwen_edit/transformer.h"

#define ROPE_THETA   10000.0
#define MAX_POSITION 4096 /* of the reference's tables, on either side of 0 */

/* Image number i has frame position i; rows and columns count from the image's middle, the larger part before it. */
static int32_t (*image_positions(int32_t (*ids)[LK_QWEN_AXES], int i, const struct lk_qwen_grid *grid))[LK_QWEN_AXES] {
    for (int y = 0; y < grid->height; y++) {
        for (int x = 0; x < grid->width; x++, ids++) {
            (*ids)[0] = i;
            (*ids)[1] = y - (grid->height - grid->height / 2);
            (*ids)[2] = x - (grid->width - grid->width / 2);
        }
    }
    return ids;
}

enum lk_code lk_qwen_rope_check(int64_t n_txt, const struct lk_qwen_grid *grids, int n_grids, int32_t *first) {
    *first = 0;
    for (int i = 0; i < n_grids; i++) {
        int larger = grids[i].height > grids[i].width ? grids[i].height : grids[i].width;
        if (larger / 2 > *first) *first = larger / 2;
    }
    if (*first + n_txt <= MAX_POSITION) return LK_OK;
    return lk_fail(LK_E_IMAGE_SIZE,
                   "rotary positions: expected at most %d, half the larger image side in tokens (%d) and the "
                   "prompt's tokens (%lld) together; use smaller images or a shorter prompt",
                   MAX_POSITION, *first, (long long)n_txt);
}

enum lk_code lk_qwen_rope(const struct lk_qwen_transformer_config *config, int64_t n_txt,
                          const struct lk_qwen_grid *grids, int n_grids, float *cos_out, float *sin_out) {
    int64_t n = n_txt;
    int32_t first; /* of the text: beyond every image, on all axes */
    LK_TRY(lk_qwen_rope_check(n_txt, grids, n_grids, &first));
    for (int i = 0; i < n_grids; i++) n += (int64_t)grids[i].height * grids[i].width;
    int32_t(*ids)[LK_QWEN_AXES] = lk_malloc((size_t)n * sizeof *ids), (*at)[LK_QWEN_AXES] = ids;
    if (!ids) return lk_fail(LK_E_NOMEM, "rope table: out of memory");
    for (int32_t s = 0; s < n_txt; s++, at++)
        for (int axis = 0; axis < LK_QWEN_AXES; axis++) (*at)[axis] = first + s;
    for (int i = 0; i < n_grids; i++) at = image_positions(at, i, &grids[i]);
    lk_rope_table_f32(ids[0], n, config->axes_dims_rope, LK_QWEN_AXES, ROPE_THETA, cos_out, sin_out);
    lk_free(ids);
    return LK_OK;
}
