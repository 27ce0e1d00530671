#include "models/parameters.h"
#include "models/common/cache.h"
#include "models/schedule.h"
#include "models/sd/sampler.h"
#include "models/sd/sega.h"

#include <string.h>

#define REQUEST(field)  LK_IN_REQUEST, .offset = offsetof(struct lk_job, request.field)
#define RUN(field)      LK_IN_RUN, .offset = offsetof(struct lk_job, run.field), .families = LK_FOR_ALL
#define GUIDED_BY_TWO   (LK_FOR_QWEN | LK_FOR_STEP1X)
#define RANGE(from, to) .min = (from), .max = (to)

static enum lk_code check_lora(const char *flag, const char *text, char **own) {
    size_t length;
    double scale;
    (void)flag, (void)own;
    return lk_lora_split(text, &length, &scale);
}

const struct lk_parameter lk_parameters[] = {
    {"prompt", "prompt", NULL, 'p', LK_PARAMETER_TEXT, REQUEST(prompt), .record = LK_RECORD_ALWAYS,
     .families = LK_FOR_ALL, .group = "Input", .unit = "TEXT", .help = "the instruction or question, UTF-8"},
    {"seed", "seed", NULL, 's', LK_PARAMETER_INT64, REQUEST(seed), .record = LK_RECORD_ALWAYS, .families = LK_FOR_ALL,
     .group = "Sampling", .unit = "N", RANGE(0, 0x1p63),
     .help = "seed of the noise, as torch.manual_seed; of chat, of the tokens drawn (0 unless told)"},
    {"rng", "rng", NULL, 0, LK_PARAMETER_CHOICE, RUN(rng), .record = LK_RECORD_ALWAYS, .group = "Sampling",
     .unit = "NAME", .initial = "torch-cpu", .choices = "torch-cpu",
     .help = "whose stream of normal numbers the seed means"},
    {"dtype", "dtype", NULL, 0, LK_PARAMETER_CHOICE, RUN(dtype), .record = LK_RECORD_ALWAYS, .group = "Model",
     .unit = "TYPE", .initial = "bf16", .choices = "bf16|f32", .help = "arithmetic of all networks"},
    {"transformer", "transformer", NULL, 0, LK_PARAMETER_FILE, RUN(transformer), .machine = true, .group = "Model",
     .unit = "FILE",
     .help = "other weights of the transformer than the model's: a .gguf file (Q8_0, Q4_0, Q4_K, Q5_K, "
             "Q6_K) or a single .safetensors, fp8 too; a picture's recipe names them by their identity"},
    {"lora", "lora", NULL, 0, LK_PARAMETER_TEXTS, RUN(loras), .read = check_lora, .machine = true, .group = "Model",
     .unit = "FILE[=SCALE]",
     .help = "a LoRA of the transformer, of Stable Diffusion of UNet and text encoders, .safetensors in any published "
             "layout, a path or ORG/NAME[@REV][:FILE] in the HF "
             "cache; again for more, at most 8, in their order"},
    {"variant", "variant", NULL, 0, LK_PARAMETER_CHOICE, RUN(variant), .machine = true, .group = "Model",
     .unit = "NAME", .choices = "fp16|bf16", .otherwise = "files without one, else fp16 or bf16",
     .help = "Stable Diffusion and Stable Cascade: which files of a folder that has both, as NAME.fp16.safetensors; a "
             "picture's recipe names them by their identity"},
    {"quantize", "quantize", NULL, 0, LK_PARAMETER_CHOICE, RUN(quantize), .record = LK_RECORD_USED, .label = "quantize",
     .a1111 = "Quantize", .group = "Model", .unit = "TYPE", .initial = "none", .choices = "none|q8|nf4|nf4-mse",
     .help = "pack the transformer's weights as they are read: q8 in 8 bits, nf4 in 4 as bitsandbytes does, nf4-mse "
             "the same with scales that lose a fifth less; less memory, another picture, which its recipe records. Of "
             "edit and plan also auto: none, unless steps would wait for weights; then q8, then nf4"},
    /* cuda:1 is a device as well: checked where it is opened */
    {"device", "device", NULL, 0, LK_PARAMETER_TEXT, RUN(device), .record = LK_RECORD_ALWAYS, .machine = true,
     .group = "Model", .unit = "NAME", .initial = "cpu", .choices = "cpu|cuda",
     .help =
         "where to compute (cuda:1 is the second GPU); a device that is not there is an error, never a fallback. Of "
         "plan and study plan also a GPU that need not be there: sm_80 (A100), sm_86, sm_89, sm_90 or sm_120"},
    {"gemm", "gemm", NULL, 0, LK_PARAMETER_CHOICE, RUN(gemm), .record = LK_RECORD_USED, .label = "gemm",
     .a1111 = "GEMM", .group = "Model", .unit = "NAME", .initial = "own", .choices = "own|cublaslt",
     .help = "who computes matrix products on a cuda device: this program, or NVIDIA's cuBLASLt if it is installed "
             "(other bits, which a picture's recipe records)"},
    {"conv", "conv", NULL, 0, LK_PARAMETER_CHOICE, RUN(conv), .record = LK_RECORD_USED, .label = "conv",
     .a1111 = "Conv", .group = "Model", .unit = "NAME", .initial = "own", .choices = "own|cudnn",
     .help = "the same of convolutions, for NVIDIA's cuDNN"},
    {"threads", "threads", NULL, 't', LK_PARAMETER_INT, RUN(threads), .machine = true, .group = "Model", .unit = "N",
     .otherwise = "all cores", RANGE(1, 1024), .help = "host threads; the result does not depend on it"},
    {"vram", "vram", NULL, 0, LK_PARAMETER_BYTES, RUN(vram), .machine = true, .group = "Model", .unit = "SIZE",
     .otherwise = "what is free on the GPU, less 1G",
     .help = "memory of the GPU that may be used, as 16G or 81920M (1024-based): weights that do not fit are streamed; "
             "the result does not depend on it"},
    {"host-ram", "host_ram", NULL, 0, LK_PARAMETER_BYTES, RUN(host_ram), .machine = true, .group = "Model",
     .unit = "SIZE", .otherwise = "what is free, also by the job's limits, less 4G",
     .help =
         "memory of the host for copies of streamed weights, of what is free at most; those without a copy are read "
         "from their files; the result does not depend on it"},
    {"weights", "weights", NULL, 0, LK_PARAMETER_CHOICE, RUN(weights), .machine = true, .group = "Model",
     .unit = "NAME", .initial = "own", .choices = "own|sharded",
     .help = "sharded: the GPUs of --device cuda:0,1,2,3 hold one copy of the weights together and gather each layer "
             "ahead of use, from each other's memory or, without access to it, by NVIDIA's NCCL; each makes jobs of "
             "its own, with the same bits"},
    {"num-inference-steps", "num_inference_steps", "steps", 0, LK_PARAMETER_INT, REQUEST(num_inference_steps),
     .record = LK_RECORD_ALWAYS, .families = LK_FOR_ALL, .label = "steps", .group = "Sampling", .unit = "N",
     RANGE(1, LK_MAX_STEPS), .help = "denoising steps"},
    {"preset", "preset", NULL, 0, LK_PARAMETER_CHOICE, REQUEST(preset), .record = LK_RECORD_USED,
     .families = LK_FOR_FLUX2 | LK_FOR_QWEN, .label = "preset", .a1111 = "Preset", .group = "Sampling", .unit = "NAME",
     .otherwise = "none", .choices = "qwen-lightning-4|qwen-lightning-8|flux2-turbo-8",
     .help = "steps, guidance and schedule that a few-step LoRA was trained with, where they are not given"},
    {"input-sigmas", "input_sigmas", "sigmas", 0, LK_PARAMETER_TEXT, REQUEST(input_sigmas), .read = lk_sigmas_check,
     .record = LK_RECORD_USED, .families = LK_FOR_EDITING, .label = "sigmas in", .group = "Sampling", .unit = "X,X,...",
     .otherwise = "1 to 1/steps, evenly", .help = "noise levels before the shift, falling from 1; as many steps"},
    {"scheduler", "scheduler", NULL, 0, LK_PARAMETER_TEXT, REQUEST(scheduler), .read = lk_scheduler_load,
     .record = LK_RECORD_USED, .families = LK_FOR_ALL & ~LK_FOR_CASCADE, .label = "scheduler", .a1111 = "Sampler",
     .group = "Sampling", .unit = "FILE.json|NAME", .otherwise = "the model's",
     .help = "a scheduler_config.json in place of the model's; the recipe has its values. Of Stable Diffusion a "
             "sampler: " LK_SAMPLER_NAMES},
    {"flow-shift", "flow_shift", NULL, 0, LK_PARAMETER_TEXT, REQUEST(flow_shift), .read = lk_flow_shift_check,
     .record = LK_RECORD_USED, .families = LK_FOR_EDITING, .label = "flow shift", .a1111 = "Shift", .group = "Sampling",
     .unit = "X", .otherwise = "the model's",
     .help = "a static shift of the noise levels, 0.01 to 100, in place of the scheduler's own"},
    {"guidance-scale", "guidance_scale", "guidance", 0, LK_PARAMETER_NUMBER, REQUEST(guidance_scale),
     .record = LK_RECORD_ALWAYS, .families = LK_FOR_FLUX2 | LK_FOR_BOTH_SD | LK_FOR_CASCADE, .label = "guidance",
     .group = "Sampling", .unit = "X", RANGE(0, 1000), .idle = 1,
     .help =
         "FLUX.2: embedded guidance; Stable Diffusion and Stable Cascade's prior: classifier-free guidance, above 1 "
         "each step runs twice; of the others 1, which does nothing"},
    {"decoder-steps", "decoder_steps", NULL, 0, LK_PARAMETER_INT, REQUEST(decoder_steps), .record = LK_RECORD_USED,
     .families = LK_FOR_CASCADE, .label = "decoder steps", .a1111 = "Decoder steps", .group = "Sampling", .unit = "N",
     RANGE(1, LK_MAX_STEPS), .help = "denoising steps of the decoder, which follow those of the prior"},
    {"decoder-guidance", "decoder_guidance", NULL, 0, LK_PARAMETER_NUMBER, REQUEST(decoder_guidance),
     .record = LK_RECORD_USED, .families = LK_FOR_CASCADE, .label = "decoder guidance", .a1111 = "Decoder guidance",
     .group = "Sampling", .unit = "X", RANGE(0, 1000), .otherwise = "0",
     .help = "classifier-free guidance of the decoder, above 1 each of its steps runs twice"},
    {"true-cfg-scale", "true_cfg_scale", "cfg-scale", 0, LK_PARAMETER_NUMBER, REQUEST(true_cfg_scale),
     .record = LK_RECORD_USED, .families = GUIDED_BY_TWO, .label = "true CFG", .group = "Sampling", .unit = "X",
     RANGE(0, 1000), .help = "classifier-free guidance: above 1 each step runs the model twice"},
    {"negative-prompt", "negative_prompt", NULL, 'n', LK_PARAMETER_TEXT, REQUEST(negative_prompt),
     .record = LK_RECORD_USED, .families = GUIDED_BY_TWO | LK_FOR_BOTH_SD | LK_FOR_CASCADE, .label = "negative",
     .group = "Sampling", .unit = "TEXT", .otherwise = "the model's own",
     .help = "what the second run of a step is told"},
    {"eta", "eta", NULL, 0, LK_PARAMETER_NUMBER, REQUEST(eta), .record = LK_RECORD_USED, .families = LK_FOR_BOTH_SD,
     .label = "eta", .group = "Sampling", .unit = "X", RANGE(0, 1),
     .help = "noise that --scheduler ddim adds in each step: 0 none, 1 as much as DDPM"},
    {"clip-skip", "clip_skip", NULL, 0, LK_PARAMETER_INT, REQUEST(clip_skip), .record = LK_RECORD_USED,
     .families = LK_FOR_BOTH_SD, .label = "CLIP skip", .a1111 = "Clip skip", .group = "Sampling", .unit = "N",
     RANGE(0, 100), .help = "last layers of the text encoders that the prompt does not pass"},
    {"guidance-rescale", "guidance_rescale", NULL, 0, LK_PARAMETER_NUMBER, REQUEST(guidance_rescale),
     .record = LK_RECORD_USED, .families = LK_FOR_BOTH_SD, .label = "guidance rescale", .group = "Sampling",
     .unit = "X", RANGE(0, 1),
     .help = "share of a guided prediction that is scaled back to the unguided one's deviation"},
    {"concept", "concept", NULL, 0, LK_PARAMETER_TEXTS, REQUEST(concepts), .read = lk_sega_concept_check,
     .record = LK_RECORD_USED, .families = LK_FOR_BOTH_SD, .label = "concepts", .group = "Concepts",
     .unit = LK_SEGA_SYNTAX, .otherwise = "none",
     .help =
         "semantic guidance (SEGA): push the picture towards this text, with reverse away from it; settings: scale= "
         "(4), threshold= (0.95), weight= (1), warmup= (5) and cooldown= (never), in calls of the UNet; again for "
         "more, at most 8"},
    {"concept-momentum-scale", "concept_momentum_scale", NULL, 0, LK_PARAMETER_NUMBER, REQUEST(concept_momentum_scale),
     .record = LK_RECORD_USED, .families = LK_FOR_BOTH_SD, .label = "momentum", .group = "Concepts", .unit = "X",
     RANGE(0, 1), .help = "share of earlier calls' concept guidance that is added to each call's"},
    {"concept-momentum-beta", "concept_momentum_beta", NULL, 0, LK_PARAMETER_NUMBER, REQUEST(concept_momentum_beta),
     .record = LK_RECORD_USED, .families = LK_FOR_BOTH_SD, .label = "beta", .group = "Concepts", .unit = "X",
     RANGE(0, 1), .help = "share of the momentum that each call keeps"},
    {"image-index", "image_index", NULL, 0, LK_PARAMETER_INT, REQUEST(image_index), .record = LK_RECORD_USED,
     .families = LK_FOR_BOTH_SD, .label = "image index", .group = "Sampling", .unit = "N", RANGE(0, 9999),
     .help = "image of a batch that one seed drew at once, as num_images_per_prompt does; 0 is the first"},
    {"prompt-2", "prompt_2", NULL, 0, LK_PARAMETER_TEXT, REQUEST(prompt_2), .record = LK_RECORD_USED,
     .families = LK_FOR_SDXL, .label = "prompt 2", .group = "Input", .unit = "TEXT", .otherwise = "the prompt",
     .help = "what the second text encoder is told"},
    {"negative-prompt-2", "negative_prompt_2", NULL, 0, LK_PARAMETER_TEXT, REQUEST(negative_prompt_2),
     .record = LK_RECORD_USED, .families = LK_FOR_SDXL, .label = "negative 2", .group = "Sampling", .unit = "TEXT",
     .otherwise = "the negative prompt", .help = "what the second text encoder is told as the negative prompt"},
    {"original-size", "original_size", NULL, 0, LK_PARAMETER_INTS, REQUEST(original_size), .record = LK_RECORD_USED,
     .families = LK_FOR_SDXL, .label = "original size", .group = "Sampling", .unit = "HEIGHT,WIDTH", RANGE(0, 65535),
     .otherwise = "the output's", .help = "size of the picture that the model is told of, before any crop"},
    {"crops-coords-top-left", "crops_coords_top_left", NULL, 0, LK_PARAMETER_INTS, REQUEST(crops_coords_top_left),
     .record = LK_RECORD_USED, .families = LK_FOR_SDXL, .label = "crop", .group = "Sampling", .unit = "TOP,LEFT",
     RANGE(0, 65535), .otherwise = "0,0", .help = "where the model is told that it was cropped"},
    {"target-size", "target_size", NULL, 0, LK_PARAMETER_INTS, REQUEST(target_size), .record = LK_RECORD_USED,
     .families = LK_FOR_SDXL, .label = "target size", .group = "Sampling", .unit = "HEIGHT,WIDTH", RANGE(0, 65535),
     .otherwise = "the output's", .help = "size that the model is told to aim at"},
    {"size-level", "size_level", NULL, 0, LK_PARAMETER_INT, REQUEST(size_level), .record = LK_RECORD_USED,
     .families = LK_FOR_STEP1X, .label = "size level", .group = "Sampling", .unit = "PIXELS", RANGE(16, 8192),
     .help = "edits are made at about this size squared, then resized to the source's"},
    {"vae-image-size", "vae_image_size", NULL, 0, LK_PARAMETER_INT, REQUEST(vae_area), .record = LK_RECORD_USED,
     .families = LK_FOR_QWEN, .label = "VAE image size", .group = "Sampling", .unit = "PIXELS", RANGE(1024, 0x1p26),
     .otherwise = "1048576", .help = "area to which references are scaled for the VAE, as 4096 for 64 x 64"},
    {"condition-image-size", "condition_image_size", NULL, 0, LK_PARAMETER_INT, REQUEST(condition_area),
     .record = LK_RECORD_USED, .families = LK_FOR_QWEN, .label = "condition image size", .group = "Sampling",
     .unit = "PIXELS", RANGE(1024, 0x1p26), .otherwise = "147456", .help = "the same for the text encoder"},
    {"accel", "accel", NULL, 0, LK_PARAMETER_TEXT, REQUEST(accel), .read = lk_accel_check, .record = LK_RECORD_USED,
     .families = LK_FOR_EDITING, .label = "accel", .a1111 = "Accel", .group = "Sampling",
     .unit = "METHOD[,KEY=VALUE...]", .otherwise = "every token in every step",
     .choices = "region|fbcache|dbcache|teacache",
     .help = "another picture, recorded. fbcache,threshold=X: leave out blocks in steps where the first does as "
             "before, within X (warmup=N, row=N, last=on|off, steps=0:1:5); dbcache (f, b, interval, max): as "
             "cache-dit; "
             "teacache (poly): by its input. region, of Step1X-Edit: edited tokens; 28 steps"},
    {"mask", "mask", NULL, 0, LK_PARAMETER_FILE, REQUEST(mask), .families = LK_FOR_EDITING, .machine = true,
     .group = "Input", .unit = "FILE.png", .otherwise = "all of it",
     .help = "a grey picture of the first image's size: white is edited, black keeps the image's bytes exactly; the "
             "result has the image's size"},
    {"mask-feather", "mask_feather", NULL, 0, LK_PARAMETER_INT, REQUEST(mask_feather), .record = LK_RECORD_USED,
     .families = LK_FOR_EDITING, .label = "feather", .group = "Input", .unit = "PIXELS", .otherwise = "0",
     RANGE(0, 512), .help = "edited pixels so near to a kept one are mixed with the image's"},
    {"mask-cell", "mask_cell", NULL, 0, LK_PARAMETER_CHOICE, REQUEST(mask_cell), .record = LK_RECORD_USED,
     .families = LK_FOR_EDITING, .label = "mask cell", .group = "Input", .unit = "NAME", .otherwise = "any",
     .choices = "any|sample",
     .help = "which latents may change: any with an edited pixel, or by the sampled pixels of diffusers' pipelines"},
    {"mask-paste", "mask_paste", NULL, 0, LK_PARAMETER_CHOICE, REQUEST(mask_paste), .record = LK_RECORD_USED,
     .families = LK_FOR_EDITING, .label = "mask paste", .group = "Input", .unit = "NAME", .otherwise = "on",
     .choices = "on|off",
     .help = "off: the model's own picture, where what is kept has passed through its latents and has other bytes"},
    {"strength", "strength", NULL, 0, LK_PARAMETER_NUMBER, REQUEST(strength), .record = LK_RECORD_USED,
     .families = LK_FOR_EDITING, .label = "strength", .a1111 = "Denoising strength", .group = "Sampling", .unit = "X",
     .otherwise = "1: from noise alone", RANGE(0.001, 1),
     .help = "with --mask: take this share of the steps, from the image's own latents with noise"},
    {"max-sequence-length", "max_sequence_length", NULL, 0, LK_PARAMETER_INT, REQUEST(max_sequence_length),
     .record = LK_RECORD_ALWAYS, .families = LK_FOR_EDITING, .group = "Sampling", .unit = "TOKENS", RANGE(1, 32768),
     .help = "prompt tokens; longer prompts are cut (those of Qwen edits never), FLUX.2's shorter ones padded"},
    {"text-encoder-out-layers", "text_encoder_out_layers", NULL, 0, LK_PARAMETER_INTS, REQUEST(text_encoder_out_layers),
     .record = LK_RECORD_USED, .families = LK_FOR_FLUX2, .group = "Sampling", .unit = "N,N,N", RANGE(0, 1000),
     .help = "hidden states of the text encoder that condition the transformer"},
    {"width", "width", NULL, 'W', LK_PARAMETER_INT, REQUEST(width), .record = LK_RECORD_ALWAYS, .families = LK_FOR_ALL,
     .group = "Sampling", .unit = "PIXELS", RANGE(1, 65535), .otherwise = "of the first image, else 1024",
     .help = "output width, a multiple of 16"},
    {"height", "height", NULL, 'H', LK_PARAMETER_INT, REQUEST(height), .record = LK_RECORD_ALWAYS,
     .families = LK_FOR_ALL, .group = "Sampling", .unit = "PIXELS", RANGE(1, 65535),
     .otherwise = "of the first image, else 1024", .help = "output height, a multiple of 16"},
    {"exif-transpose", "exif_transpose", NULL, 0, LK_PARAMETER_FLAG, RUN(exif_transpose), .record = LK_RECORD_ALWAYS,
     .group = "Input", .initial = "on", .help = "turn photos upright by their EXIF orientation first"},
    {"attention-slicing", "attention_slicing", NULL, 0, LK_PARAMETER_INT, REQUEST(slice_rows),
     .families = LK_FOR_EDITING, .machine = true, .group = "Sampling", .unit = "ROWS", RANGE(16, 65536),
     .otherwise = "all; 1024 where memory wants it",
     .help = "rows that a block of the transformer works on at a time: less memory, the same bits"},
    {"vae-tiling", "vae_tiling", NULL, 0, LK_PARAMETER_FLAG, REQUEST(vae_tiling), .families = LK_FOR_QWEN,
     .machine = true, .group = "Sampling",
     .help = "let the VAE work in bands of rows: about half its memory, a little more time, the same bits"},
    {"vae-tile-rows", "vae_tile_rows", NULL, 0, LK_PARAMETER_INT, REQUEST(vae_tile_rows), .families = LK_FOR_QWEN,
     .machine = true, .group = "Sampling", .unit = "PIXELS", RANGE(16, 16384),
     .help = "rows of a band with --vae-tiling: fewer need less memory and more time, the bits are the same"},
    {"thinking-mode", "thinking_mode", NULL, 0, LK_PARAMETER_FLAG, REQUEST(thinking_mode), .record = LK_RECORD_USED,
     .families = LK_FOR_STEP1X, .label = "thinking", .group = "Thinking",
     .help = "let the model's language part rewrite the prompt first; needs --prompts-file"},
    {"reflection-mode", "reflection_mode", NULL, 0, LK_PARAMETER_FLAG, REQUEST(reflection_mode),
     .record = LK_RECORD_USED, .families = LK_FOR_STEP1X, .label = "reflection", .group = "Thinking",
     .help = "let it judge the picture and edit again; needs --prompts-file"},
    {"max-try-cnt", "max_try_cnt", NULL, 0, LK_PARAMETER_INT, REQUEST(max_try_cnt), .record = LK_RECORD_USED,
     .families = LK_FOR_STEP1X, .label = "rounds", .group = "Thinking", .unit = "N", RANGE(1, LK_MAX_ROUNDS),
     .help = "rounds of reflection at most"},
    {"prompts-file", "prompts_file", NULL, 0, LK_PARAMETER_FILE, REQUEST(prompts_file), .families = LK_FOR_STEP1X,
     .machine = true, .group = "Thinking", .unit = "FILE.json",
     .help = "the model's own prompts for thinking and reflection, checked by their SHA-256"},
    {"prompt-embeds", "prompt_embeds", NULL, 0, LK_PARAMETER_FILE, REQUEST(prompt_embeds), .families = LK_FOR_ALL,
     .machine = true, .group = "Input", .unit = "FILE",
     .help =
         "what `embed` made of the same prompt and pictures: the text encoder is not read, the picture is the same"},
};

