/* Attacks every command with damaged files: each run damages one file of a command line that works
 * (tools/attack/targets.c), runs the command, and looks at how it ended.
 *
 *     attack [--runs N] [--seed N] [--only PART OF A COMMAND] [--corpus DIR] FOLDER
 *
 * FOLDER has the files of a set-up (tests/cli/test_attack.sh makes it). The program itself is in this one: a run is a
 * fork, since under sanitizers a start takes several times what a command does. What a run must keep: a documented exit
 * code, at most 2 GB and 10 s of the processor, and an error that names the damaged file and the field in it
 * (tools/attack/field.c). Files that did not keep it stay in FOLDER as survivor-SEED-RUN, and the exit status is 1. A
 * damaged file that makes a command end as none before did is damaged further in later runs; with --corpus such files
 * are kept from one campaign to the next. At the end every command must work on the undamaged files as at the
 * beginning. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/attack/field.h"

#define main likeness
#include "tools/cli/main.c"
#undef main

#define MEMORY_MAX_KB (2L << 20)
#define SECONDS_MAX   10

enum { MAX_WORDS = 32, TEXT_BYTES = 1 << 12, MAX_KEPT = 48, MAX_ENDINGS = 512 };

/* What is known of a target: its files as they were and as they were damaged, first the undamaged one. */
struct known {
    struct attack_bytes files[MAX_KEPT + 1];
    int n_files, n_endings;
    uint64_t endings[MAX_ENDINGS];
};

static char taken[8]; /* the port on which this program listens */
static volatile sig_atomic_t stopped;

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

/* The words of a command line, or of a file with a word in each line. */
static int split(const char *command, char text[TEXT_BYTES], char *words[MAX_WORDS]) {
    int n = 1;
    words[0] = "likeness";
    if (*command == '@') {
        struct attack_bytes b = read_file(command + 1);
        size_t length = b.n < TEXT_BYTES - 1 ? b.n : TEXT_BYTES - 1;
        memcpy(text, b.data, length);
        text[length] = 0;
        free(b.data);
    } else {
        snprintf(text, TEXT_BYTES, "%s", command);
    }
    const char *between = *command == '@' ? "\n" : " ";
    for (char *w = strtok(text, between); w && n + 1 < MAX_WORDS; w = strtok(NULL, between))
        words[n++] = strcmp(w, "TAKEN") ? w : taken;
    words[n] = NULL;
    return n;
}

/* In the child: what the command prints goes to a file, its results nowhere. */
static void start(const char *command) {
    char text[TEXT_BYTES], *words[MAX_WORDS];
    int n = split(command, text, words);
    int null = open("/dev/null", O_RDWR), errors = open("attack.stderr", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(null, 0);
    dup2(null, 1);
    dup2(errors, 2);
    setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS_MAX, SECONDS_MAX + 1});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(SIGTERM, SIG_DFL);
    alarm(120); /* waits, where the processor's time stands still */
    exit(likeness(n, words));
}

/* Whether the message begins with the name of a file that is there: one that the damaged file leads to. */
static bool names_other(const char *message) {
    char name[PATH_MAX];
    size_t n = strcspn(message, ":\n");
    if (message[n] != ':' || n >= sizeof name) return false;
    memcpy(name, message, n);
    name[n] = 0;
    return !access(name, F_OK);
}

/* Why the run is one to look at; NULL: it kept what it must. */
static const char *judge(const struct attack_target *t, int status, const struct rusage *usage, const char *errors,
                         const struct attack_bytes *undamaged, const struct attack_bytes *damaged) {
    const char *name = strrchr(t->file, '/');
    name = t->names ? t->names : name ? name + 1 : t->file;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGALRM ? "over 10 s" : "died of a signal";
    int code = WEXITSTATUS(status);
    if (code != 0 && code != 2 && code != 3 && code != 4 && code != 6 && code != 7) return "a code that is none";
    if (usage->ru_maxrss > MEMORY_MAX_KB) return "over 2 GB";
    if (strstr(errors, "runtime error: ") || strstr(errors, "Sanitizer")) return "the sanitizer has something to say";
    const char *error = strstr(errors, "error: ");
    if (!code) return error ? "an error, and code 0" : NULL;
    if (!error) return "no error, and a code";
    if (code == t->code) return NULL;
    if (!strstr(errors, name) && !strstr(errors, t->file) && !names_other(error + strlen("error: ")))
        return "the error names no file";
    return attack_names_field(errors, t, undamaged, damaged) ? NULL : "the error names no field";
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

static int run_command(const char *command, struct rusage *usage) {
    int status;
    nftw("result", remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mkdir("result", 0700);
    fflush(NULL);
    pid_t child = fork();
    if (!child) start(command);
    pid_t ended = child;
    while (child > 0 && (ended = wait4(child, &status, 0, usage)) < 0 && errno == EINTR) {
    }
    if (child < 0 || ended != child) exit(2);
    return status;
}

/* An attack on a command that fails anyway would find nothing. */
static bool works_undamaged(const struct attack_target *t) {
    struct rusage usage;
    int status = run_command(t->command, &usage);
    if (WIFEXITED(status) && WEXITSTATUS(status) == t->code) return true;
    fprintf(stderr, "likeness %s: without any damage, code %d\n", t->command, status >> 8);
    return false;
}

/* How a run ended: its code and the first message, without numbers and what is quoted. */
static uint64_t ending(int status, const char *errors) {
    uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)status;
    bool quoted = false;
    int n = 0;
    for (const char *c = errors; *c && *c != '\n' && n < 200; c++) {
        if (*c == '"') quoted = !quoted;
        if (quoted || (*c >= '0' && *c <= '9')) continue;
        h = (h ^ (unsigned char)*c) * 0x100000001b3u;
        n++;
    }
    return h;
}

/* Of the target: files of a corpus are known by it. */
static unsigned name_of(const struct attack_target *t) {
    uint64_t h = ending(0, t->command) ^ ending(1, t->file);
    return (unsigned)(h ^ h >> 32);
}

static void keep(struct known *k, const struct attack_bytes *b) {
    struct attack_bytes copy = {malloc(b->n + 1), b->n};
    if (!copy.data) exit(2);
    memcpy(copy.data, b->data, b->n);
    k->files[k->n_files++] = copy;
}

/* Whether no run of this target ended so before; its file is kept then. */
static bool is_new(struct known *k, uint64_t end, const struct attack_bytes *damaged) {
    for (int i = 0; i < k->n_endings; i++)
        if (k->endings[i] == end) return false;
    if (k->n_endings == MAX_ENDINGS) return false;
    k->endings[k->n_endings++] = end;
    if (k->n_files <= MAX_KEPT) keep(k, damaged);
    return true;
}

static void read_corpus(const char *corpus, struct known *known) {
    DIR *d = opendir(corpus);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[512];
        for (int t = 0; t < attack_n_targets; t++) {
            if (strtoul(e->d_name, NULL, 16) != name_of(&attack_targets[t]) || known[t].n_files > MAX_KEPT) continue;
            snprintf(path, sizeof path, "%s/%s", corpus, e->d_name);
            struct attack_bytes b = read_file(path);
            keep(&known[t], &b);
            free(b.data);
        }
    }
    if (d) closedir(d);
}

