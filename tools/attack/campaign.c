#include "tools/attack/campaign.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY_MAX_KB (2L << 20)
#define SECONDS_MAX   10

enum { MAX_WORDS = 32, TEXT_BYTES = 1 << 12, MAX_KEPT = 48, MAX_ENDINGS = 512 };

/* What is known of a target: its files as they were and as they were damaged, first the undamaged one. */
struct known {
    struct attack_bytes files[MAX_KEPT + 1];
    int n_files, n_endings;
    uint64_t results; /* of the undamaged one */
    uint64_t endings[MAX_ENDINGS];
};

/* A worker: it works in a folder of its own and has each n-th target, with all that is known of it. What it counts lies
 * in memory that it shares with who adds up. */
struct worker {
    const struct attack_campaign *campaign;
    int i;
    struct known *known; /* [n_targets] */
    struct attack_counts *counts;
};

static char taken[8]; /* the port on which this program listens */
static char *home;    /* the campaign's folder: survivors are left there */
static volatile sig_atomic_t stopped, n_workers;
static pid_t workers[ATTACK_MAX_WORKERS];

/* Of sanitizers, where there are any. */
void __lsan_do_leak_check(void) __attribute__((weak));
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/* Memory that a fork need not copy and that no search for leaks looks through. */
static void *shared(size_t n) {
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) exit(2);
    return p;
}

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
static void start(const struct attack_campaign *c, const char *command) {
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
    size_t (*held)(void) = __sanitizer_get_current_allocated_bytes;
    size_t before = held ? held() : 0;
    int code = c->command(n, words);
    /* A search for leaks takes longer than most commands. It, and what exit does, is left out where it has no use. */
    if (held && __lsan_do_leak_check && held() != before) __lsan_do_leak_check();
    _exit(code);
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
                         const struct attack_bytes *undamaged, const struct attack_bytes *damaged,
                         unsigned long *excepted) {
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
    return attack_names_field(errors, t, undamaged, damaged, excepted) ? NULL : "the error names no field";
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

static uint64_t sum_of_results;

/* Each file of result/ by its name and bytes, whatever their order. */
static int add_result(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)at;
    if (type != FTW_F) return 0;
    struct attack_bytes b = read_file(path);
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *c = path; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    for (size_t i = 0; i < b.n; i++) h = (h ^ b.data[i]) * 0x100000001b3u;
    sum_of_results += h;
    free(b.data);
    return 0;
}

static uint64_t results(void) {
    sum_of_results = 0;
    nftw("result", add_result, 16, FTW_PHYS);
    return sum_of_results;
}

static bool must_be_same(const struct attack_target *t) { return t->form >= ATTACK_DATABASE; }

