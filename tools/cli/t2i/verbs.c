/* The verbs of t2i: what each reads and says. */
#include "tools/cli/t2i/t2i.h"

#define MACHINE "device dtype threads vram host-ram follow-links"
#define LOG_TEXT                                                                                                       \
    "the generator's log: prompt_id, model_tag, seed, cfg, file_path, arm, mode; of a folder its generation_log.csv"
#define LOG                                                                                                            \
    {"log", NULL, LOG_TEXT}, { "in", "LOG.csv|DIR", "as --log" }
#define LABELS                                                                                                         \
    { "labels", NULL, LABELS_TEXT }
#define LABELS_TEXT                                                                                                    \
    "what a classifier perceives, a line a picture: file_path, prompt_id, model_tag, seed, cfg, face_found, race, "    \
    "race_conf, gender, gender_conf, age, age_conf, skin_tone, skin_value, sha256, and if there are mitigations arm"

const struct cli_verb cli_t2i_verbs[] = {
    {VERB("prompts", cli_t2i_print_prompts, "print the prompt table"),
     .options = "csv mitigations style context cue only output overwrite",
     .text = "12 roles, each neutral, male and female, in styles and scenes, with the prompts of three mitigations.",
     .examples = EXAMPLES("The prompts of the study, with what mitigations make of them",
                          "likeness t2i prompts -o negative_role_prompts_all.csv"),
     .says = SAYS(
         {"output", "FILE.csv", "the table [default: stdout]"},
         {"csv", NULL, "a prompt table of one's own [default: the study's]"},
         {"mitigations", NULL, "a companion table with prompt_id, rewrite_prompt, diversity_prompt, safety_prompt"},
         {"cue", NULL,
          "the diversity arm's words, \"varied age, gender, and ethnicity\" or \"balanced demographics, avoid "
          "stereotypes\""},
         {"style", NULL, "a style; give it again for more"},
         {"context", NULL,
          "a scene; give it again for more; fitting: three that fit every role, as a prisoner does not a shop"},
         {"only", NULL,
          "which columns: everything, the ten printed ones, or a companion table of the mitigated prompts"})},
    {VERB("reference", cli_t2i_reference, "print the distribution of equal shares"), .options = "output overwrite",
     .says = SAYS({"output", "FILE.json", "the distribution [default: stdout]"})},
    {VERB("generate", cli_t2i_generate, "make a table's pictures, with their log"),
     .options = "model! output! csv seeds cfg arm @request lora batch normalize fair fair-assign post-filter "
                "target attribute max-attempts labeler classifier faces preview preview-every overwrite " MACHINE,
     .text = "As `study run` does; DIR/generation_log.csv has a line a picture. A run that was stopped goes on with "
             "the same command.",
     .examples =
         EXAMPLES("Ten pictures of each prompt",
                  "likeness t2i generate -m black-forest-labs/FLUX.2-dev --csv negative_role_prompts_all.csv --seeds "
                  "0:9 -o out/run",
                  "Ten of each again, half of them of people who are perceived as women, with the seeds that it takes",
                  "likeness t2i generate -m black-forest-labs/FLUX.2-dev --csv negative_role_prompts_all.csv --seeds "
                  "0:9 -o out/even --post-filter online --target uniform --attribute gender --labeler fairface "
                  "--classifier fairface.safetensors --faces yunet.safetensors"),
     .says = SAYS(
         {"output", "DIR", "the folder of the pictures and their log"},
         {"csv", NULL, "a prompt table of one's own [default: the study's]"},
         {"seeds", NULL, "a picture of each seed from A to B, both included"},
         {"cfg", NULL,
          "the guidance of FLUX.2, Stable Diffusion and Stable Cascade, the true guidance scale of the others; give it "
          "again for more"},
         {"arm", NULL, "none, rewrite, diversity, safety, embed_norm or fair; give it again for more"},
         {"normalize", NULL,
          "of --arm embed_norm: subtract the mean of all prompts' tokens, or divide by their deviation too; each "
          "token's norm stays as it was"},
         {"fair", NULL,
          "the arm fair (that alone without --arm), of Stable Diffusion: an instruction that says which concepts a "
          "prompt is pushed towards and how often each; gender: half and half, but for prompts that name one"},
         {"fair-assign", NULL, "of the arm fair: quota (exact shares over a prompt's seeds), draw, or a level for all"},
         {"post-filter", NULL,
          "online: of each prompt as many pictures as --seeds says, and of each group of --target its share of them: "
          "seeds go on upward, --labeler says who is perceived, and a picture whose group is full is rejected; "
          "DIR/post_filter.csv has the labels of those that are kept, DIR/post_filter_quotas.csv how many were tried"},
         {"target", NULL, "of --post-filter: the shares that ought to be"},
         {"attribute", NULL, "of --post-filter: whose shares are to fit the target"},
         {"labeler", NULL, "of --post-filter: who perceives: a model that sees, or FairFace's classifier"},
         {"classifier", NULL,
          "FairFace's ResNet-34 of 7 races, its state under torchvision's names in f32: a file of your own; with "
          "--labeler vlm the model that sees, as --model is named"},
         {"faces", NULL, "weights of the face detector YuNet, for --labeler"},
         {"batch", NULL, "answers of --labeler vlm at a time; none depends on it"})},
    {VERB("ask", cli_t2i_ask, "make a table's pictures by a model behind the OpenAI images API"),
     .options = "images-url! model! output! csv seeds arm set repeat-refused seed-field fetch-urls requests-per-minute "
                "overwrite",
     .text = "As generate does by a model that runs here. A refusal is an outcome, is asked once and stands in the "
             "log; the key is taken from OPENAI_API_KEY. A run that was stopped goes on with the same command.",
     .examples = EXAMPLES("The study's prompts asked of a service, and what it refuses",
                          "likeness t2i ask --images-url https://api.openai.com/v1 -m gpt-image-1 --set quality=low "
                          "--seeds 0:9 -o out/asked"),
     .says = SAYS(
         {"model", "NAME", "the model, as the service names it"},
         {"output", "DIR", "the folder of the pictures and their log"},
         {"csv", NULL, "a prompt table of one's own [default: the study's]"},
         {"seeds", NULL, "a picture of each seed from A to B, both included"},
         {"arm", NULL, "none, rewrite, diversity or safety; give it again for more"},
         {"images-url", NULL, "what /images/generations stands behind, as https://api.openai.com/v1"},
         {"set", NULL, "what else each request says, as quality=high; give it again for more"},
         {"repeat-refused", NULL,
          "how often a refusal is asked about again; every answer is kept, the first one is the outcome"},
         {"seed-field", NULL, "send the seed, to an open server; OpenAI's API has none, and seeds number the repeats"},
         {"fetch-urls", NULL, "fetch pictures at addresses of other hosts, without the key"},
         {"requests-per-minute", NULL, "how many requests may begin"})},
    {VERB("import", cli_t2i_import, "read the log of a model that is not run here"),
     .options = "log in output overwrite",
     .text = "Writes the log of those of its pictures that are there, with sizes and digests, and of what was refused.",
     .says = SAYS({"output", "FILE.csv", "the log [default: stdout]"}, LOG)},
    {VERB("label", cli_t2i_label, "write what is perceived in a log's pictures"),
     .options = "output! log in labeler model classifier faces batch overwrite devices " MACHINE,
     .text = "Beside the table FILE.json says who perceived it. A run that was stopped goes on with the same command.",
     .examples = EXAMPLES("Who is perceived in a generator's pictures",
                          "likeness t2i label --log log.csv --labeler vlm -m Qwen/Qwen2.5-VL-7B-Instruct --faces "
                          "yunet.safetensors -o labels.csv"),
     .says = SAYS({"output", "LABELS.csv", "the table"}, LOG,
                  {"labeler", NULL,
                   "who perceives: a model that sees, given with --model, whose thoughts of a closed set are read; or "
                   "FairFace's classifier, given with --classifier"},
                  {"classifier", NULL,
                   "FairFace's ResNet-34 of 7 races, its state under torchvision's names in f32: a file of your own"},
                  {"faces", NULL, "weights of the face detector YuNet"},
                  {"batch", NULL, "answers at a time; none depends on it"},
                  {"devices", NULL,
                   "with --labeler vlm a worker for each, with commas between: all cpu, or cuda:1, or 1 for cuda:1 "
                   "[default: --device]"})},
    {VERB("confusion", cli_t2i_confusion, "count how people of whom it is known, as the 84 sources, are perceived"),
     .options = "labels! ref-labels! output overwrite",
     .examples = EXAMPLES("How a labeller perceives portraits of known people",
                          "likeness t2i confusion --labels l.csv --ref-labels known.csv -o confusion.csv"),
     .says = SAYS({"output", "FILE.csv", "the counts [default: stdout]"}, LABELS,
                  {"ref-labels", NULL, "what is known of the pictures"})},
    {VERB("export", cli_t2i_export, "write a log's pictures small, with faces covered, for auditors"),
     .options = "output! log in faces overwrite",
     .says = SAYS({"output", "DIR", "the folder of the pictures"}, LOG,
                  {"faces", NULL, "weights of the face detector YuNet, which finds what is covered"})},
    {VERB("metrics", cli_t2i_metrics, "compare who is depicted with a target, and what mitigations change"),
     .options = "labels! ref! output! log in csv target ref-labels bootstrap study-seed alpha threads title run date "
                "label png overwrite",
     .text = "Writes DIR/report.html and every table in DIR/tables: shares of perceived groups, their distance from a "
             "target (SPD), what mitigations change, how far that depends on the labels' confidence and on CFG; as "
             "FILE.csv the distances alone.",
     .examples = EXAMPLES(
         "Who is depicted, against equal shares",
         "likeness t2i metrics --labels labels.csv --ref uniform --csv negative_role_prompts_all.csv -o results",
         "Mitigated arms from the generator's log",
         "likeness t2i metrics --labels labels.csv --log log.csv --ref uniform -o results"),
     .says = SAYS(
         {"output", "DIR|FILE.csv", "the folder, or the file of the distances alone"},
         {"labels", NULL, LABELS_TEXT "; give it again for more"},
         {"log", NULL, LOG_TEXT "; it says what labels do not"}, {"in", "LOG.csv|DIR", "as --log"},
         {"ref", NULL, "the reference distribution, as {\"gender\": {\"Male\": 0.5, \"Female\": 0.5}}"},
         {"csv", NULL, "a prompt table, which names prompts; a prompt_id that it lacks is rejected [default: none]"},
         {"ref-labels", NULL,
          "labels of pictures whose distance from the target is BiasAmp's reference, in place of --ref's"},
         {"bootstrap", NULL, "resamples of pictures or seeds, and as many permutations"},
         {"study-seed", NULL, "seed of the resamples"})},
    {VERB("post-filter", cli_t2i_post_filter, "keep the largest set of pictures that has the target's shares"),
     .options = "labels! target! output! log in attribute tol study-seed overwrite",
     .text = "Of base pictures, for each model and prompt; a set that has none is named.",
     .examples =
         EXAMPLES("As many of the pictures as have equal shares of men and women, as an arm of their own",
                  "likeness t2i post-filter --labels labels.csv --target uniform --attribute gender -o filtered.csv && "
                  "likeness t2i metrics --labels labels.csv --labels filtered.csv --ref uniform -o results"),
     .says = SAYS(
         {"output", "DIR|FILE.csv",
          "a folder of the kept pictures with labels.csv and generation_log.csv, or the lines of their labels alone"},
         LABELS, LOG, {"target", NULL, "the shares that ought to be"},
         {"attribute", NULL, "whose shares are to fit the target"},
         {"tol", NULL, "how far a share may be from the target"},
         {"study-seed", NULL, "seed of the choice among equally large sets"})},
    {VERB("embed-norm", cli_t2i_embed_norm,
          "make of a model's embeddings of all base prompts those of the arm embed_norm"),
     .options = "embeds! output! normalize overwrite", .text = "For edit --prompt-embeds.",
     .says = SAYS({"output", "FILE.safetensors", "the normalised embeddings"},
                  {"embeds", NULL, "what `embed --jobs` wrote of all base prompts of a model"},
                  {"normalize", NULL,
                   "subtract the mean of all prompts' tokens, or divide by their deviation too; each token's norm "
                   "stays as it was"})},
    {VERB("tokens", cli_t2i_tokens, "count how often words of roles and of demographic groups meet in prompts"),
     .options = "csv model lora token metrics output overwrite " MACHINE,
     .text = "With a model also how alike its text encoder finds them, and with results of metrics whether that goes "
             "with who is depicted: it is correlational and says nothing about causes.",
     .examples = EXAMPLES("Which roles meet which groups in the prompts, and in a text encoder",
                          "likeness t2i tokens --csv negative_role_prompts_all.csv -m black-forest-labs/FLUX.2-dev "
                          "--metrics results -o token_corr.csv"),
     .says = SAYS({"output", "FILE.csv", "the table [default: stdout]"},
                  {"csv", NULL, "a prompt table of one's own [default: the study's]"},
                  {"token", NULL, "words of a demographic group; give it again for more"},
                  {"metrics", NULL,
                   "results of t2i metrics, whose tables by prompt are read: Spearman over the roles with each group's "
                   "share and with SPD"})},
    {VERB("clip", cli_t2i_clip, "write how alike CLIP finds pictures and their prompts"),
     .options = "model! log in csv token output overwrite threads",
     .text = "The cosine of each picture and the prompt that the table has for it, the same one for every arm, and of "
             "each picture and each --token. CLIP has biases of its own: a lower cosine of one group's pictures may be "
             "CLIP's.",
     .examples = EXAMPLES("Whether a mitigation costs pictures that fit their prompts",
                          "likeness t2i clip --in out/run -m openai/clip-vit-large-patch14 -o clip.csv && likeness "
                          "stats kruskal clip.csv --value cosine --by arm"),
     .says = SAYS({"model", "DIR|NAME", "CLIP with both towers, as the hub has it"},
                  {"output", "FILE.csv", "the table [default: stdout]"}, LOG,
                  {"csv", NULL, "a prompt table of one's own [default: the study's]"},
                  {"token", NULL, "words that each picture is compared with too; give it again for more"})},
    {VERB("attention", cli_t2i_attention,
          "write how much attention goes to words of demographic groups while a model paints"),
     .options = "model lora log in csv token sample metrics maps study-seed output overwrite " MACHINE,
     .text = "Makes a sample of a log's pictures again, from their own recipes, and writes how much of the attention "
             "of the picture's rows goes to words of demographic groups, by layer and head, with the same "
             "correlations over the prompts as tokens.",
     .examples = EXAMPLES("In a hundred of its pictures",
                          "likeness t2i attention --in out/run -m black-forest-labs/FLUX.2-dev --csv "
                          "negative_role_prompts_all.csv --sample 100 --metrics results -o attn_corr.csv"),
     .says =
         SAYS({"output", "FILE.csv", "the table [default: stdout]"}, LOG,
              {"csv", NULL, "a prompt table of one's own [default: the study's]"},
              {"token", NULL, "words of a demographic group; give it again for more"},
              {"sample", NULL, "how many pictures, of each prompt its share, the same ones each time [default: 100]"},
              {"maps", NULL,
               "of Stable Diffusion: a folder for a heat map of each word over each picture (DAAM), NAME_WORD.png, "
               "with all maps of a picture as they are in NAME.safetensors, and words.csv with the weight of each word "
               "in each layer's head"},
              {"metrics", NULL,
               "results of t2i metrics, whose tables by prompt are read: Spearman over the prompts with each group's "
               "share and with SPD"},
              {"study-seed", NULL, "seed of the sample"})},
    {VERB("latents", cli_t2i_latents, "project features of pictures, or their final latents, to a plane"),
     .options = "in model lora by labels columns sample neighbors study-seed output overwrite " MACHINE,
     .text = "By UMAP: of the features in a CSV, or with a model of the final latents of a log's pictures, which it "
             "makes again. Writes DIR/latent_umap.png, latent_umap.svg and latent_umap.csv, and in "
             "latent_silhouette.csv how well groups separate in the features and in the projection: it is "
             "correlational.",
     .examples =
         EXAMPLES("Whether groups lie apart in a model's latents, or in a classifier's features",
                  "likeness t2i latents --in out/run -m black-forest-labs/FLUX.2-dev --labels labels.csv --by gender "
                  "-o probes && likeness t2i latents --in features.csv --by gender -o probes_of_features"),
     .says = SAYS(
         {"output", "DIR|PICTURE.png", "the folder, or the picture with the other files beside it, named after it"},
         {"in", NULL,
          "a picture a line: its group (--by), and its features in columns of numbers; with --model the generator's "
          "log or its folder: DIR/latents.csv then has each channel's mean over each quarter of the picture"},
         {"labels", NULL, "has the column --by, otherwise the log has it"}, {"by", "COLUMN", "the groups"},
         {"columns", NULL, "the features' columns [default: all whose first cell is a number]"},
         {"neighbors", NULL, "how many pictures near each make up its surroundings, itself counted"},
         {"sample", NULL, "how many pictures, of each prompt its share, the same ones each time [default: 100]"},
         {"study-seed", NULL, "seed of sample and projection"})},
    {0}};
