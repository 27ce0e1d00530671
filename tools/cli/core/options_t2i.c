/* What t2i is told alone, and its help. */
#include "tools/cli/core/options_table.h"

#define T2I(kind_, group_, name_, value_, field, help_)                                                                \
    OPTION(kind_, group_, name_, value_, ON(CLI_T2I), t2i.field, help_)

static const struct cli_option options[] = {
    {T2I(CLI_LIST, "Input", "labels", "LABELS.csv", labels,
         "what a classifier perceives, a line a picture: file_path, prompt_id, model_tag, seed, cfg, face_found, race, "
         "race_conf, gender, gender_conf, age, age_conf, skin_tone, skin_value, and if there are mitigations arm; "
         "metrics: give it again for more; latents: has the column --by, else the log")},
    {T2I(CLI_FILE, "Input", "log", "LOG.csv|DIR", log,
         "the generator's log: prompt_id, model_tag, seed, cfg, file_path, arm, mode; it says what labels do not; of a "
         "folder its generation_log.csv")},
    {T2I(CLI_FILE, "Input", "ref", "FILE.json|uniform", ref,
         "metrics: the reference distribution, as {\"gender\": {\"Male\": 0.5, \"Female\": 0.5}}")},
    {T2I(CLI_FILE, "Input", "target", "FILE.json|uniform", target,
         "the shares that ought to be; BiasAmp is the distance from them less the reference's"),
     .otherwise = "metrics: the reference"},
    {T2I(CLI_FILE, "Input", "ref-labels", "LABELS.csv", ref_labels,
         "metrics: labels of pictures whose distance from the target is BiasAmp's reference, in place of --ref's; "
         "confusion: what is known of the pictures")},
    {T2I(CLI_FILE, "Input", "csv", "PROMPTS.csv", csv,
         "a prompt table of one's own; metrics: names prompts, and a prompt_id that it lacks is rejected"),
     .otherwise = "prompts, generate, ask, tokens, clip, attention: the study's own"},
    {T2I(CLI_FILE, "Input", "mitigations", "FILE.csv", mitigations,
         "prompts: a companion table with prompt_id, rewrite_prompt, diversity_prompt, safety_prompt")},
    {T2I(CLI_LIST, "Input", "style", "TEXT", styles, "prompts: a style; give it again for more"),
     .otherwise = "photojournalistic photograph, courtroom sketch, store interior photo"},
    {T2I(CLI_LIST, "Input", "context", "TEXT", contexts,
         "prompts: a scene; give it again for more; fitting: three that fit every role"),
     .otherwise = "a retail store aisle (staff-eye view)"},
    {T2I(CLI_CHOICE, "Model", "labeler", "NAME", labeler,
         "label: who perceives: a model that sees, given with --model, whose thoughts of a closed set are read; or "
         "FairFace's classifier, given with --classifier"),
     .choices = "vlm|fairface"},
    {T2I(CLI_FILE, "Model", "classifier", "FILE|DIR", classifier,
         "label: FairFace's ResNet-34 of 7 races, its state under torchvision's names in f32: a file of your own; "
         "generate: with --labeler vlm the model that sees, as --model is named")},
    {T2I(CLI_FILE, "Input", "embeds", "FILE.safetensors", embeds,
         "embed-norm: what `embed` wrote of all base prompts of a model (`embed --jobs`)")},
    {T2I(CLI_FOLDER, "Input", "metrics", "DIR", metrics,
         "tokens, attention: results of t2i metrics, whose tables by prompt are read: Spearman over the roles or the "
         "prompts with each group's share and with SPD")},
    {T2I(CLI_FILE, "Input", "in", "FEATURES.csv|LOG.csv|DIR", in,
         "latents: a picture a line: its group (--by), and its features in columns of numbers; with --model and "
         "elsewhere "
         "as --log; DIR/latents.csv then has each channel's mean over each quarter of the picture")},
    {T2I(CLI_LIST, "Input", "token", "TEXT", tokens,
         "tokens, clip, attention: words of a demographic group; give it again for more"),
     .otherwise = "tokens, attention: male, female, man, woman, young, old and the perceived races"},
    {T2I(CLI_CHOICE, "Analysis", "normalize", "NAME", normalize,
         "embed-norm, generate --arm embed_norm: subtract the mean of all prompts' tokens, or divide by their "
         "deviation too; each token's norm "
         "stays as it was"),
     .otherwise = "center", .choices = "none|center|zscore"},
    {T2I(CLI_FILE, "Sampling", "fair", "FILE.json|gender", fair,
         "generate, the arm fair of Stable Diffusion: an instruction that says which concepts a prompt is pushed "
         "towards and how often each; gender: half and half, but for prompts that name one"),
     .otherwise = "gender"},
    {T2I(CLI_TEXT, "Sampling", "fair-assign", "NAME", fair_assign,
         "generate, the arm fair: quota (exact shares over a prompt's seeds), draw, or a level for all"),
     .otherwise = "quota"},
    {T2I(CLI_TEXT, "Sampling", "seeds", "A:B", seeds,
         "generate, ask: a picture of each seed from A to B, both included"),
     .otherwise = "0:9"},
    {T2I(CLI_LIST, "Sampling", "cfg", "X", cfg,
         "generate: the guidance of FLUX.2, Stable Diffusion and Stable Cascade, the true guidance scale of the "
         "others; give it again for more"),
     .otherwise = "the model's"},
    {T2I(CLI_LIST, "Sampling", "arm", "NAME", arms,
         "generate, ask: none, rewrite, diversity, safety, embed_norm or fair; give it again for more"),
     .otherwise = "none"},
    {T2I(CLI_TEXT, "Model", "images-url", "URL", images_url,
         "ask: what /images/generations stands behind, as https://api.openai.com/v1; --model is the model there")},
    {T2I(CLI_LIST, "Model", "set", "KEY=VALUE", set,
         "ask: what else each request says, as quality=high; give it again for more")},
    {T2I(CLI_INT, "Model", "repeat-refused", "N", repeat_refused,
         "ask: how often a refusal is asked about again; every answer is kept, the first one is the outcome"),
     .otherwise = "0", .max = 100},
    {T2I(CLI_FLAG, "Model", "seed-field", NULL, seed_field,
         "ask: send the seed, to an open server; OpenAI's API has none, and seeds number the repeats")},
    {T2I(CLI_FLAG, "Model", "fetch-urls", NULL, fetch_urls,
         "ask: fetch pictures at addresses of other hosts, without the key")},
    {T2I(CLI_CHOICE, "Analysis", "post-filter", "NAME", post_filter,
         "generate, online: of each prompt as many pictures as --seeds says, and of each group of --target its share "
         "of "
         "them: seeds go on upward, --labeler says who is perceived, and a picture whose group is full is rejected; "
         "DIR/post_filter.csv has the labels of those that are kept, DIR/post_filter_quotas.csv how many were tried"),
     .choices = "online"},
    {T2I(CLI_INT, "Analysis", "max-attempts", "N", max_attempts, "online: seeds of a prompt at most"),
     .otherwise = "ten times the pictures that are wanted", .min = 1, .max = 100000},
    {T2I(CLI_INT, "Analysis", "cue", "1|2", cue,
         "prompts: the diversity arm's words, \"varied age, gender, and ethnicity\" or \"balanced demographics, avoid "
         "stereotypes\""),
     .otherwise = "1", .min = 1, .max = 2},
    {T2I(CLI_INT, "Analysis", "neighbors", "N", neighbours,
         "latents: how many pictures near each make up its surroundings, itself counted"),
     .otherwise = "15", .min = 2, .max = 200},
    {T2I(CLI_CHOICE, "Analysis", "attribute", "NAME", attribute,
         "post-filter, generate: whose shares are to fit the target"),
     .otherwise = "the target's only one", .choices = "gender|age|race|skin_tone"},
    {T2I(CLI_NUMBER, "Analysis", "tol", "SHARE", tolerance, "post-filter: how far a share may be from the target"),
     .otherwise = "0.05", .max = 1},
    {T2I(CLI_FOLDER, "Output", "maps", "DIR", maps,
         "attention, of Stable Diffusion: a heat map of each word over each picture (DAAM), the maps as they are, and "
         "words.csv with the weight of each word in each layer's head")},
    {T2I(CLI_CHOICE, "Output", "only", "NAME", columns,
         "prompts: which columns: everything, the ten printed ones, or a companion table of the mitigated prompts"),
     .otherwise = "all", .choices = "all|printed|companion"},
};
const struct cli_option_part cli_options_of_t2i = {options, sizeof options / sizeof *options};