static bool attack(const struct attack_target *t, struct known *k, const char *corpus, uint64_t seed,
                   unsigned long run) {
    uint64_t state = seed * 1000003 + run;
    const struct attack_bytes *from = k->files;
    if (attack_random(&state) % 2) from += attack_random(&state) % (uint64_t)k->n_files;
    struct attack_bytes damaged = {malloc(from->n + 1), from->n};
    if (!damaged.data) exit(2);
    memcpy(damaged.data, from->data, from->n);
    attack_mutate(&damaged, t->form, &state);
    write_file(t->file, &damaged);
    struct rusage usage;
    int status = run_command(t->command, &usage);
    struct attack_bytes errors = read_file("attack.stderr");
    errors.data[errors.n] = 0;
    const char *why = judge(t, status, &usage, (const char *)errors.data, k->files, &damaged);
    uint64_t end = ending(status, (const char *)errors.data);
    char path[512];
    if (is_new(k, end, &damaged) && corpus) {
        snprintf(path, sizeof path, "%s/%08x-%016llx", corpus, name_of(t), (unsigned long long)end);
        write_file(path, &damaged);
    }
    if (why) {
        snprintf(path, sizeof path, "survivor-%llu-%lu", (unsigned long long)seed, run);
        write_file(path, &damaged);
        printf("%s: likeness %s: %s damaged as in %s: code %d, %ld MB\n%.400s\n", why, t->command, t->file, path,
               WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), usage.ru_maxrss >> 10,
               (const char *)errors.data);
        fflush(stdout);
    }
    write_file(t->file, k->files);
    free(errors.data);
    free(damaged.data);
    return !why;
}

static void stop(int number) { stopped = number; }

static void take_port(void) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t n = sizeof a;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0 || bind(s, (struct sockaddr *)&a, n) || listen(s, 1) || getsockname(s, (struct sockaddr *)&a, &n)) {
        perror("a port");
        exit(2);
    }
    snprintf(taken, sizeof taken, "%d", ntohs(a.sin_port));
}

int main(int argc, char **argv) {
    unsigned long runs = 2000, seed = 1, bad = 0, done = 0, endings = 0;
    const char *only = "", *folder = NULL, *corpus = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--runs") && i + 1 < argc)
            runs = strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            seed = strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else if (!strcmp(argv[i], "--corpus") && i + 1 < argc)
            corpus = realpath(argv[++i], NULL);
        else
            folder = argv[i];
    }
    if (!folder || chdir(folder)) {
        fprintf(stderr, "usage: attack [--runs N] [--seed N] [--only PART OF A COMMAND] [--corpus DIR] FOLDER\n");
        return 2;
    }
    take_port();
    struct known *known = calloc((size_t)attack_n_targets, sizeof *known);
    if (!known) return 2;
    for (int t = 0; t < attack_n_targets; t++) {
        struct attack_bytes b = read_file(attack_targets[t].file);
        keep(&known[t], &b);
        free(b.data);
        if (strstr(attack_targets[t].command, only) && !works_undamaged(&attack_targets[t])) return 2;
    }
    if (corpus) read_corpus(corpus, known);
    signal(SIGTERM, stop); /* what was done counts */
    for (unsigned long turn = 0; done < runs && !stopped; turn++) {
        unsigned long i = turn % (unsigned long)attack_n_targets, round = turn / (unsigned long)attack_n_targets;
        const struct attack_target *t = &attack_targets[i];
        if (!strstr(t->command, only) || (t->every && (round + i) % (unsigned long)t->every)) continue;
        done++;
        bad += !attack(t, &known[i], corpus, seed, turn);
    }
    for (int t = 0; t < attack_n_targets; t++) {
        if (strstr(attack_targets[t].command, only)) bad += !works_undamaged(&attack_targets[t]);
        for (int i = 0; i < known[t].n_files; i++) free(known[t].files[i].data);
        endings += (unsigned long)known[t].n_endings;
    }
    free(known);
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    printf("%lu runs of %d targets, %lu endings, %lu to look at; %ld s of the processor, %ld MB at most\n", done,
           attack_n_targets, endings, bad, (long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec),
           usage.ru_maxrss >> 10);
    attack_print_exceptions();
    return bad != 0;
}
