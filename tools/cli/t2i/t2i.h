/* What `t2i` does beside tables of numbers. */
#pragma once

#include "eval/design/study.h"
#include "eval/t2i/images.h"
#include "eval/t2i/outcomes.h"
#include "tools/cli/core/options.h"
#include "tools/cli/edit/job.h"

/* The log that --log names, into `images`. */
enum lk_code cli_t2i_log(const struct cli_arguments *arguments, struct lk_t2i_images *images);
/* Where picture i of the log is: beside the log unless its path is absolute. lk_malloc'ed; NULL: LK_E_NOMEM. */
char *cli_t2i_path(const struct cli_arguments *arguments, const struct lk_t2i_images *images, size_t i);
/* The first cells of a line: prompt_id, model_tag, seed, cfg, each behind a comma. */
void cli_t2i_key(const struct lk_t2i_logged *line, struct lk_text *out);

/* What names the pictures of a model, as lk_pipeline_family says it, in logs and files: "flux", "sd-1_5". */
void cli_t2i_tag(const char *model, char tag[64]);
/* Whether a log's model_tag names a model that runs here. */
bool cli_t2i_runs_here(const char *tag);

/* The table of --csv, or the study's. */
enum lk_code cli_t2i_prompts(const struct cli_t2i_arguments *arguments, struct lk_t2i_prompts *out);

/* What --metrics has of who is depicted; without it nothing. */
enum lk_code cli_t2i_outcomes(const struct cli_arguments *arguments, struct lk_t2i_outcomes *outcomes);
cli_action cli_t2i_print_prompts, cli_t2i_reference, cli_t2i_metrics, cli_t2i_post_filter, cli_t2i_embed_norm;
/* The pictures of kept labels into the folder --output, with labels.csv and generation_log.csv. */
enum lk_code cli_t2i_filtered_folder(const struct cli_arguments *arguments, const struct lk_text *labels);
enum lk_code cli_t2i_tokens(const struct cli_arguments *arguments);    /* token_corr.csv */
enum lk_code cli_t2i_clip(const struct cli_arguments *arguments);      /* CLIP's cosines of pictures and prompts */
enum lk_code cli_t2i_attention(const struct cli_arguments *arguments); /* attn_corr.csv */
/* Of a log's pictures by --model the final latents: OUTPUT/NAME.csv, with --by of --labels or of the log. */
enum lk_code cli_t2i_features(const struct cli_arguments *arguments, const char *name);
enum lk_code cli_t2i_latents(const struct cli_arguments *arguments); /* latent_umap.png and what goes with it */
/* The study of text to image that `generate` is told; lk_study_close. */
enum lk_code cli_t2i_study(const struct cli_arguments *arguments, struct lk_study **out);
/* --target, and which attribute of it: --attribute, or its only one. */
enum lk_code cli_t2i_target(const struct cli_arguments *arguments, struct lk_t2i_distribution *target, int *attribute);
enum lk_code cli_t2i_online(const struct cli_arguments *arguments);   /* generate --post-filter online */
enum lk_code cli_t2i_ask(const struct cli_arguments *arguments);      /* the same, of a service */
enum lk_code cli_t2i_generate(const struct cli_arguments *arguments); /* a folder of pictures with their log */
/* Who labels, opened once for one log after another: --labeler, --faces and --classifier or --model. Labels that there
 * are stand in OUTPUT.partial until the table does: of a run that was stopped they are taken from there. LK_E_CHANGED
 * when they are of another log or model. *out is to be closed in any case. */
struct cli_labeller;
enum lk_code cli_labeller_open(struct cli_labeller **out, const struct cli_arguments *arguments);
/* The table of the log's pictures; one that cannot be read is named and left out. */
enum lk_code cli_labeller_label(struct cli_labeller *labeller, const struct lk_t2i_images *log, struct lk_text *table);
/* The table that was made last, and OUTPUT.json; LK_E_PARTIAL when pictures were left out. */
enum lk_code cli_labeller_write(struct cli_labeller *labeller, const struct lk_text *table);
void cli_labeller_close(struct cli_labeller *labeller);

enum lk_code cli_t2i_import(const struct cli_arguments *arguments);    /* a log with digests and outcomes */
enum lk_code cli_t2i_label(const struct cli_arguments *arguments);     /* labels.csv */
enum lk_code cli_t2i_confusion(const struct cli_arguments *arguments); /* of --labels with the known --ref-labels */
enum lk_code cli_t2i_export(const struct cli_arguments *arguments);    /* pictures for an audit */

/* Pictures of a log that were made here are made again, each from its own recipe, to look at what happens meanwhile. */
struct cli_replay {
    const struct cli_arguments *arguments;
    struct lk_t2i_images log;
    struct lk_pipeline *pipeline;
    struct lk_device *device;
    int32_t *chosen;         /* [n]: lines of the log, rising */
    size_t n, n_other;       /* n_other: pictures that came out with other pixels than the file has */
    struct lk_recipe recipe; /* of the picture at hand, with its job */
    struct lk_job job;
};

/* --log, --model, and of the base arm's pictures of that model a sample, --sample of them, as many of each prompt as
 * its share is. prompts (NULL: any), wanted [prompts->n] (NULL: all): which of them. LK_E_INPUT with the reason where
 * none was made here. cli_replay_close in any case. */
enum lk_code cli_replay_open(struct cli_replay *r, const struct cli_arguments *arguments,
                             const struct lk_t2i_prompts *prompts, const bool *wanted);
/* The job of picture i, in r->job until the next; LK_E_METADATA for one without a recipe. */
enum lk_code cli_replay_job(struct cli_replay *r, size_t i);
/* Whether it came out as it was; counted, and refused where the same kernels made it. */
enum lk_code cli_replay_compare(struct cli_replay *r, size_t i, const struct lk_image *image);
void cli_replay_close(struct cli_replay *r);
