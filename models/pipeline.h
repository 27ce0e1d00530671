/* What every model family offers: plan without weights, open, edit.
 *
 *     struct lk_pipeline *p;
 *     if ((rc = lk_pipeline_open(&p, "black-forest-labs/FLUX.2-dev", LK_BF16))) return rc;
 *     struct lk_request request;
 *     lk_request_init(&request, p);                 // the family's defaults
 *     request.prompt = "make it winter"; request.images = &photo; request.n_images = 1; request.seed = 42;
 *     struct lk_result result;
 *     rc = lk_pipeline_edit(p, dev, &request, &result);   // result.image
 *     lk_result_free(&result); lk_pipeline_close(p);
 */
#pragma once

#include "engine/device.h"
#include "engine/image/image.h"
#include "weights/lora/lora.h"
#include "weights/quant/quantize.h"

struct lk_kept;
struct lk_rng;

#define LK_MAX_STEPS      1000
#define LK_MAX_CACHES     4 /* gates of a step cache: of two branches, two each */
#define LK_MAX_REFERENCES 10
#define LK_MAX_OUT_LAYERS 8

struct lk_pipeline;

/* Progress of an edit; step 0 comes before the first step. A code other than LK_OK stops the edit (LK_E_INTERRUPTED).
 */
typedef enum lk_code lk_progress_fn(void *context, const char *stage, int step, int n_steps);

/* What the gates of a step cache decided (lk_result.computed), n of them. */
struct lk_cache_replay {
    int n, n_steps;
    bool computed[LK_MAX_CACHES][LK_MAX_STEPS];
};

/* A small, rough picture of what the latents are on the way to, after a step; a code as of progress. */
typedef enum lk_code lk_preview_fn(void *context, const struct lk_image *image, int step, int n_steps);

