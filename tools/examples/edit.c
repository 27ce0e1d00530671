/* One edit with the library alone: edit MODEL PICTURE PROMPT OUTPUT.png [STEPS]
 *
 *     cc -std=c11 edit.c $(pkg-config --cflags --libs likeness) -o edit
 *
 * MODEL is a folder in Hugging Face layout, or ORG/NAME of one in its cache. */
#include <stdio.h>
#include <stdlib.h>

#include <likeness/engine/image/image.h>
#include <likeness/models/pipeline.h>

static enum lk_code edit(struct lk_pipeline *pipeline, struct lk_device *device, const struct lk_image *picture,
                         char **argv, int steps) {
    struct lk_request request;
    struct lk_result result;
    lk_request_init(&request, pipeline); /* the model's defaults */
    request.images = picture;
    request.n_images = 1;
    request.prompt = argv[3];
    request.seed = 42;
    if (steps) request.num_inference_steps = steps;
    enum lk_code code = lk_pipeline_edit(pipeline, device, &request, &result);
    if (code) return code;
    code = lk_png_write(argv[4], &result.image, NULL, 0);
    lk_result_free(&result);
    return code;
}

int main(int argc, char **argv) {
    struct lk_pipeline *pipeline = NULL;
    struct lk_device *device = NULL;
    struct lk_image picture = {0};
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: edit MODEL PICTURE PROMPT OUTPUT.png [STEPS]\n");
        return 2;
    }
    enum lk_code code = lk_image_read(&picture, argv[2], 0, 0);
    if (!code) code = lk_pipeline_open(&pipeline, argv[1], LK_BF16);
    if (!code) code = lk_device_cpu_create(0, &device); /* 0: all threads; lk_device_cuda_create(0, &device): a GPU */
    if (!code) code = edit(pipeline, device, &picture, argv, argc == 6 ? atoi(argv[5]) : 0);
    if (code) fprintf(stderr, "edit: %s\n", lk_error_text());
    lk_device_free(device);
    lk_pipeline_close(pipeline);
    lk_image_free(&picture);
    return code ? 1 : 0;
}
