#include "models/step1x/sizes.h"

#include <math.h>

#define SIDE_MAX 65535

enum lk_code lk_step1x_size(int size_level, int multiple, int width, int height, int *out_width, int *out_height) {
    if (width < 1 || height < 1 || size_level < 1)
        return lk_fail(LK_E_IMAGE_SIZE,
                       "image: expected sides of at least 1 pixel and a size level of at least 1, got "
                       "%dx%d and %d",
                       width, height, size_level);
    double area = (double)size_level * size_level, ratio = (double)width / height, w, h;
    if (width > height) {
        w = ceil(sqrt(area * ratio));
        h = ceil(w / ratio);
    } else {
        h = ceil(sqrt(area / ratio));
        w = ceil(h * ratio);
    }
    if (!(w >= multiple && h >= multiple && w <= SIDE_MAX && h <= SIDE_MAX))
        return lk_fail(
            LK_E_IMAGE_SIZE,
            "image: %dx%d at size level %d would be %.0fx%.0f, expected sides of %d to %d; crop it to a less "
            "extreme aspect ratio or choose another size level",
            width, height, size_level, w, h, multiple, SIDE_MAX);
    *out_width = (int)w / multiple * multiple;
    *out_height = (int)h / multiple * multiple;
    return LK_OK;
}
