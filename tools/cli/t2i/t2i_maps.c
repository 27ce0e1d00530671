#include "tools/cli/t2i/t2i_maps.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "eval/document/files.h"
#include "eval/document/table_print.h"
#include "models/attended_maps.h"
#include "weights/safetensors.h"

#define DARKEST 0.25 /* share of a pixel's light that stays where nothing looks */

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i attention: out of memory for maps"); }

enum lk_code cli_maps_begin(struct cli_maps *maps, const struct cli_arguments *a) {
    struct stat st;
    *maps = (struct cli_maps){.folder = a->t2i.maps};
    if (!maps->folder) return LK_OK;
    char *table = lk_format("%s/words.csv", maps->folder);
    if (!table) return out_of_memory();
    const bool there = !stat(table, &st);
    lk_free(table);
    if (there && !a->overwrite)
        return lk_fail(LK_E_USAGE,
                       "--maps: %s: has maps already; name another folder, or replace them with --overwrite",
                       maps->folder);
    lk_text_add(&maps->table, "file_path,word,layer,head,weight\r\n");
    return lk_document_folder(maps->folder);
}

static void table_lines(struct cli_maps *maps, const char *file_path, const char *word, int i_word,
                        const struct lk_attended *a) {
    for (int layer = 0; layer < a->n_layers; layer++)
        for (int i = a->first[layer]; i < a->first[layer + 1]; i++) {
            lk_print_csv_field(&maps->table, file_path, "");
            lk_text_add(&maps->table, ",");
            lk_print_csv_field(&maps->table, word, "");
            lk_text_add(&maps->table, ",%s,%d,%.9g\r\n", a->layers[layer], i - a->first[layer],
                        a->word_weights[i * a->n_words + i_word]);
        }
}

/* light [height, width] of the picture, from the map's least to its most. */
static enum lk_code draw(const char *path, const float *map, const struct lk_attended *a,
                         const struct lk_image *picture) {
    const size_t n = (size_t)picture->width * (size_t)picture->height, n_map = (size_t)(a->map_width * a->map_height);
    double *light = lk_malloc((n + n_map) * sizeof *light), *small = light ? light + n : NULL, most = 0;
    struct lk_image out;
    if (!light) return out_of_memory();
    for (size_t i = 0; i < n_map; i++) small[i] = (double)map[i];
    for (size_t i = 0; i < n_map; i++) most = fmax(most, small[i]);
    lk_bicubic(small, a->map_height, a->map_width, light, picture->height, picture->width);
    enum lk_code rc = lk_image_new(&out, picture->width, picture->height, 3);
    for (size_t i = 0; i < 3 * n && !rc; i++) {
        const double share = most > 0 ? fmin(fmax(light[i / 3] / most, 0), 1) : 0;
        out.pixels[i] = (uint8_t)lrint(picture->pixels[i] * (DARKEST + (1 - DARKEST) * share));
    }
    if (!rc) rc = lk_png_write(path, &out, NULL, 0);
    lk_image_free(&out);
    lk_free(light);
    return rc;
}

/* DIR/NAME, of a path's last part without its ending. */
static char *place(const struct cli_maps *maps, const char *file_path) {
    const char *slash = strrchr(file_path, '/'), *name = slash ? slash + 1 : file_path, *dot = strrchr(name, '.');
    return lk_format("%s/%.*s", maps->folder, (int)(dot ? dot - name : (long)strlen(name)), name);
}

static enum lk_code draw_word(const char *stem, const char *word, const float *map, const struct lk_attended *a,
                              const struct lk_image *picture) {
    char *path = lk_format("%s_%s.png", stem, word);
    if (!path) return out_of_memory();
    for (char *c = path + strlen(stem) + 1; c[4]; c++)
        if (!isalnum((unsigned char)*c) && (unsigned char)*c < 128) *c = '-';
    enum lk_code rc = draw(path, map, a, picture);
    lk_free(path);
    return rc;
}

enum lk_code cli_maps_add(struct cli_maps *maps, const char *file_path, const char *const *words,
                          const struct lk_attended *a, const struct lk_image *picture) {
    const size_t n = (size_t)(a->map_width * a->map_height);
    struct lk_st_named *named = lk_calloc((size_t)a->n_words + 1, sizeof *named);
    char *stem = place(maps, file_path), *all = stem ? lk_format("%s.safetensors", stem) : NULL;
    size_t n_named = 0;
    enum lk_code rc = named && all ? LK_OK : out_of_memory();
    for (int i = 0; i < a->n_words && !rc; i++) {
        float *map = a->maps + (size_t)i * n;
        bool there = false;
        for (int k = 0; k < a->n_spans; k++) there |= a->spans[k].word == i;
        if (!there) continue;
        named[n_named].name = words[i];
        named[n_named++].tensor = LK_TENSOR(map, LK_F32, a->map_height, a->map_width);
        table_lines(maps, file_path, words[i], i, a);
        rc = draw_word(stem, words[i], map, a, picture);
    }
    if (!rc) rc = lk_safetensors_write(all, named, n_named, NULL);
    lk_free(named);
    lk_free(stem);
    lk_free(all);
    return rc ? rc : maps->table.rc;
}

enum lk_code cli_maps_end(struct cli_maps *maps, enum lk_code rc) {
    if (maps->folder && !rc) return lk_document_file(maps->folder, "words", ".csv", &maps->table);
    lk_text_free(&maps->table);
    return rc;
}
