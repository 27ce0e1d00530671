/* The verbs of `study`: what each reads and says. */
#include "tools/cli/study/runner.h"

#define RUN_FOLDER                                                                                                     \
    { "output", "DIR", "the run's folder" }
#define MACHINE "device devices threads vram host-ram weights"

const struct cli_verb cli_study_verbs[] = {
    {VERB("new", study_new, "write a study file to begin with"), .options = "template output overwrite",
     .text = "A study file names sources, prompts, models with their parameters, and experiments. 'likeness help "
             "study-file' explains its keys. The columns that its tables of sources and prompts need are told.",
     .examples = EXAMPLES("A study of one's own", "likeness study new --template own -o study.json",
                          "The portrait study's experiment 1", "likeness study new --template exp1 -o study.json"),
     .says = SAYS({"output", "STUDY.json", "the file to write [default: stdout]"},
                  {"template", NULL,
                   "what the file begins with: own, a study of your own; the others the experiments of the portrait "
                   "study and of the text-to-image study in their documents' numbers; full has exp1, exp2 and exp3"})},
    {VERB("check", study_check, "name everything in a study file that would stop a run"), .operands = "STUDY.json",
     .options = "follow-links device vram host-ram weights",
     .text = "Names every cell without a source or with two, every picture that cannot be read, every model that is "
             "not there or cannot run as the file asks. Exit code 3 if there is any."},
    {STUDY_VERB("plan", study_plan, "count a study's outputs and say what they take"), .operands = "STUDY.json",
     .options = "json follow-links " MACHINE,
     .text = "Counts the outputs by experiment and model, with memory and FLOPs of each; with --device sm_80 also how "
             "long they take on such a GPU.",
     .says = SAYS({"devices", NULL, "how many devices work at once, named as for `study run` [default: one]"})},
    {STUDY_VERB("jobs", study_jobs, "list every output that will be made, in the order in which it is made"),
     .operands = "STUDY.json", .options = "json shard",
     .examples = EXAMPLES("For a script", "likeness study jobs study.json --json > jobs.jsonl"),
     .says = SAYS({"shard", NULL, "only the I-th of N parts of the jobs"})},
    {STUDY_VERB("compare", study_compare, "name the settings in which two studies differ"),
     .operands = "STUDY.json STUDY.json", .options = "allow",
     .says = SAYS(
         {"allow", NULL, "settings that may differ, as rounding, models.qwen.seed or steps, with commas between"})},
    {VERB("prompts", study_prompts_of, "print the edit prompts, the 50 sentences of experiment 3 and a study's own"),
     .operands = "[STUDY.json]", .options = "ids show",
     .says = SAYS({"ids", NULL, "which prompts, as O-01, catB_001 or W-01, or categories as O,V, with commas between"},
                  {"show", NULL,
                   "a table (CSV), the texts alone, the subcategories by the printed id ranges or by content, or what "
                   "there is to know of the 50 sentences"})},
    {VERB("pools", study_pools, "draw seven candidates for each source from a table of labelled portraits"),
     .operands = "LABELS.csv", .options = "output overwrite study-seed",
     .text = "The table has the columns file, age, gender and race. 'likeness serve selection' lets people choose, "
             "'study finalize' copies the chosen portraits.",
     .says = SAYS({"output", "POOLS.jsonl", "the candidates, a line a source [default: stdout]"},
                  {"study-seed", NULL, "seed of the draw"})},
    {VERB("finalize", study_finalize, "copy the chosen portraits and write their manifest"), .operands = "POOLS.jsonl",
     .options = "output! overwrite",
     .says = SAYS({"output", "DIR", "the folder of the portraits and of source_manifest.json"})},
    {VERB("validate", study_validate, "check a set of portraits against its manifest"), .operands = "MANIFEST.json",
     .options = ""},
    {STUDY_VERB("rewrite", study_rewrite,
                "rewrite the prompts of the models that have a \"rewrite\", before any picture"),
     .operands = "STUDY.json", .options = "output overwrite follow-links device threads vram host-ram quiet",
     .text =
         "Each text is added to the file that the model's \"rewrite\" names, with how it was made; the same command "
         "goes on after a kill. A prompt without a usable text is kept as failed, with the replies. The report "
         "counts the words that name a group, by the sources' groups.",
     .says =
         SAYS({"output", "DIR",
               "a folder for a report of what the rewriter made of the prompts; created if needed [default: none]"})},
    {STUDY_VERB("run", study_run_all, "make a study's outputs, or go on where the last run stopped"),
     .operands = "STUDY.json",
     .options = "output! all shard queue retry-failed send-pictures jobs-per-visit preview preview-every json "
                "follow-links " MACHINE,
     .text = "Pictures go to DIR/results, a line each to DIR/manifest.jsonl; DIR/journal.sqlite holds the state, from "
             "which the same command goes on after a kill, and after a change of the study: what is still asked for "
             "stays, the rest is kept until prune deletes it. A job that fails is tried three times, once if it would "
             "fail again (a picture that is none, NaN), and kept as failed; exit code 6 if there are any. A model "
             "that is not the one that made the first pictures is refused.",
     .examples = EXAMPLES("On four GPUs; the same command goes on after a kill",
                          "likeness study run study.json -o out --devices 0,1,2,3", "One task of a job array",
                          "likeness study run study.json -o out --shard 3/8"),
     .says =
         SAYS(RUN_FOLDER,
              {"shard", NULL,
               "the I-th of N parts of the jobs; each part has a journal of its own, `study merge` puts them together"},
              {"devices", NULL,
               "a worker for each, with commas between: cpu, cuda, cuda:1, or 1 for cuda:1; with --weights sharded one "
               "for all [default: --device]"},
              {"retry-failed", NULL, "try again what failed three times"},
              {"send-pictures", NULL,
               "sources may be sent to the services of hosted models: their licence and those whom they show allow it"},
              {"queue", NULL,
               "jobs that pass through the stages together: all are encoded, then made, then decoded, so that weights "
               "come once for N jobs; a kill loses what they have done so far"},
              {"json", NULL, "print what was made as JSON"})},
    {VERB("status", study_status, "say how far a run is"), .operands = "DIR", .options = "json",
     .text =
         "DIR is the run's folder. Says of each model how many outputs are made, failed and open, and of workers that "
         "are gone what they left."},
    {VERB("prune", study_prune, "delete what a changed study no longer asks for"), .operands = "DIR", .options = ""},
    {VERB("verify", study_verify, "compare every picture of a run with its recorded digest"), .operands = "DIR",
     .options = "requeue follow-links",
     .text = "Compares also the models that are here with those that made the pictures.",
     .says = SAYS({"requeue", NULL, "have the next run make again what is gone or changed"})},
    {STUDY_VERB("rerun", study_rerun, "make a sample of a run again and compare the bits"), .operands = "STUDY.json",
     .options = "output! sample queue jobs-per-visit follow-links " MACHINE,
     .says = SAYS(RUN_FOLDER, {"sample", NULL, "how many of the pictures, the same ones each time [default: 1%]"},
                  {"devices", NULL,
                   "a worker for each, with commas between: cpu, cuda, cuda:1, or 1 for cuda:1 [default: the study's]"},
                  {"queue", NULL, "jobs that pass through the stages together"})},
    {STUDY_VERB("merge", study_merge, "put the journals of shards together, and runs of other folders with them"),
     .operands = "STUDY.json [DIR]...", .options = "output! prefer json",
     .text = "Pictures of the runs in other folders are copied.",
     .says = SAYS(RUN_FOLDER, {"prefer", NULL,
                               "where two runs have different pictures of a job, those of this run count; without it "
                               "nothing is merged then"})},
    {STUDY_VERB("slurm", study_slurm, "print the batch script of a job array that runs a study"),
     .operands = "STUDY.json", .options = "output! tasks devices",
     .text =
         "Each task makes a part of the outputs; 'study merge' then puts the parts together, and 'judge run' asks the "
         "judges, which the script does not. Partition, account and time are yours to add (sbatch --time=...).",
     .says = SAYS(RUN_FOLDER, {"devices", NULL, "the devices of each task [default: cuda, one GPU]"},
                  {"tasks", NULL, "tasks of the job array"})},
    {STUDY_VERB("k8s", study_k8s, "print the manifest of a Kubernetes Job that runs a study"), .operands = "STUDY.json",
     .options = "output! container! claim tasks devices",
     .text =
         "An indexed Job (Kubernetes 1.29 or later). The claim is mounted at /work, where each task starts: STUDY.json "
         "and DIR are paths there.",
     .examples = EXAMPLES(
         "Eight tasks, a GPU each",
         "likeness study k8s study.json -o run --tasks 8 --container registry/likeness:1 | kubectl apply -f -"),
     .says = SAYS(RUN_FOLDER, {"devices", NULL, "the devices of each task [default: cuda]"},
                  {"tasks", NULL, "tasks of the Job"})},
    {0}};