struct lk_request {
    const struct lk_image *images; /* reference images as decoded; the first one sets the output size */
    int n_images;                  /* 0: text-to-image */
    const char *prompt;
    const char *negative_prompt; /* NULL: none, and with it no true CFG; Step1X-Edit has a default */
    double true_cfg_scale; /* two forwards a step when above 1 and there is a negative prompt; 0: not in the model */
    int width, height;     /* 0: from the first reference, else 1024; rounded down to the family's multiple */
    int num_inference_steps;
    /* The schedule, NULL for the model's: noise levels before the shift, num_inference_steps of them ("1,0.75,0.5"); a
     * scheduler_config.json, or its text; a static shift in its place, as text. preset says where they are from. */
    const char *input_sigmas, *scheduler, *flow_shift, *preset;
    double guidance_scale;
    /* A picture of the first image's size says where the edit may change it: from 128 on. Elsewhere the result has its
     * bytes; edited pixels within mask_feather of such a one are a mixture. mask_sha256: the digest that its bits must
     * have; NULL: any. */
    const char *mask, *mask_sha256;
    const struct lk_cache_replay *replay_cache; /* of accel: decisions of another run are taken over; NULL */
    int mask_feather;
    const char *mask_cell;  /* "sample": latents are kept by one pixel or the mean of four, as diffusers has it; NULL,
                               "any": where no pixel of theirs is edited */
    const char *mask_paste; /* "off": the decoded picture as it is, without the source's bytes; NULL, "on": with them */
    double strength; /* with a mask: the share of the steps that is taken, from the source's noised latents; 0: all */
    /* Stable Diffusion: `scheduler` is another sampler than the model's ("ddim", models/sd/sampler.h); DDIM's noise;
     * layers of the text encoders that are left out at the end. */
    double eta;
    int clip_skip;
    double guidance_rescale; /* share of the guided prediction that gets the deviation of the unguided one */
    /* Semantic guidance: texts that the picture is pushed towards or away from (models/sd/sega.h). */
    const char *concepts[8];
    int n_concepts;
    double concept_momentum_scale, concept_momentum_beta;
    /* Stable Cascade: steps and guidance of its second diffusion; the first has those above. */
    int decoder_steps;
    double decoder_guidance;
    int image_index; /* of a batch whose noise is drawn at once: the noise of so many images is passed over */
    /* SDXL: what its second text encoder is told, NULL: the same; and the sizes that it is told, height before width,
     * two numbers each or none: the output's. */
    const char *prompt_2, *negative_prompt_2;
    int original_size[LK_MAX_OUT_LAYERS], n_original_size;
    int crops_coords_top_left[LK_MAX_OUT_LAYERS], n_crops_coords_top_left;
    int target_size[LK_MAX_OUT_LAYERS], n_target_size;
    uint64_t seed;
    int max_sequence_length;
    bool whole_prompt; /* LK_E_PROMPT where tokens beyond max_sequence_length would be left out */
    int size_level;    /* Step1X-Edit: edits are made at about size_level^2 pixels */
    /* Step1X-Edit: "region" for fewer passes, with another picture (models/step1x/region.h), or NULL. Cosine to the
     * source up to which a token counts as edited; 0: 0.88, as its authors have it. */
    const char *accel;
    double region_threshold;
    /* Qwen-Image-Edit: pixels of a reference as the text encoder and as the VAE sees it; 0: 384^2 and 1024^2, as the
     * model was trained. */
    int condition_area, vae_area;
    int vae_tile_rows; /* of pixels in such a band, about */
    int slice_rows;    /* of the transformer's sequence that a block works on at a time: less memory, the same bits; 0:
                          all, or slices where memory says so */
    bool vae_tiling;   /* Qwen-Image: the VAE works in bands of rows, with less memory and more time; no bit changes */
    /* Hidden states of the text encoder that make prompt_embeds: k is the state after layer index k - 1. FLUX.2: 10,
     * 20, 30. */
    int text_encoder_out_layers[LK_MAX_OUT_LAYERS];
    int n_text_encoder_out_layers;
    /* Noise given by the caller instead of drawn, or NULL: f32 [C, h, w] as the family draws it (FLUX.2: packed
     * latents, 4 channels' worth in C; the others: the VAE's latents). */
    const float *latents;
    /* Step1X-Edit: the noise with which the reference's posterior is sampled, f32 [C, h, w], or NULL: drawn, before the
     * latents. */
    const float *posterior_noise;
    /* Step1X-Edit's modes. Thinking rewrites the prompt before the edit; reflection looks at the result and edits
     * again, up to max_try_cnt rounds, of which the best is the result. Their instructions are texts of the model's
     * authors: a JSON file of the user's (models/step1x/instructions.h says what is in it). */
    bool thinking_mode, reflection_mode;
    int max_try_cnt;
    const char *prompts_file;
    const char *prompt_embeds; /* a file of lk_pipeline_embed: the text encoder is not visited; NULL: none */
    lk_progress_fn *progress;
    void *progress_context;
    lk_preview_fn *preview; /* models/common/preview.h; FLUX.2, Qwen-Image, Step1X-Edit */
    void *preview_context;
};

/* What the model said about a round of an edit with reflection. */
enum lk_verdict { LK_VERDICT_NONE, LK_VERDICT_SUCCESS, LK_VERDICT_OTHERS, LK_VERDICT_REFLECTION, LK_VERDICT_FAILED };

#define LK_MAX_ROUNDS 20

/* One round of an edit. Texts belong to the result. */
struct lk_round {
    char *prompt;     /* that the edit was made with */
    bool from_source; /* the source was edited; otherwise the round's before */
    enum lk_verdict verdict;
    char *reflection;              /* the model's words, NULL without reflection */
    char *reason;                  /* of `consistency` */
    double consistency;            /* 0..10: the result against a description of what it should be */
    double edit_score, look_score; /* the least of what the model gave the edit and the picture's look */
    double score;                  /* their product */
};

/* Pixels of a reference image as given, and as the VAE sees it: resized, then cropped. */
struct lk_reference_size {
    int source_width, source_height, width, height, crop_left, crop_top;
    char converted_from[LK_IMAGE_PROFILE_NAME]; /* the profile of its file's colours; "": sRGB's, or none */
};

