/* Lists of jobs: a JSON object a line. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "tools/cli/edit/job.h"
#include "weights/config.h"

#define MAX_BYTES ((size_t)256 << 20)

/* Of how a job is run only what concerns its picture alone is the line's. */
static void check_run(struct lk_config *c, const struct cli_job *job, const struct cli_job *given) {
    for (size_t i = 0; i < lk_n_parameters; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        if (p->place != LK_IN_RUN || !strcmp(p->name, "exif-transpose") || !lk_config_has(c, p->key)) continue;
        if (!lk_parameter_equal(p, &job->job, &given->job))
            lk_config_problem(c, p->key, LK_E_CONFIG_VALUE, "is one for all jobs; give it as --%s", p->name);
    }
}

/* file: that names the path; "" for the command line. */
static void copy_path(struct lk_config *c, const char *key, const char *file, const char *path, const char **out) {
    if (path && !(*out = lk_path_beside(file, path))) lk_config_problem(c, key, LK_E_NOMEM, "out of memory");
}

static void read_files(struct lk_config *c, const char *file, struct cli_job *job, const struct cli_job *given,
                       bool with_output) {
    const char *images[LK_MAX_REFERENCES], *output = NULL;
    const bool own = lk_config_has(c, "images");
    int64_t quality;
    size_t n = 0;
    if (own)
        lk_config_strings(c, "images", images, LK_MAX_REFERENCES, &n);
    else
        for (; n < (size_t)given->n_images; n++) images[n] = given->images[n];
    for (job->n_images = 0; job->n_images < (int)n; job->n_images++)
        copy_path(c, "images", own ? file : "", images[job->n_images], &job->images[job->n_images]);
    if (with_output)
        lk_config_string(c, "output", &output);
    else
        lk_config_ignore(c, "output");
    copy_path(c, "output", file, output, &job->output);
    lk_config_int_or(c, "quality", &quality, given->quality, given->quality ? 1 : 0, 100);
    job->quality = (int)quality;
}

static enum lk_code read_line(const struct cli_jobs *jobs, struct cli_job *job, const char *line, size_t n,
                              const struct cli_job *given) {
    struct lk_config *c;
    char name[512];
    snprintf(name, sizeof name, "%s: %s", jobs->file, job->where);
    LK_TRY(lk_config_parse(&c, line, n, name));
    job->job = given->job;
    job->job.owned = 0;
    job->job.beside = jobs->file;
    lk_job_read(&job->job, c, line, false);
    check_run(c, job, given);
    if (!job->job.request.prompt)
        lk_config_problem(c, "prompt", LK_E_CONFIG_KEY, "missing, here and on the command line");
    read_files(c, jobs->file, job, given, !jobs->embeds);
    return lk_config_close(c);
}

static bool is_blank(const char *line) { return !line[strspn(line, " \t\r")]; }

enum lk_code cli_jobs_read(struct cli_jobs *jobs, const struct cli_job *given) {
    char *text;
    size_t n_bytes, n_lines = 1;
    LK_TRY(lk_read_file(jobs->file, MAX_BYTES, &text, &n_bytes));
    for (size_t i = 0; i < n_bytes; i++) n_lines += text[i] == '\n';
    jobs->list = lk_calloc(n_lines, sizeof *jobs->list);
    enum lk_code rc = jobs->list ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", jobs->file);
    size_t at = 0;
    for (int number = 1; !rc && at < n_bytes; number++) {
        const char *end = memchr(text + at, '\n', n_bytes - at);
        size_t n = end ? (size_t)(end - text) - at : n_bytes - at;
        text[at + n] = 0;
        if (strlen(text + at) != n || !is_blank(text + at)) {
            struct cli_job *job = &jobs->list[jobs->n++];
            snprintf(job->where, sizeof job->where, "line %d", number);
            rc = read_line(jobs, job, text + at, n, given);
        }
        at += n + 1;
    }
    if (!rc && !jobs->n)
        rc = lk_fail(LK_E_INPUT, "%s: expected a JSON object a line, with \"output\" and what else an edit is told",
                     jobs->file);
    lk_free(text);
    return rc;
}

void cli_jobs_free(struct cli_jobs *jobs) {
    for (int i = 0; i < jobs->n; i++) {
        struct cli_job *job = &jobs->list[i];
        for (int k = 0; k < job->n_images; k++) lk_free((char *)(uintptr_t)job->images[k]);
        lk_free((char *)(uintptr_t)job->output);
        lk_job_free(&job->job);
    }
    lk_free(jobs->list);
    jobs->list = NULL;
    jobs->n = 0;
}
