/* Draws the demo's sample picture, a portrait of nobody.
 *
 *     make_face [--size WIDTHxHEIGHT] [--skin 1..6] [--hair 1..4] FILE.jpg|FILE.png
 */
#include <stdio.h>
#include <string.h>

#include "tools/make/face.h"

static enum lk_code run(int argc, char **argv) {
    struct make_face face = {.width = 512, .height = 512, .skin = 3, .hair = 2};
    const char *path = NULL;
    char rest;
    for (int i = 1; i < argc; i++) {
        bool valued = i + 1 < argc;
        if (!strcmp(argv[i], "--size") && valued) {
            if (sscanf(argv[++i], "%5dx%5d%c", &face.width, &face.height, &rest) != 2 || face.width < 16 ||
                face.height < 16 || face.width > 16384 || face.height > 16384)
                return lk_fail(LK_E_USAGE, "--size: expected WIDTHxHEIGHT from 16 to 16384, got \"%s\"", argv[i]);
        } else if (!strcmp(argv[i], "--skin") && valued) {
            if (sscanf(argv[++i], "%2d%c", &face.skin, &rest) != 1 || face.skin < 1 || face.skin > MAKE_FACE_SKINS)
                return lk_fail(LK_E_USAGE, "--skin: expected 1 to %d, got \"%s\"", MAKE_FACE_SKINS, argv[i]);
        } else if (!strcmp(argv[i], "--hair") && valued) {
            if (sscanf(argv[++i], "%2d%c", &face.hair, &rest) != 1 || face.hair < 1 || face.hair > MAKE_FACE_HAIRS)
                return lk_fail(LK_E_USAGE, "--hair: expected 1 to %d, got \"%s\"", MAKE_FACE_HAIRS, argv[i]);
        } else if (argv[i][0] != '-' && !path) {
            path = argv[i];
        } else {
            return lk_fail(LK_E_USAGE, "%s: not understood", argv[i]);
        }
    }
    if (!path)
        return lk_fail(LK_E_USAGE, "usage: make_face [--size WIDTHxHEIGHT] [--skin 1..6] [--hair 1..4] FILE.jpg|.png");
    face.skin--;
    face.hair--;
    struct lk_image image = {0};
    enum lk_code rc = make_face_draw(&image, &face);
    size_t length = strlen(path);
    bool png = length > 4 && !strcmp(path + length - 4, ".png");
    if (!rc) rc = png ? lk_png_write(path, &image, NULL, 0) : lk_jpeg_write(path, &image, 92);
    lk_image_free(&image);
    return rc;
}

int main(int argc, char **argv) {
    enum lk_code rc = run(argc, argv);
    if (rc) fprintf(stderr, "make_face: %s\n", lk_error_text());
    return lk_exit_code(rc);
}
