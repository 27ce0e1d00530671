/* The library by strings and pixels alone, for callers that have no C structs: Python, Julia, R. Parameters have the
 * names of their options ("num-inference-steps") or keys ("num_inference_steps") and are written as on the command
 * line.
 *
 *     const char *const options[] = {"dtype", "bf16", "device", "cuda", NULL};
 *     struct lk_session *s;
 *     LK_TRY(lk_session_open(&s, "black-forest-labs/FLUX.2-dev", options));
 *     if (!(rc = lk_session_set(s, "prompt", "Add a red hat"))) rc = lk_session_image_file(s, "in.jpg");
 *     if (!rc) rc = lk_session_run(s, NULL, NULL);
 *     if (!rc) rc = lk_session_save(s, "out.png");   // the bytes that `likeness edit` writes
 *     lk_session_close(s); */
#pragma once

#include "models/recipe.h"

struct lk_session;

/* options: names and values in turn, NULL at the end: dtype, device (cpu, cuda, cuda:I), threads, quantize, lora, vram,
 * ... options NULL: none. LK_E_USAGE names the option that is none of a run. */
enum lk_code lk_session_open(struct lk_session **out, const char *model, const char *const *options);
void lk_session_close(struct lk_session *s);
const char *lk_session_family(const struct lk_session *s); /* "flux2-dev" */
const char *lk_session_device(const struct lk_session *s); /* "cpu (avx2, 2 threads)" */

/* What is asked for; it stays from run to run. A parameter that is set again replaces its value, a list gets longer. */
enum lk_code lk_session_set(struct lk_session *s, const char *name, const char *value);
/* One more reference image: a file, or 8-bit channels interleaved (1, 2, 3 or 4 of them), which are copied. A recipe
 * has the file's name and digest; of pixels the name "pixels" and the digest of their bytes. */
enum lk_code lk_session_image_file(struct lk_session *s, const char *path);
enum lk_code lk_session_image(struct lk_session *s, const unsigned char *pixels, int width, int height, int channels);
/* Forgets parameters, images and the picture. */
void lk_session_clear(struct lk_session *s);

/* After each step a small, rough picture of what the latents are on the way to, RGB [height, width, 3]; anything but 0
 * stops the run. NULL: none, as it is at first. Of FLUX.2, Qwen-Image and Step1X-Edit. */
typedef int lk_session_preview_fn(void *context, const unsigned char *rgb, int width, int height, int step,
                                  int n_steps);
void lk_session_preview(struct lk_session *s, lk_session_preview_fn *preview, void *context);
/* Before each step; anything but 0 stops the run with LK_E_INTERRUPTED. */
typedef int lk_session_progress_fn(void *context, const char *stage, int step, int n_steps);
enum lk_code lk_session_run(struct lk_session *s, lk_session_progress_fn *progress, void *context);
/* Of the last run, until the next: RGB [height, width, 3]; its recipe as JSON, NULL when memory is out. */
const unsigned char *lk_session_pixels(const struct lk_session *s, int *width, int *height);
const char *lk_session_recipe(struct lk_session *s);
/* The picture with its recipe: a file, .jpg, .jpeg and .webp in quality 95, else PNG; or a PNG's bytes, which belong to
 * the session; NULL: lk_error_text(). */
enum lk_code lk_session_save(struct lk_session *s, const char *path);
const void *lk_session_encode(struct lk_session *s, size_t *n_bytes);