struct lk_result {
    struct lk_image image;
    int width, height; /* as it was made; with a mask the image has the source's size */
    int n_steps;
    double cfg_scale; /* true CFG as it was done; 1: one forward a step */
    float sigmas[LK_MAX_STEPS + 1];
    /* Of a step cache (accel), by branch, in it by gate: which steps were computed, and the distance that decided; NaN:
     * none. */
    int n_cached;                           /* 0: no cache */
    const char *cache_gates[LK_MAX_CACHES]; /* "double", "single"; NULL: over all blocks */
    bool computed[LK_MAX_CACHES][LK_MAX_STEPS];
    double distance[LK_MAX_CACHES][LK_MAX_STEPS];
    int n_cut_ids;         /* of the prompt, or of the negative one: those that the model does not read */
    char mask_sha256[65];  /* of the bits; "": no mask */
    double mask_edited;    /* the share of pixels that may change */
    int64_t mask_soft;     /* pixels that the mask's file has neither black nor white */
    bool kept_exact;       /* the others have the source's bytes */
    double seam[2];        /* lk_mask_seam of the image and of the source */
    char noise_sha256[65]; /* of the noise as drawn, little-endian bytes in its dtype */
    struct lk_reference_size references[LK_MAX_REFERENCES];
    int n_references;
    size_t peak_bytes;   /* of the activation arena */
    char embeds_isa[32]; /* what encoded the prompts before, with prompt_embeds: "avx2", "avx2, center"; else "" */
    /* Thinking and reflection (Step1X-Edit); empty without them. */
    struct lk_round rounds[LK_MAX_ROUNDS];
    int n_rounds, best_round;
};

/* One stage of a run as the plan device saw it. */
struct lk_plan_stage {
    /* "vision", "text_encoder", "vae_encode", "conditioning" (what is made once for all steps), "transformer" (a
     * step), "region" (a step of the edited tokens only, as if it were all), "decoder_setup" and "decoder" (the same
     * two of a second diffusion), "vae_decode" */
    const char *name;
    uint64_t parameters;   /* of the component; of "conditioning" and "transformer" those that the stage reads */
    uint64_t weight_bytes; /* that the stage reads */
    uint64_t flops;        /* one forward */
    uint64_t bytes;        /* touched by one forward */
    uint64_t peak_bytes;   /* activations and scratch, weights not counted */
    int calls;             /* forwards per image */
};

struct lk_plan {
    const char *family;
    int width, height, n_references, n_steps;
    int multiple;     /* sides that the request asks for are rounded down to one of it, as the reference does */
    int64_t n_tokens; /* of the transformer's sequence */
    struct lk_plan_stage stages[8];
    int n_stages;
    uint64_t weight_bytes; /* of all stages; what two of them read counts once */
    uint64_t arena_bytes;  /* what lk_device_prepare needs */
    /* Memory of the device with the arena and every weight that the run reads: exactly what a fresh device will have
     * allocated at its peak (on a GPU: beside the driver's context). Without weights it goes by the compute dtype. */
    uint64_t device_bytes;
    uint64_t least_bytes; /* the same when as many weights as can be are streamed */
    /* Where the target's budget has the weights (engine/placement.h); nothing on a device that reads host memory. */
    bool fits, whole;                    /* whole: all weights at once */
    uint64_t placed_bytes, beside_bytes; /* of device memory; what the process takes besides */
    uint64_t pinned_bytes;               /* of host memory */
    bool sparing; /* blocks work in slices of rows and the VAE, where it can, in bands: it does not fit otherwise */
    int n_ranks;  /* devices like this one that hold the weights together; 0: none */
    struct lk_plan_placed {
        char name[24];
        uint64_t resident_bytes, streamed_bytes, ring_bytes; /* of what may travel; resident: ranks' own shares too */
        bool pinned;                                         /* from a copy in pinned memory, else by readers */
        bool packed;                                         /* some are quantised */
        double resident_s, placed_s; /* predicted, once through the stage: all resident, and as placed */
        double flops;                /* of those; once through the stage may be several forwards */
    } placed[LK_MAX_STAGES];
    int n_placed;
};

/* model: a folder in HF layout, ORG/NAME[@revision] in the HF cache, or a .safetensors file with all weights (Stable
 * Diffusion's, in the names of its authors), beside which lie its tokenizers and, where they are not the released ones,
 * its configs. compute: LK_F32 or LK_BF16. */