static int run_command(const struct attack_campaign *c, const char *command, struct rusage *usage) {
    int status;
    nftw("result", remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mkdir("result", 0700);
    fflush(NULL);
    pid_t child = fork();
    if (!child) start(c, command);
    pid_t ended = child;
    while (child > 0 && (ended = wait4(child, &status, 0, usage)) < 0 && errno == EINTR) {
    }
    if (child < 0 || ended != child) exit(2);
    return status;
}

/* An attack on a command that fails anyway would find nothing. */
static bool works_undamaged(const struct attack_campaign *c, const struct attack_target *t, struct known *k) {
    struct rusage usage;
    bool before = k->results != 0;
    int status = run_command(c, t->command, &usage);
    uint64_t now = must_be_same(t) ? results() : 0;
    if (before && now != k->results) {
        fprintf(stderr, "likeness %s: without any damage, another result than before\n", t->command);
        return false;
    }
    k->results = now;
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
    struct attack_bytes copy = {shared(b->n + 1), b->n};
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

static bool has(const struct worker *w, int t) {
    return t % w->campaign->workers == w->i && strstr(w->campaign->targets[t].command, w->campaign->only);
}

static void read_corpus(const struct worker *w) {
    DIR *d = opendir(w->campaign->corpus);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[512];
        for (int t = 0; t < w->campaign->n_targets; t++) {
            if (!has(w, t) || strtoul(e->d_name, NULL, 16) != name_of(&w->campaign->targets[t]) ||
                w->known[t].n_files > MAX_KEPT)
                continue;
            snprintf(path, sizeof path, "%s/%s", w->campaign->corpus, e->d_name);
            struct attack_bytes b = read_file(path);
            keep(&w->known[t], &b);
            free(b.data);
        }
    }
    if (d) closedir(d);
}

static bool attack(const struct worker *w, int target, unsigned long run) {
    const struct attack_campaign *c = w->campaign;
    const struct attack_target *t = &c->targets[target];
    struct known *k = &w->known[target];
    uint64_t state = c->seed * 1000003 + run;
    const struct attack_bytes *from = k->files;
    if (attack_random(&state) % 2) from += attack_random(&state) % (uint64_t)k->n_files;
    struct attack_bytes damaged = {malloc(from->n + 1), from->n};
    if (!damaged.data) exit(2);
    memcpy(damaged.data, from->data, from->n);
    attack_mutate(&damaged, t->form, &state);
    write_file(t->file, &damaged);
    struct rusage usage;
    int status = run_command(c, t->command, &usage);
    struct attack_bytes errors = read_file("attack.stderr");
    errors.data[errors.n] = 0;
    const char *why = judge(t, status, &usage, (const char *)errors.data, k->files, &damaged, w->counts->excepted);
    if (!why && must_be_same(t) && WIFEXITED(status) && !WEXITSTATUS(status) && results() != k->results)
        why = "another result, and code 0";
    uint64_t end = ending(status, (const char *)errors.data);
    w->counts->sum += attack_random(&(uint64_t){end ^ run});
    char path[PATH_MAX];
    if (is_new(k, end, &damaged) && c->corpus) {
        snprintf(path, sizeof path, "%s/%08x-%016llx", c->corpus, name_of(t), (unsigned long long)end);
        write_file(path, &damaged);
    }
    if (why) {
        snprintf(path, sizeof path, "%s/survivor-%llu-%lu", home, (unsigned long long)c->seed, run);
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

/* What was done counts. */
static void stop(int number) {
    stopped = number;
    for (int i = 0; i < n_workers; i++) kill(workers[i], SIGTERM);
}

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

/* Which run meets which target, and with what damage, does not depend on the number of workers. */
static int work(const struct worker *w) {
    const struct attack_campaign *c = w->campaign;
    unsigned long n = (unsigned long)c->n_targets, done = 0;
    bool any = false;
    for (int t = 0; t < c->n_targets; t++) {
        any |= strstr(c->targets[t].command, c->only) != NULL;
        if (!has(w, t)) continue;
        struct attack_bytes b = read_file(c->targets[t].file);
        keep(&w->known[t], &b);
        free(b.data);
        if (!works_undamaged(c, &c->targets[t], &w->known[t])) return 2;
    }
    if (!any) return 2;
    if (c->corpus) read_corpus(w);
    for (unsigned long turn = 0; done < c->runs && !stopped; turn++) {
        unsigned long i = turn % n, round = turn / n;
        const struct attack_target *t = &c->targets[i];
        if (!strstr(t->command, c->only) || (t->every && (round + i) % (unsigned long)t->every)) continue;
        done++;
        if (!has(w, (int)i)) continue;
        w->counts->bad += !attack(w, (int)i, turn);
        w->counts->done++;
    }
    for (int t = 0; t < c->n_targets; t++) {
        if (!has(w, t)) continue;
        w->counts->bad += !works_undamaged(c, &c->targets[t], &w->known[t]);
        w->counts->endings += (unsigned long)w->known[t].n_endings;
    }
    return 0;
}

static bool ended_well(pid_t child) {
    int status;
    pid_t ended = child;
    while (child > 0 && (ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
    }
    return child > 0 && ended == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool copy_folder(const char *from, const char *to) {
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        execlp("cp", "cp", "-a", from, to, (char *)NULL);
        _exit(2);
    }
    return ended_well(child);
}

/* A worker's copy of the campaign's folder: where a message has its name, that is the same but for digits. */
static void folder_of(int i, char path[PATH_MAX]) {
    if (snprintf(path, PATH_MAX, "%s.worker-%d", home, i) >= PATH_MAX) exit(2);
}

bool attack_campaign(const struct attack_campaign *c, const char *folder, struct attack_counts *all) {
    struct attack_counts *counts = shared(ATTACK_MAX_WORKERS * sizeof *counts);
    char path[PATH_MAX];
    bool well = (home = realpath(folder, NULL)) && c->workers >= 1 && c->workers <= ATTACK_MAX_WORKERS;
    int copied = 0;
    if (well) take_port();
    for (; well && copied < c->workers; copied++) {
        folder_of(copied, path);
        well = copy_folder(home, path);
    }
    if (well) signal(SIGTERM, stop);
    for (int i = 0; well && i < c->workers; i++) {
        fflush(NULL);
        workers[i] = fork();
        if (!workers[i]) {
            struct known *known = calloc((size_t)c->n_targets, sizeof *known);
            n_workers = 0;
            folder_of(i, path);
            _exit(!known || chdir(path) ? 2 : work(&(struct worker){c, i, known, &counts[i]}));
        }
        n_workers = i + 1;
    }
    *all = (struct attack_counts){0};
    for (int i = 0; i < n_workers; i++) {
        well &= ended_well(workers[i]);
        all->done += counts[i].done;
        all->endings += counts[i].endings;
        all->bad += counts[i].bad;
        all->sum += counts[i].sum;
        for (int e = 0; e < ATTACK_MAX_EXCEPTIONS; e++) all->excepted[e] += counts[i].excepted[e];
    }
    n_workers = 0;
    for (int i = 0; i < copied; i++) {
        folder_of(i, path);
        nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    free(home);
    munmap(counts, ATTACK_MAX_WORKERS * sizeof *counts);
    return well && (stopped || all->done == c->runs);
}
