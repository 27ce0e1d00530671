/* One edit with the library alone: edit MODEL PICTURE PROMPT OUTPUT.png [STEPS]
 *
 *     cc -std=c11 edit.c $(pkg-config --cflags --libs likeness) -o edit
 *
 * MODEL is a folder in Hugging Face layout, or ORG/NAME of one in its cache. The picture carries its recipe:
 * `likeness show OUTPUT.png` prints it, `likeness rerun` makes the picture again. */
#include <stdio.h>

#include <likeness.h>

/* A parameter by the name of its option, as a user writes it. */
static enum lk_code set(struct lk_job *job, const char *name, const char *text) {
    return lk_parameter_parse(lk_parameter_named(name), job, name, text);
}

/* Called before each step: a code other than LK_OK stops the edit. */
static enum lk_code progress(void *context, const char *stage, int step, int n_steps) {
    (void)context;
    fprintf(stderr, "%s %d/%d\n", stage, step, n_steps);
    return LK_OK;
}

static enum lk_code edit(struct lk_pipeline *pipeline, struct lk_device *device, char **argv, struct lk_image *picture,
                         struct lk_job *job) {
    char model[256], identity[65];
    struct lk_result result;
    struct lk_recipe_run run = {.model = model,
                                .weights_identity = identity,
                                .isa = device->architecture,
                                .pipeline = pipeline,
                                .job = job,
                                .result = &result};
    LK_TRY(lk_recipe_image_read(argv[2], NULL, true, picture, run.image_names[0], run.image_sha256[0]));
    LK_TRY(lk_job_complete(job, pipeline, NULL)); /* the model's defaults for what was not set */
    job->request.images = picture;
    job->request.n_images = 1;
    job->request.progress = progress;
    lk_recipe_model_name(argv[1], model);
    LK_TRY(lk_pipeline_weights_identity(pipeline, identity));
    LK_TRY(lk_pipeline_edit(pipeline, device, &job->request, &result));
    enum lk_code code = lk_recipe_write(argv[4], &run);
    lk_result_free(&result);
    return code;
}

int main(int argc, char **argv) {
    struct lk_pipeline *pipeline = NULL;
    struct lk_device *device = NULL;
    struct lk_image picture = {0};
    struct lk_job job;
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: edit MODEL PICTURE PROMPT OUTPUT.png [STEPS]\n");
        return 2;
    }
    lk_job_init(&job);
    enum lk_code code = set(&job, "prompt", argv[3]);
    if (!code) code = set(&job, "seed", "42");
    if (!code && argc == 6) code = set(&job, "num-inference-steps", argv[5]);
    if (!code) code = lk_pipeline_open(&pipeline, argv[1], LK_BF16);
    if (!code) code = lk_device_cpu_create(0, &device); /* 0: all threads; lk_device_cuda_create(0, &device): a GPU */
    if (!code) code = edit(pipeline, device, argv, &picture, &job);
    if (code) fprintf(stderr, "edit: %s\n", lk_error_text());
    lk_image_free(&picture);
    lk_device_free(device);
    lk_pipeline_close(pipeline);
    lk_job_free(&job);
    return code ? 1 : 0;
}
