/* How far two pictures of one size lie apart.
 *
 *     make_difference A.png B.png [MASK.png]
 *
 * Prints the largest difference of a byte and how many pixels differ; with a mask both of the pixels where it is below
 * 128 alone. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/image/image.h"

int main(int n, char **arguments) {
    struct lk_image images[3] = {{0}};
    int largest = 0;
    long different = 0;
    if (n < 3 || n > 4) {
        fprintf(stderr, "make_difference: expected two pictures, and a mask or nothing\n");
        return 2;
    }
    for (int i = 0; i < n - 1; i++)
        if (lk_image_read(&images[i], arguments[i + 1], true, 0) || images[i].width != images[0].width ||
            images[i].height != images[0].height) {
            fprintf(stderr, "make_difference: %s: %s\n", arguments[i + 1],
                    images[i].pixels ? "another size" : lk_error_text());
            return 3;
        }
    for (long i = 0; i < (long)images[0].width * images[0].height; i++) {
        int most = 0;
        if (n == 4 && images[2].pixels[i * images[2].channels] >= 128) continue;
        for (int c = 0; c < images[0].channels; c++) {
            const int a = images[0].pixels[i * images[0].channels + c],
                      b = images[1].pixels[i * images[1].channels + c];
            if (abs(a - b) > most) most = abs(a - b);
        }
        different += most > 0;
        if (most > largest) largest = most;
    }
    printf("%d %ld\n", largest, different);
    for (int i = 0; i < 3; i++) lk_image_free(&images[i]);
    return 0;
}
