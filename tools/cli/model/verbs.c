/* The verbs of bench and lora: what each reads and says. */
#include "tools/cli/cli.h"
#include "tools/cli/study/runner.h"

const struct cli_verb cli_bench_verbs[] = {
    {VERB("", cli_bench, "time a model on this machine, stage by stage"),
     .options = "model! @request size references repetitions output-format follow-links transformer lora variant "
                "quantize device gemm conv threads vram host-ram dtype rng exif-transpose",
     .text = "Makes the same image several times and prints, of each stage, seconds, TFLOP/s, the share of what a "
             "product of matrices reaches on the device at that moment, and memory beside what plan says. The first "
             "image, for which weights are read, is told apart.",
     .examples =
         EXAMPLES("How fast is this machine?", "likeness bench -m ./FLUX.2-dev --device cuda --size 1024x1024")},
    {VERB("compare", cli_bench_compare, "print the ratio of two results, with an interval"),
     .operands = "OLD.json NEW.json", .options = "",
     .examples = EXAMPLES(
         "Is it faster now?",
         "likeness bench -m ./FLUX.2-dev --output-format json > new.json && likeness bench compare old.json new.json")},
    {VERB("study", study_bench, "say what a whole study takes and costs, by a result of each of its models"),
     .operands = "STUDY.json RESULT.json...", .options = "gpus price device vram host-ram follow-links",
     .text = "Pictures of another size or with other steps than those measured count in the ratio of each stage's "
             "FLOPs.",
     .examples = EXAMPLES("On eight of these",
                          "likeness bench study study.json flux.json step1x.json qwen.json --gpus 8 --price 1.8"),
     .says = SAYS({"gpus", NULL, "GPUs as the one measured"},
                  {"price", NULL, "what an hour of one GPU costs, in any currency"})},
    {0}};

const struct cli_verb cli_lora_verbs[] = {
    {VERB("", cli_lora, "say what a LoRA holds: layout, ranks and scales"), .operands = "FILE",
     .options = "model follow-links", .text = "With a model also the share of each layer that the LoRA is.",
     .examples = EXAMPLES("Does it fit the model?", "likeness lora style.safetensors -m ./Qwen-Image-Edit-2511")},
    {VERB("merge", cli_lora_merge, "write a model with LoRAs added to its weights"), .operands = "MODEL",
     .options = "lora! output! follow-links",
     .examples = EXAMPLES("For programs that take no LoRA",
                          "likeness lora merge ./FLUX.2-dev --lora style.safetensors=0.8 -o merged"),
     .says = SAYS({"output", "DIR", "a folder that is not there yet"})},
    {0}};
