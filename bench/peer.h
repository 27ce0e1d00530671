/* Another implementation in a process of its own, asked over pipes for one measurement at a time, so that the two can
 * alternate in the same minutes. It prints "ready DESCRIPTION", answers "run" with "ns WALL CPU" and "dump PATH" with
 * "ok". */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench_peer {
    pid_t pid;
    FILE *to, *from;
    char description[160];
};

/* One line of the peer's that begins with `word`; its rest in `rest`. */
static inline bool bench_peer_answer(struct bench_peer *peer, const char *word, char *rest, size_t size) {
    char line[512];
    if (!fgets(line, sizeof line, peer->from)) return false;
    line[strcspn(line, "\n")] = 0;
    size_t length = strlen(word);
    if (strncmp(line, word, length) != 0) {
        fprintf(stderr, "peer: %s\n", line);
        return false;
    }
    snprintf(rest, size, "%s", line + length + (line[length] == ' '));
    return true;
}

/* command: as a shell takes it; args, ending in NULL, are appended as they are. Waits until the peer is ready. */
static inline bool bench_peer_start(struct bench_peer *peer, const char *command, char *const *args) {
    int in[2], out[2];
    char script[512], *argv[32] = {"sh", "-c", script, "peer"};
    int n = 4;
    snprintf(script, sizeof script, "exec %s \"$@\"", command);
    while (n < 31 && *args) argv[n++] = *args++;
    if (pipe2(in, O_CLOEXEC)) return false; /* a later peer must not hold this one's ends open */
    if (pipe2(out, O_CLOEXEC)) return false;
    peer->pid = fork();
    if (peer->pid < 0) return false;
    if (peer->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    peer->to = fdopen(in[1], "w");
    peer->from = fdopen(out[0], "r");
    return peer->to && peer->from && bench_peer_answer(peer, "ready", peer->description, sizeof peer->description);
}

/* Elapsed and processor time of one run. */
static inline bool bench_peer_run(struct bench_peer *peer, double *ns, double *cpu_ns) {
    char rest[64], *end;
    fputs("run\n", peer->to);
    fflush(peer->to);
    if (!bench_peer_answer(peer, "ns", rest, sizeof rest)) return false;
    *ns = strtod(rest, &end);
    *cpu_ns = strtod(end, NULL);
    return true;
}

static inline bool bench_peer_dump(struct bench_peer *peer, const char *path) {
    char rest[64];
    fprintf(peer->to, "dump %s\n", path);
    fflush(peer->to);
    return bench_peer_answer(peer, "ok", rest, sizeof rest);
}

static inline void bench_peer_stop(struct bench_peer *peer) {
    if (peer->to) fclose(peer->to);
    if (peer->from) fclose(peer->from);
    if (peer->pid > 0) waitpid(peer->pid, NULL, 0);
}