enum lk_code lk_pipeline_open(struct lk_pipeline **out, const char *model, enum lk_dtype compute);
/* From config files alone, or a known family name ("flux2-dev") for the released configuration: can plan, cannot edit.
 */
enum lk_code lk_pipeline_open_configs(struct lk_pipeline **out, const char *model, enum lk_dtype compute);

struct lk_pipeline_options {
    enum lk_dtype compute;
    enum lk_quantize quantize; /* the transformer's weights where the checkpoint has not done it */
    const char *transformer;   /* a file with other weights of the transformer, safetensors or GGUF; NULL: none */
    const char *const *loras;  /* adapters of the transformer, FILE[=SCALE], in their order (weights/lora/lora.h) */
    int n_loras;
    const char *variant; /* of the files of a model that has no edits, "fp16"; NULL: those without, else fp16 or bf16 */
    /* A file of lk_pipeline_embed that every request will name: the model's folder needs no text_encoder/ then, whose
     * config and identity are taken from the file. NULL: it needs one. */
    const char *prompt_embeds;
    bool configs; /* as lk_pipeline_open_configs; of adapters only shapes are read */
};
enum lk_code lk_pipeline_open_with(struct lk_pipeline **out, const char *model,
                                   const struct lk_pipeline_options *options);
void lk_pipeline_close(struct lk_pipeline *pipeline);

/* A model that is known by name. */
struct lk_model_info {
    const char *name;       /* "flux2-dev" */
    const char *repository; /* "black-forest-labs/FLUX.2-dev", NULL if none is released in this layout */
    bool studied;           /* one of the study's three */
    bool only_planned;      /* its edits are refused */
};
/* Model i, the study's three first; false when there are no more. */
bool lk_model_info(int i, struct lk_model_info *out);

/* num_inference_steps that the model's protocol asks for; 0: any. */
int lk_pipeline_made_for_steps(const struct lk_pipeline *pipeline);
bool lk_pipeline_has_preview(const struct lk_pipeline *pipeline);
const char *lk_pipeline_family(const struct lk_pipeline *pipeline); /* "flux2-dev" */
/* Whether it edits images; otherwise a request has none. */
bool lk_pipeline_takes_images(const struct lk_pipeline *pipeline);
const char *lk_pipeline_folder(const struct lk_pipeline *pipeline); /* resolved folder or single file, NULL for a bare
                                                                       family name */
/* Digests of all that was read of the folder beside weights, as weights/config_identity.h has them: a JSON object, NULL
 * for a bare family name. */
const char *lk_pipeline_configs(const struct lk_pipeline *pipeline);
/* The adapters; NULL: none. */
const struct lk_loras *lk_pipeline_loras(const struct lk_pipeline *pipeline);
/* The adapters that `lora merge` has put into the weights, a JSON list; NULL: none. */
const char *lk_pipeline_merged(const struct lk_pipeline *pipeline);
/* |W| (Frobenius) of a layer of the transformer, "transformer_blocks.0.attn.to_q"; 0: it is not there, or packed. */
double lk_pipeline_weight_norm(const struct lk_pipeline *pipeline, const char *layer);
/* Formats of the weights that are quantised, of the transformer and of the text encoder as far as it is bound, as "nf4"
 * or "q4_k q6_k" into out; "" where all are plain. */
void lk_pipeline_quantization(const struct lk_pipeline *pipeline, char out[96]);
/* SHA-256 (hex) over the components' identities (lk_checkpoint_identity). Looks at both ends of every tensor, which on
 * a cold disk takes seconds: after an edit most of them are in memory. */
enum lk_code lk_pipeline_weights_identity(const struct lk_pipeline *pipeline, char out[65]);
/* The same into got, and LK_E_CHANGED unless it is the expected one; what versions before 0.2 recorded of a model in an
 * HF cache counts too. */
enum lk_code lk_pipeline_weights_check(const struct lk_pipeline *pipeline, const char *expected, char got[65]);

void lk_request_init(struct lk_request *request, const struct lk_pipeline *pipeline);

/* Plans `request` (prompt text and pixels are not looked at, sizes are) for kernels of `target`. */
enum lk_code lk_pipeline_plan(struct lk_pipeline *pipeline, const struct lk_device *target,
                              const struct lk_request *request, struct lk_plan *out);

