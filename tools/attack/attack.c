/* Attacks every command with damaged files: each run damages one file of a command line that works, runs the command,
 * and looks at how it ended.
 *
 *     attack [--runs N] [--seed N] [--only PART OF A COMMAND] FOLDER
 *
 * FOLDER has the files of a set-up (tests/cli/test_attack.sh makes it); likeness is found by PATH. What a run must
 * keep: a documented exit code, at most 2 GB and 10 s of the processor, and an error that names the damaged file. Files
 * that got through stay in FOLDER as survivor-SEED-RUN, and the exit status is 1. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/attack/mutate.h"

#define MEMORY_MAX_KB (2L << 20)
#define SECONDS_MAX   10

/* `file` is damaged; `names` is what an error must speak of, NULL: the file's own name. */
struct target {
    const char *file;
    enum attack_form form;
    const char *command, *names;
};

static const struct target targets[] = {
    {"m/model_index.json", ATTACK_JSON, "plan -m m -W 64 -H 64 --max-sequence-length 32", "m"},
    {"m/transformer/config.json", ATTACK_JSON, "plan -m m -W 64 -H 64 --max-sequence-length 32", "m/"},
    {"m/vae/config.json", ATTACK_JSON, "plan -m m -W 64 -H 64 --max-sequence-length 32", "m/"},
    {"m/text_encoder/config.json", ATTACK_JSON, "plan -m m -W 64 -H 64 --max-sequence-length 32", "m/"},
    {"m/scheduler/scheduler_config.json", ATTACK_JSON, "plan -m m -W 64 -H 64 --max-sequence-length 32", "m/"},
    {"m/tokenizer/tokenizer.json", ATTACK_JSON, "plan -m m -W 64 -H 64 --max-sequence-length 32", "m/"},
    {"m/tokenizer/tokenizer_config.json", ATTACK_JSON, "plan -m m -W 64 -H 64 --max-sequence-length 32", "m/"},
    {"m/transformer/diffusion_pytorch_model.safetensors.index.json", ATTACK_JSON, "plan -m m -W 64 -H 64", "m/"},
    {"m/vae/diffusion_pytorch_model.safetensors", ATTACK_SAFETENSORS, "plan -m m -W 64 -H 64", "m/"},
    {"m/text_encoder/model.safetensors", ATTACK_SAFETENSORS, "plan -m m -W 64 -H 64", "m/"},
    {"SUMS", ATTACK_TABLE, "verify m --manifest SUMS", "m"},
    {"recipe.png", ATTACK_PNG, "show recipe.png", NULL},
    {"recipe.png", ATTACK_PNG, "rerun recipe.png -o again.png -m not-there", "not-there"},
    {"face.jpg", ATTACK_JPEG, "judge -r face.jpg -r small.png", NULL},
    {"small.png", ATTACK_PNG, "judge -r face.jpg -r small.png", NULL},
    {"face.jpg", ATTACK_JPEG, "edit -m not-there -r face.jpg -p x -o o.png", "not-there"},
    {"images.jsonl", ATTACK_JSON, "judge --pairs images.jsonl", NULL},
    {"images.jsonl", ATTACK_JSON, "judge prompt --pairs images.jsonl", NULL},
    {"answers.jsonl", ATTACK_JSON, "judge import answers.jsonl", NULL},
    {"answers.jsonl", ATTACK_JSON, "report --primary answers.jsonl --bootstrap 10 -o out", NULL},
    {"scores.csv", ATTACK_TABLE, "report --scores scores.csv --bootstrap 10 -o out", NULL},
    {"scores.csv", ATTACK_TABLE, "review list --scores scores.csv", NULL},
    {"review.csv", ATTACK_TABLE, "review import review.csv --review journal --by R", NULL},
    {"review.jsonl", ATTACK_JSON, "review import review.jsonl --review journal --by R", NULL},
    {"ratings.jsonl", ATTACK_JSON, "ratings evaluations --ratings ratings.jsonl", NULL},
    {"ratings.csv", ATTACK_TABLE, "ratings evaluations --ratings ratings.csv", NULL},
    {"participants.csv", ATTACK_TABLE, "ratings participants --participants participants.csv", NULL},
    {"values.csv", ATTACK_TABLE, "stats describe values.csv --value x --by g", NULL},
    {"values.csv", ATTACK_TABLE, "stats bootstrap values.csv --value x --resamples 50 --interval bca", NULL},
    {"values.csv", ATTACK_TABLE, "stats alpha values.csv --item item --rater rater --value y", NULL},
    {"values.csv", ATTACK_TABLE, "stats fleiss values.csv --item item --value y", NULL},
    {"values.csv", ATTACK_TABLE, "stats icc values.csv --item item --rater rater --value y", NULL},
    {"values.csv", ATTACK_TABLE, "stats kruskal values.csv --value x --by g", NULL},
    {"values.csv", ATTACK_TABLE, "stats adjust values.csv --value p", NULL},
    {"prompts.csv", ATTACK_TABLE, "t2i prompts --csv prompts.csv", NULL},
    {"labels.csv", ATTACK_TABLE, "t2i metrics --labels labels.csv --ref uniform --bootstrap 10 -o t2i", NULL},
    {"labels.csv", ATTACK_TABLE,
     "t2i post-filter --labels labels.csv --target uniform --attribute gender --tol 0.6 -o kept.csv", NULL},
};
enum { N_TARGETS = sizeof targets / sizeof *targets, MAX_WORDS = 24, TEXT_BYTES = 1 << 16 };

