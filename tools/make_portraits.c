/* Draws the 84 sources of the study, portraits of nobody: 7 x 2 x 6, each a picture of its own.
 *
 *     make_portraits [--size PIXELS] DIR
 *
 * DIR gets White_Male_20s.png and so on, sources.csv as study files name it, and labels.csv, a table of labelled
 * portraits as `study pools` reads it. The same size gives the same bytes. They are drawn as those that make_pairs
 * draws for small editors to learn from. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/text.h"
#include "eval/study/factors.h"
#include "tools/portrait/portrait.h"

static enum lk_code draw(const char *folder, int source, int size) {
    char id[48];
    struct lk_image image = {0};
    struct portrait portrait;
    lk_source_id(source, id);
    portrait_source(&portrait, source, NULL);
    char *path = lk_format("%s/%s.png", folder, id);
    enum lk_code rc = path ? portrait_draw(&image, &portrait, size) : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) rc = lk_png_write(path, &image, NULL, 0);
    lk_image_free(&image);
    lk_free(path);
    return rc;
}

/* The columns in an order; FairFace writes ages as ranges. */
static enum lk_code write_table(const char *folder, const char *name, const char *header, bool labels) {
    static const char *const ages[LK_N_AGES] = {"20-29", "30-39", "40-49", "50-59", "60-69", "more than 70"};
    struct lk_text text = {0};
    lk_text_add(&text, "%s\n", header);
    for (int i = 0; i < LK_N_SOURCES; i++) {
        int race, gender, age;
        char id[48];
        lk_source_id(i, id);
        lk_source_factors(i, &race, &gender, &age);
        const char *race_key = lk_factor_key(LK_FACTOR_RACE, race),
                   *gender_key = lk_factor_key(LK_FACTOR_GENDER, gender);
        if (labels)
            lk_text_add(&text, "%s.png,%s,%s,%s\n", id, ages[age], gender_key, lk_factor_display(LK_FACTOR_RACE, race));
        else
            lk_text_add(&text, "%s.png,%s,%s,%s\n", id, race_key, gender_key, lk_factor_key(LK_FACTOR_AGE, age));
    }
    char *path = lk_format("%s/%s", folder, name);
    enum lk_code rc = !path     ? lk_fail(LK_E_NOMEM, "out of memory")
                      : text.rc ? text.rc
                                : lk_atomic_write_file(path, text.bytes, text.n);
    lk_free(path);
    lk_text_free(&text);
    return rc;
}

static enum lk_code run(int argc, char **argv) {
    const char *folder = NULL;
    int size = 256;
    char rest;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--size") && i + 1 < argc) {
            if (sscanf(argv[++i], "%5d%c", &size, &rest) != 1 || size < 16 || size > 8192)
                return lk_fail(LK_E_USAGE, "--size: expected 16 to 8192, got \"%s\"", argv[i]);
        } else if (argv[i][0] != '-' && !folder) {
            folder = argv[i];
        } else {
            return lk_fail(LK_E_USAGE, "%s: not understood", argv[i]);
        }
    }
    if (!folder) return lk_fail(LK_E_USAGE, "usage: make_portraits [--size PIXELS] DIR");
    if (mkdir(folder, 0777) && errno != EEXIST) return lk_fail_errno(errno, "%s", folder);
    for (int i = 0; i < LK_N_SOURCES; i++) LK_TRY(draw(folder, i, size));
    LK_TRY(write_table(folder, "sources.csv", "path,race,gender,age", false));
    return write_table(folder, "labels.csv", "file,age,gender,race", true);
}

int main(int argc, char **argv) {
    enum lk_code rc = run(argc, argv);
    if (rc) fprintf(stderr, "make_portraits: %s\n", lk_error_text());
    return lk_exit_code(rc);
}