const size_t lk_n_parameters = sizeof lk_parameters / sizeof *lk_parameters;
_Static_assert(sizeof lk_parameters / sizeof *lk_parameters <= LK_MAX_PARAMETERS, "a bit for each");
#define TEXTS_FOLLOWED(in, field, most)                                                                                \
    _Static_assert(most == LK_MAX_TEXTS &&                                                                             \
                       offsetof(struct in, n_##field) == offsetof(struct in, field) + LK_MAX_TEXTS * sizeof(char *),   \
                   "texts are followed by their number")
TEXTS_FOLLOWED(lk_job_run, loras, LK_MAX_LORAS);
TEXTS_FOLLOWED(lk_request, concepts, LK_SEGA_MAX_CONCEPTS);
#define FOLLOWED(field)                                                                                                \
    _Static_assert(offsetof(struct lk_request, n_##field) ==                                                           \
                       offsetof(struct lk_request, field) + LK_MAX_OUT_LAYERS * sizeof(int),                           \
                   "whole numbers are followed by their number")
FOLLOWED(text_encoder_out_layers);
FOLLOWED(original_size);
FOLLOWED(crops_coords_top_left);
FOLLOWED(target_size);

const struct lk_parameter *lk_parameter_named(const char *name) {
    for (size_t i = 0; i < lk_n_parameters; i++)
        if (!strcmp(lk_parameters[i].name, name) || !strcmp(lk_parameters[i].key, name)) return &lk_parameters[i];
    return NULL;
}