/* Where a plan has the transformer's weights; NULL if it does not fit or its device reads host memory. */
const struct lk_plan_placed *lk_plan_transformer(const struct lk_plan *plan);

/* Which form of the transformer's weights a run should have. */
struct lk_quantize_question {
    const char *model;
    const struct lk_pipeline_options *options; /* but for their form */
    const struct lk_request *request;          /* as lk_pipeline_plan takes it */
    int jobs_per_visit;                        /* that there will be */
    uint64_t host_bytes; /* that may be pinned for weights that travel, which come from disk beyond it; 0: no bound */
};
/* The first of none, q8 and nf4 whose step takes, with the weights where target's budget puts them, a twentieth more
 * than with all of them resident at most; the fastest if none does; the smallest if none fits. None for weights that
 * are packed already and for a device that reads host memory. From configs alone. */
enum lk_code lk_pipeline_choose_quantize(const struct lk_quantize_question *question, struct lk_device *target,
                                         enum lk_quantize *out);

/* Whether the request can be run at all, before anything is: its parameters, the sizes of its images (whose pixels may
 * be NULL), and whether its prompt is read whole where it asks for that. The pipeline was opened with its weights. */
enum lk_code lk_pipeline_check(struct lk_pipeline *pipeline, const struct lk_request *request);

/* Prepares `dev` with what the plan says and runs. Intermediate tensors go to dev->trace. The result is bit-equal for
 * equal pipeline, request and device architecture. */
enum lk_code lk_pipeline_edit(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                              struct lk_result *result);
void lk_result_free(struct lk_result *result);

/* A job of a queue. */
struct lk_queued {
    const struct lk_request *request;
    struct lk_rng *rng; /* noise is drawn from it instead of from a generator with the request's seed; NULL: none */
    struct lk_result result; /* empty when the job has failed */
    struct lk_error error;   /* code LK_OK: done */
    bool ended;              /* it has its picture or has failed by itself */
};

struct lk_queue {
    struct lk_queued *const *jobs;
    int n_jobs;
    int jobs_per_visit; /* that pass through a layer of the transformer together at most, 1 to LK_MAX_JOBS_PER_VISIT;
                           fewer when memory says so */
    void (*done)(void *context, struct lk_queued *job); /* called when a job has its picture or has failed; or NULL */
    void *context;
    /* What an earlier queue of this pipeline has left of its prompts and images, and what this one leaves, up to
     * cache_bytes; lk_kept_free at last. NULL: nothing is taken over. */
    struct lk_kept **cache;
    size_t cache_bytes;
    struct lk_kept **embeds; /* stop when the prompts are encoded, and leave them here; else NULL */
    bool only_placed;        /* stop when the device has the weights where the jobs would want them; no job ends */
    bool references;         /* lk_pipeline_embed: with embeds, the images too */
    const char *rewrites;    /* lk_pipeline_embed: JSON, a list of how prompts were rewritten, which the file keeps */
};

#define LK_MAX_JOBS_PER_VISIT 8

/* Stage by stage instead of job by job: encodes all prompts and images, equal ones once, then runs the transformer for
 * all jobs, then decodes, so that weights need to be there for one stage at a time. A job's bits do not depend on the
 * others, nor on jobs_per_visit. Between stages a job keeps its prompts, latents and references in host memory. A job
 * that cannot be done (its request, its pictures, NaNs) fails alone: LK_E_PARTIAL when there is one; what concerns all
 * (memory, device, files, interruption) ends the queue, and the jobs that were not done get its code. */
enum lk_code lk_pipeline_edit_queue(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_queue *queue);

/* Encodes the prompts of all jobs, with their pictures where the encoder sees them, and the pictures themselves, and
 * writes what the transformer is told to a safetensors file: with it as prompt_embeds the same jobs give the same bits
 * on the same architecture, by a machine that has no room for the text encoder. A picture that the file does not have
 * is encoded by the edit. Nothing is written when a job fails, whose error is returned. */
enum lk_code lk_pipeline_embed(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_queue *queue,
                               const char *path);
