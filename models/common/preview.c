#include "models/common/preview.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/parameters.h"

static const struct lk_preview_map flux2 = {
    32,
    {{0.0058F, 0.0113F, 0.0073F},    {0.0495F, 0.0443F, 0.0836F},    {-0.0099F, 0.0096F, 0.0644F},
     {0.2144F, 0.3009F, 0.3652F},    {0.0166F, -0.0039F, -0.0054F},  {0.0157F, 0.0103F, -0.016F},
     {-0.0398F, 0.0902F, -0.0235F},  {-0.0052F, 0.0095F, 0.0109F},   {-0.3527F, -0.2712F, -0.1666F},
     {-0.0301F, -0.0356F, -0.018F},  {-0.0107F, 0.0078F, 0.0013F},   {0.0746F, 0.009F, -0.0941F},
     {0.0156F, 0.0169F, 0.007F},     {-0.0034F, -0.004F, -0.0114F},  {0.0032F, 0.0181F, 0.008F},
     {-0.0939F, -0.0008F, 0.0186F},  {0.0018F, 0.0043F, 0.0104F},    {0.0284F, 0.0056F, -0.0127F},
     {-0.0024F, -0.0022F, -0.003F},  {0.1207F, -0.0026F, 0.0065F},   {0.0128F, 0.0101F, 0.0142F},
     {0.0137F, -0.0072F, -0.0007F},  {0.0095F, 0.0092F, -0.0059F},   {0.0F, -0.0077F, -0.0049F},
     {-0.0465F, -0.0204F, -0.0312F}, {0.0095F, 0.0012F, -0.0066F},   {0.029F, -0.0034F, 0.0025F},
     {0.022F, 0.0169F, -0.0048F},    {-0.0332F, -0.0457F, -0.0468F}, {-0.0085F, 0.0389F, 0.0609F},
     {-0.0076F, 0.0003F, -0.0043F},  {-0.0111F, -0.046F, -0.0614F}},
    {-0.0329F, -0.0718F, -0.0851F}};
static const struct lk_preview_map qwen = {16,
                                           {{-0.1299F, -0.1692F, 0.2932F},
                                            {0.0671F, 0.0406F, 0.0442F},
                                            {0.3568F, 0.2548F, 0.1747F},
                                            {0.0372F, 0.2344F, 0.142F},
                                            {0.0313F, 0.0189F, -0.0328F},
                                            {0.0296F, -0.0956F, -0.0665F},
                                            {-0.3477F, -0.4059F, -0.2925F},
                                            {0.0166F, 0.1902F, 0.1975F},
                                            {-0.0412F, 0.0267F, -0.1364F},
                                            {-0.1293F, 0.074F, 0.1636F},
                                            {0.068F, 0.3019F, 0.1128F},
                                            {0.0032F, 0.0581F, 0.0639F},
                                            {-0.1251F, 0.0927F, 0.1699F},
                                            {0.006F, -0.0633F, 0.0005F},
                                            {0.3477F, 0.2275F, 0.295F},
                                            {0.1984F, 0.0913F, 0.1861F}},
                                           {-0.1835F, -0.0868F, -0.336F}};
static const struct lk_preview_map flux1 = {16,
                                            {{-0.0346F, 0.0244F, 0.0681F},
                                             {0.0034F, 0.021F, 0.0687F},
                                             {0.0275F, -0.0668F, -0.0433F},
                                             {-0.0174F, 0.016F, 0.0617F},
                                             {0.0859F, 0.0721F, 0.0329F},
                                             {0.0004F, 0.0383F, 0.0115F},
                                             {0.0405F, 0.0861F, 0.0915F},
                                             {-0.0236F, -0.0185F, -0.0259F},
                                             {-0.0245F, 0.025F, 0.118F},
                                             {0.1008F, 0.0755F, -0.0421F},
                                             {-0.0515F, 0.0201F, 0.0011F},
                                             {0.0428F, -0.0012F, -0.0036F},
                                             {0.0817F, 0.0765F, 0.0749F},
                                             {-0.1264F, -0.0522F, -0.1103F},
                                             {-0.028F, -0.0881F, -0.0499F},
                                             {-0.1262F, -0.0982F, -0.0778F}},
                                            {-0.0329F, -0.0718F, -0.0851F}};

const struct lk_preview_map *lk_preview_map_of(unsigned family_bit) {
    return family_bit == LK_FOR_FLUX2    ? &flux2
           : family_bit == LK_FOR_QWEN   ? &qwen
           : family_bit == LK_FOR_STEP1X ? &flux1
                                         : NULL;
}

/* A tensor's values on the host; two bytes each are widened in place. */
static enum lk_code fetch(const struct lk_walk *w, const struct lk_tensor *t, float **out) {
    const size_t n = (size_t)lk_tensor_numel(t);
    if (!(*out = lk_malloc(n * sizeof **out))) return lk_fail(LK_E_NOMEM, "preview: out of memory");
    LK_TRY(lk_download(w->dev, *out, t));
    const uint16_t *narrow = (const uint16_t *)(const void *)*out;
    for (size_t i = n; t->dtype == LK_BF16 && i--;) {
        const float value = lk_bf16_to_f32(narrow[i]);
        memcpy(*out + i, &value, sizeof value);
    }
    return LK_OK;
}

void lk_preview_draw(const struct lk_preview_map *map, struct lk_image *image, int channels, const float *x,
                     const float *v, float sigma) {
    const size_t columns = (size_t)image->width / 2, packed = 4 * (size_t)channels;
    for (size_t y = 0; y < (size_t)image->height; y++)
        for (size_t c = 0; c < (size_t)image->width; c++) {
            const size_t at = (y / 2 * columns + c / 2) * packed + y % 2 * 2 + c % 2;
            for (size_t k = 0; k < 3; k++) {
                float sum = map->bias[k];
                for (size_t i = 0; i < (size_t)channels && i < (size_t)map->n; i++)
                    sum += map->factors[i][k] * (x[at + 4 * i] - sigma * v[at + 4 * i]);
                sum = (sum + 1) * 127.5F;
                image->pixels[(y * (size_t)image->width + c) * 3 + k] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
            }
        }
}

enum lk_code lk_preview_step(const struct lk_walk *w, int i) {
    const struct lk_request *q = w->request;
    const struct lk_preview_map *map = lk_preview_map_of(w->family_bit);
    if (!q->preview || !map || !w->columns || lk_walk_planning(w)) return LK_OK;
    float *x = NULL, *v = NULL;
    struct lk_image image = {0};
    const int rows = (int)(w->latents.shape[0] / w->columns);
    enum lk_code rc = fetch(w, &w->latents, &x);
    if (!rc) rc = fetch(w, &w->velocity, &v);
    if (!rc) rc = lk_image_new(&image, 2 * w->columns, 2 * rows, 3);
    if (!rc) {
        lk_preview_draw(map, &image, (int)w->latents.shape[1] / 4, x, v, w->sigmas[i + 1]);
        pthread_mutex_lock(&lk_walk_telling);
        rc = q->preview(q->preview_context, &image, i + 1, lk_walk_calls(w));
        pthread_mutex_unlock(&lk_walk_telling);
    }
    lk_free(x);
    lk_free(v);
    lk_image_free(&image);
    return rc;
}
