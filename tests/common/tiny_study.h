/* Studies of tiny checkpoints, run by the program's own command in a process group of its own. What that writes can be
 * made to fail or to kill it: a test that links with the wrapped calls (tests/CMakeLists.txt) says where. */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

/* What happens at the at-th call that writes, of all processes of the run together. */
enum tiny_fault {
    TINY_KILL = -1,  /* SIGKILL to the group; in the middle of the write */
    TINY_SHORT = -2, /* half is written */
    /* else errno */
};
struct tiny_faults {
    atomic_llong n_calls, n_bytes;
    long long at; /* 0: never */
    int what;
    long long room;   /* bytes after which every write says that the disk is full; 0: no end */
    char poison[128]; /* a worker that would put a file of this name in place dies of SIGSEGV; "": none */
};
extern struct tiny_faults *tiny_faults; /* shared by all processes; made by tiny_study_make */
/* Counting begins again. Only where the calls are wrapped. */
void tiny_faults_set(long long at, int what, long long room);

/* Makes FOLDER/study.json with its sources, n_sources (1 to 12) times the prompts O-01 and V-01, for FLUX.2 and
 * Step1X-Edit. */
void tiny_study_make(const char *folder, int n_sources, int n_steps);
/* `likeness study ACTION FOLDER/study.json -o FOLDER/OUT` (verify, status: ACTION FOLDER/OUT) and more words (ending in
 * NULL), in a process group of its
 * own whose number is its process id; output goes to FOLDER/OUT.log. */
pid_t tiny_study_start(const char *folder, const char *out, const char *action, const char *const *more);
/* Its exit code, or minus the signal that ended it. */
int tiny_study_wait(pid_t pid);
int tiny_study_run(const char *folder, const char *out, const char *const *more);
/* All pictures and the manifest of two runs are the same but for times: the test fails otherwise. */
void tiny_study_same(const char *folder, const char *out, const char *expected);
void tiny_study_remove(const char *folder, const char *out);
