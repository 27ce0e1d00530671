/* A study's shards as tasks of a cluster: the batch script of a Slurm job array, the manifest of a Kubernetes Job. */
#include <stdio.h>
#include <string.h>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "tools/cli/study/runner.h"

/* What a task runs, and on how many GPUs. Exit code 143: stopped by a signal, to go on later; 7: the disk, which may
 * have room again. */
struct task {
    struct lk_text files, command; /* "'study.json' -o 'run'" */
    long long n;
    int n_gpus;
};

/* One word for a shell. */
static void add_word(struct lk_text *out, const char *word) {
    lk_text_add(out, "'");
    for (; *word; word++) lk_text_add(out, *word == '\'' ? "'\\''" : "%c", *word);
    lk_text_add(out, "'");
}

/* number: what a task finds its own in, from 1 on, as a shell has it. */
static enum lk_code describe(struct task *t, const struct cli_arguments *a, const char *number) {
    const char *devices = a->study.devices ? a->study.devices : "cuda";
    *t = (struct task){.n = a->study.tasks ? a->study.tasks : 4};
    for (const char *at = devices; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        t->n_gpus += *at != 'c' || at[1] == 'u';
    add_word(&t->files, a->more[0]);
    lk_text_add(&t->files, " -o ");
    add_word(&t->files, a->output);
    if (!t->files.rc)
        lk_text_add(&t->command, "likeness study run %s --shard \"%s/%lld\" --devices %s", t->files.bytes, number, t->n,
                    devices);
    return t->files.rc ? t->files.rc : t->command.rc;
}

static void task_free(struct task *t) {
    lk_text_free(&t->files);
    lk_text_free(&t->command);
}

/* A study's name is of whoever wrote its file: it ends no comment. */
static void print_head(const char *begin, const char *study) {
    fputs(begin, stdout);
    lk_log_text(stdout, study, false);
}

static void print_slurm(const struct task *t, const char *study) {
    print_head("#!/bin/bash\n# ", study);
    printf(": a job array of %lld tasks, each a part of the jobs with a journal of its own. Two minutes before its\n"
           "# time is up a task finishes its step and is queued again; so it is when its node goes away.\n"
           "#SBATCH --job-name=likeness\n"
           "#SBATCH --array=1-%lld\n"
           "#SBATCH --requeue\n"
           "#SBATCH --open-mode=append\n"
           "#SBATCH --signal=USR1@120\n",
           t->n, t->n);
    if (t->n_gpus) printf("#SBATCH --gres=gpu:%d\n", t->n_gpus);
    printf("srun --kill-on-bad-exit=0 %s\n"
           "code=$?\n"
           "# 143: stopped by a signal, to go on later. 7: the disk, which may have room again.\n"
           "if [ $code -eq 143 ]; then\n"
           "    scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"\n"
           "    exit 0\n"
           "fi\n"
           "exit $code\n"
           "# When all tasks have ended: likeness study merge %s\n",
           t->command.bytes, t->files.bytes);
}

enum lk_code study_slurm(const struct cli_arguments *a, struct lk_study *study) {
    struct task task;
    enum lk_code rc = describe(&task, a, "$SLURM_ARRAY_TASK_ID");
    if (!rc) print_slurm(&task, lk_study_name(study));
    task_free(&task);
    return rc;
}

/* A label of DNS: small letters, digits and -. */
static void print_name(const char *study) {
    printf("likeness-");
    for (int i = 0; study[i] && i < 40; i++) {
        const char c = study[i] >= 'A' && study[i] <= 'Z' ? (char)(study[i] - 'A' + 'a') : study[i];
        putchar((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-');
    }
    puts("-run");
}

/* The shell gives way to the program, which has to get the signals. */
static enum lk_code print_k8s(const struct task *t, const struct cli_arguments *a, const char *study) {
    struct lk_text texts[3] = {{0}}, command = {0};
    lk_text_add(&command, "exec %s", t->command.bytes);
    lk_text_json(&texts[0], command.rc ? "" : command.bytes);
    lk_text_json(&texts[1], a->study.container);
    lk_text_json(&texts[2], a->study.claim ? a->study.claim : "likeness");
    enum lk_code rc = lk_text_free(&command);
    for (int i = 0; i < 3 && !rc; i++) rc = texts[i].rc;
    if (!rc) {
        print_head("# ", study);
        printf(": a Job of %lld tasks, each a part of the jobs with a journal of its own: kubectl apply -f -\n"
               "# A task whose node goes away, or that is stopped (143) to go on later, is started again; so is one\n"
               "# whose disk failed (7). When all have ended: likeness study merge %s\n"
               "apiVersion: batch/v1\n"
               "kind: Job\n"
               "metadata:\n"
               "  name: ",
               t->n, t->files.bytes);
        print_name(study);
        printf("spec:\n"
               "  completionMode: Indexed\n"
               "  completions: %lld\n"
               "  parallelism: %lld\n"
               "  backoffLimitPerIndex: 6\n"
               "  podFailurePolicy:\n"
               "    rules:\n"
               "    - action: Ignore\n"
               "      onPodConditions: [{type: DisruptionTarget}]\n"
               "    - action: Ignore\n"
               "      onExitCodes: {containerName: likeness, operator: In, values: [130, 143]}\n"
               "    - action: FailIndex\n"
               "      onExitCodes: {containerName: likeness, operator: In, values: [1, 2, 3, 4, 5, 6]}\n"
               "  template:\n"
               "    spec:\n"
               "      restartPolicy: Never\n"
               "      terminationGracePeriodSeconds: 120\n"
               "      containers:\n"
               "      - name: likeness\n"
               "        image: %s\n"
               "        workingDir: /work\n"
               "        command: [\"/bin/sh\", \"-c\"]\n"
               "        args:\n"
               "        - %s\n",
               t->n, t->n, texts[1].bytes, texts[0].bytes);
        if (t->n_gpus) printf("        resources: {limits: {nvidia.com/gpu: \"%d\"}}\n", t->n_gpus);
        printf("        volumeMounts: [{name: work, mountPath: /work}]\n"
               "      volumes:\n"
               "      - name: work\n"
               "        persistentVolumeClaim: {claimName: %s}\n",
               texts[2].bytes);
    }
    for (int i = 0; i < 3; i++) lk_text_free(&texts[i]);
    return rc;
}

enum lk_code study_k8s(const struct cli_arguments *a, struct lk_study *study) {
    struct task task;
    enum lk_code rc = describe(&task, a, "$((JOB_COMPLETION_INDEX + 1))");
    if (!rc) rc = print_k8s(&task, a, lk_study_name(study));
    task_free(&task);
    return rc;
}
