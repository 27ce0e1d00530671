/* Draws a mask for edits: white, which is edited, and a black box or ellipse, which is kept.
 *
 *     make_mask WIDTHxHEIGHT X,Y,WIDTH,HEIGHT box|ellipse FILE.png */
#include <stdio.h>
#include <string.h>

#include "engine/image/image.h"

int main(int n, char **arguments) {
    struct lk_image mask = {0};
    int width, height, box[4];
    if (n != 5 || sscanf(arguments[1], "%dx%d", &width, &height) != 2 ||
        sscanf(arguments[2], "%d,%d,%d,%d", &box[0], &box[1], &box[2], &box[3]) != 4) {
        fprintf(stderr, "make_mask: expected WIDTHxHEIGHT X,Y,WIDTH,HEIGHT box|ellipse FILE.png\n");
        return 2;
    }
    const bool ellipse = !strcmp(arguments[3], "ellipse");
    enum lk_code rc = lk_image_new(&mask, width, height, 1);
    for (int y = 0; y < height && !rc; y++)
        for (int x = 0; x < width; x++) {
            const double u = (x + 0.5 - box[0]) / box[2] * 2 - 1, v = (y + 0.5 - box[1]) / box[3] * 2 - 1;
            const bool kept = ellipse ? u * u + v * v <= 1 : u >= -1 && u < 1 && v >= -1 && v < 1;
            mask.pixels[y * width + x] = kept ? 0 : 255;
        }
    if (!rc) rc = lk_png_write(arguments[4], &mask, NULL, 0);
    if (rc) fprintf(stderr, "make_mask: %s\n", lk_error_text());
    lk_image_free(&mask);
    return lk_exit_code(rc);
}