static struct attack_bytes read_file(const char *path) {
    struct attack_bytes b = {NULL, 0};
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) {
        perror(path);
        exit(2);
    }
    long n = ftell(f);
    rewind(f);
    b.data = malloc((size_t)n + 1);
    if (!b.data || fread(b.data, 1, (size_t)n, f) != (size_t)n) exit(2);
    b.n = (size_t)n;
    fclose(f);
    return b;
}

static void write_file(const char *path, const struct attack_bytes *b) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(b->data, 1, b->n, f) != b->n || fclose(f)) {
        perror(path);
        exit(2);
    }
}

/* In the child: what the command prints goes to a file, its results nowhere. */
static void start(const char *command) {
    char copy[512];
    char *words[MAX_WORDS] = {(char[]){"likeness"}};
    int n = 1;
    snprintf(copy, sizeof copy, "%s", command);
    for (char *w = strtok(copy, " "); w && n + 1 < MAX_WORDS; w = strtok(NULL, " ")) words[n++] = w;
    words[n] = NULL;
    int null = open("/dev/null", O_RDWR), errors = open("attack.stderr", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(null, 0);
    dup2(null, 1);
    dup2(errors, 2);
    setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS_MAX, SECONDS_MAX + 1});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    alarm(60); /* waits, where the processor's time stands still */
    execvp("likeness", words);
    _exit(99);
}

/* Why the run is one to look at; NULL: it kept what it must. */
static const char *judge(const struct target *t, int status, const struct rusage *usage, const char *errors) {
    const char *name = strrchr(t->file, '/');
    name = t->names ? t->names : name ? name + 1 : t->file;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGALRM ? "over 10 s" : "died of a signal";
    int code = WEXITSTATUS(status);
    if (code != 0 && code != 2 && code != 3 && code != 4 && code != 6 && code != 7) return "a code that is none";
    if (usage->ru_maxrss > MEMORY_MAX_KB) return "over 2 GB";
    const char *error = strstr(errors, "error: ");
    if (!code) return error ? "an error, and code 0" : NULL;
    if (!error) return "no error, and a code";
    return strstr(errors, name) || strstr(errors, t->file) ? NULL : "the error names no file";
}

static int run_command(const char *command, struct rusage *usage) {
    int status;
    unlink("journal");
    pid_t child = fork();
    if (!child) start(command);
    if (child < 0 || wait4(child, &status, 0, usage) != child) exit(2);
    return status;
}

/* An attack on a command that fails anyway would find nothing. */
static void check_undamaged(const struct target *t) {
    struct rusage usage;
    int status = run_command(t->command, &usage);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != (strstr(t->command, "not-there") ? 3 : 0)) {
        fprintf(stderr, "likeness %s: fails without any damage\n", t->command);
        exit(2);
    }
}

static bool attack(const struct target *t, const struct attack_bytes *seed, uint64_t run_seed, unsigned long run) {
    uint64_t state = run_seed * 1000003 + run;
    struct attack_bytes damaged = {malloc(seed->n + 1), seed->n};
    if (!damaged.data) exit(2);
    memcpy(damaged.data, seed->data, seed->n);
    attack_mutate(&damaged, t->form, &state);
    write_file(t->file, &damaged);
    struct rusage usage;
    int status = run_command(t->command, &usage);
    struct attack_bytes errors = read_file("attack.stderr");
    errors.data[errors.n] = 0;
    const char *why = judge(t, status, &usage, (const char *)errors.data);
    if (why) {
        char path[64];
        snprintf(path, sizeof path, "survivor-%llu-%lu", (unsigned long long)run_seed, run);
        write_file(path, &damaged);
        printf("%s: likeness %s: %s damaged as in %s: code %d, %ld MB\n%.400s\n", why, t->command, t->file, path,
               WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), usage.ru_maxrss >> 10,
               (const char *)errors.data);
    }
    write_file(t->file, seed);
    free(errors.data);
    free(damaged.data);
    return !why;
}

int main(int argc, char **argv) {
    unsigned long runs = 2000, seed = 1, bad = 0, done = 0;
    const char *only = "", *folder = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--runs") && i + 1 < argc)
            runs = strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            seed = strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else
            folder = argv[i];
    }
    if (!folder || chdir(folder)) {
        fprintf(stderr, "usage: attack [--runs N] [--seed N] [--only PART OF A COMMAND] FOLDER\n");
        return 2;
    }
    struct attack_bytes seeds[N_TARGETS];
    for (int t = 0; t < N_TARGETS; t++) {
        seeds[t] = read_file(targets[t].file);
        check_undamaged(&targets[t]);
    }
    for (unsigned long run = 0; run < runs; run++) {
        const struct target *t = &targets[run % N_TARGETS];
        if (!strstr(t->command, only)) continue;
        done++;
        bad += !attack(t, &seeds[run % N_TARGETS], seed, run);
    }
    for (int t = 0; t < N_TARGETS; t++) free(seeds[t].data);
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    printf("%lu runs, %lu to look at; %ld s of the processor, %ld MB at most\n", done, bad,
           (long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec), usage.ru_maxrss >> 10);
    return bad != 0;
}
