#include "tests/common/tiny_edit.h"

#include "tests/common/test.h"

const struct tiny_edit tiny_edits[TINY_EDITS] = {
    {"flux2 edit", "golden/data/flux2/rich/checkpoint", false, "golden/data/flux2/rich/loras/all.safetensors=0.7"},
    {"qwen_edit edit", "golden/data/qwen_edit/edit2511/checkpoint", false,
     "golden/data/qwen_edit/edit2511/loras/all.safetensors=0.7"},
    {"step1x edit", "golden/data/step1x/plain/checkpoint", false, "golden/data/step1x/plain/loras/all.safetensors=0.7"},
    {"flux2 text", "golden/data/flux2/rich/checkpoint", true, NULL},
    {"qwen_edit text", "golden/data/qwen_edit/text/checkpoint", true, NULL},
    {"step1x text", "golden/data/step1x/plain/checkpoint", true, NULL},
};

const struct tiny_edit tiny_pictures[TINY_PICTURES] = {
    {"sd15", "golden/data/sd/sd15/checkpoint", true, NULL},
    {"sdxl", "golden/data/sd/sdxl/checkpoint", true, NULL},
    {"cascade", "golden/data/cascade/checkpoint", true, NULL},
};

void tiny_job_open(struct tiny_job *job, const struct tiny_edit *edit, enum lk_dtype dtype, int n_steps) {
    tiny_job_open_with(job, edit, edit->checkpoint, &(struct lk_pipeline_options){.compute = dtype}, n_steps);
}

/* Sizes small enough for the simulated GPU, uneven where the family allows it. */
void tiny_job_open_with(struct tiny_job *job, const struct tiny_edit *edit, const char *checkpoint,
                        const struct lk_pipeline_options *options, int n_steps) {
    uint64_t random = 11;
    bool flux2 = !strncmp(edit->name, "flux2", 5);
    *job = (struct tiny_job){0};
    assert_ok(lk_pipeline_open_with(&job->pipeline, checkpoint, options));
    struct lk_request *q = &job->request;
    lk_request_init(q, job->pipeline);
    assert_ok(lk_image_new(&job->image, flux2 ? 64 : 37, flux2 ? 65 : 41, 3));
    for (int i = 0; i < job->image.width * job->image.height * 3; i++)
        job->image.pixels[i] = (uint8_t)test_random(&random);
    q->images = &job->image;
    q->n_images = !edit->from_text;
    q->prompt = "a red scarf";
    q->num_inference_steps = n_steps ? n_steps : 1;
    if (!q->size_level || edit->from_text) { /* Step1X-Edit gives an edit its source's size */
        q->width = 32;
        q->height = 48;
    }
    if (q->decoder_steps) {
        q->width = q->height = 128;
        q->decoder_steps = q->num_inference_steps;
        q->decoder_guidance = 1.5;
    } else if (!lk_pipeline_takes_images(job->pipeline)) {
        q->width = q->height = 64;
        q->scheduler = "unipc";
    } else if (flux2) {
        for (int i = 0; i < 3; i++) q->text_encoder_out_layers[i] = i + 1;
        q->max_sequence_length = 40;
    } else if (q->size_level) {
        q->size_level = 32;
        if (q->n_images) q->width = q->height = 0; /* the source's */
    } else {
        q->condition_area = q->vae_area = 32 * 32;
        q->negative_prompt = "blurry";
        if (!n_steps) q->num_inference_steps = 2; /* the schedule's end is stretched, which takes two */
    }
}

void tiny_job_close(struct tiny_job *job) {
    lk_image_free(&job->image);
    lk_pipeline_close(job->pipeline);
}
