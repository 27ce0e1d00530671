#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/utf8.h"
#include "engine/image/image.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"
#include "weights/config.h"

static bool same_file(const char *path, const struct stat *s) {
    struct stat other;
    return stat(path, &other) == 0 && other.st_dev == s->st_dev && other.st_ino == s->st_ino;
}

/* Files that jobs read, by device and inode. */
struct inputs {
    struct {
        dev_t device;
        ino_t inode;
        const char *path;
    } * list;
    size_t n;
};

static void add_input(struct inputs *in, const char *path) {
    struct stat s;
    if (!path || stat(path, &s)) return;
    in->list[in->n].device = s.st_dev;
    in->list[in->n].inode = s.st_ino;
    in->list[in->n++].path = path;
}

static enum lk_code list_inputs(struct inputs *in, const struct cli_jobs *jobs) {
    size_t most = 1;
    for (int i = 0; i < jobs->n; i++) most += (size_t)jobs->list[i].n_images;
    in->list = lk_calloc(most, sizeof *in->list);
    if (!in->list) return lk_fail(LK_E_NOMEM, "out of memory for the list of jobs");
    for (int i = 0; i < jobs->n; i++)
        for (int k = 0; k < jobs->list[i].n_images; k++) add_input(in, jobs->list[i].images[k]);
    return LK_OK;
}

/* An existing file that a job reads. */
static enum lk_code check_overwrite(const struct cli_jobs *jobs, const char *option, const char *output,
                                    const struct inputs *in, const struct stat *existing) {
    for (size_t i = 0; i < in->n; i++)
        if (in->list[i].device == existing->st_dev && in->list[i].inode == existing->st_ino)
            return lk_fail(LK_E_USAGE, "%s: %s: is the image %s itself; name another file", option, output,
                           in->list[i].path);
    if (jobs->recipe && same_file(jobs->recipe, existing))
        return lk_fail(LK_E_USAGE, "%s: %s: is the picture to make again; name another file", option, output);
    return LK_OK;
}

/* A picture with a recipe, or prompts that embed has encoded. Weights of a model are neither. */
static bool is_ours(const char *path, const char *ending) {
    static const char mark[] = "\"__metadata__\":{\"likeness\":\"prompt embeddings";
    char head[128];
    if (strcmp(ending, ".safetensors") != 0) {
        struct lk_png_text *texts;
        if (lk_picture_text_read(path, &texts)) return false;
        bool found = false;
        for (const struct lk_png_text *t = texts; t && t->key && !found; t++) found = !strncmp(t->key, "likeness", 8);
        lk_png_text_free(texts);
        return found;
    }
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(head, 1, sizeof head, file) : 0;
    if (file) fclose(file);
    return memmem(head, n, mark, sizeof mark - 1);
}

/* Found out before the long run: a name that is none, a file that is needed, a place that cannot be written to. */
static enum lk_code check_output(const struct cli_jobs *jobs, const char *option, const char *path, const char *ending,
                                 const struct inputs *in) {
    struct stat s;
    const char *dot = strrchr(path, '.');
    LK_TRY(cli_output_name_check(path));
    bool exists = stat(path, &s) == 0;
    if (exists && S_ISDIR(s.st_mode))
        return lk_fail(LK_E_USAGE, "%s: %s: is a folder; name a file in it", option, path);
    const bool png = !strcmp(ending, ".png"), known = dot && !strcasecmp(dot, ending);
    if (!known && !(png && lk_picture_format(path) != LK_PICTURE_PNG))
        return lk_fail(LK_E_USAGE, "%s: %s: expected a name that ends in %s%s, the format that is written", option,
                       path, ending, png ? ", .jpg or .webp" : "");
    if (exists) LK_TRY(check_overwrite(jobs, option, path, in, &s));
    if (exists && s.st_size && !is_ours(path, ending)) {
        if (jobs->embeds)
            return lk_fail(LK_E_USAGE, "%s: %s: is there and no file of embed, perhaps weights; name another file",
                           option, path);
        if (!jobs->overwrite)
            return lk_fail(LK_E_USAGE,
                           "%s: %s: is there and is no result of likeness; name another file, or "
                           "replace it with --overwrite",
                           option, path);
    }
    char *copy = lk_strdup(path);
    if (!copy) return lk_fail(LK_E_NOMEM, "%s: out of memory", option);
    const char *folder = dirname(copy);
    enum lk_code rc = LK_OK;
    if (stat(folder, &s) || !S_ISDIR(s.st_mode))
        rc = lk_fail(LK_E_IO, "%s: %s: no such folder", option, folder);
    else if (access(folder, W_OK))
        rc = lk_fail(LK_E_IO, "%s: %s: the folder cannot be written to", option, folder);
    lk_free(copy);
    return rc;
}

/* Before the weights are opened: the tokenizer would find it later. */
static enum lk_code check_text(const char *option, const char *text) {
    if (!text) return LK_OK;
    size_t length = strlen(text), valid = lk_utf8_valid_prefix(text, length);
    if (valid == length) return LK_OK;
    return lk_fail(LK_E_PROMPT, "%s: byte %zu: expected UTF-8, got 0x%02x; convert the text to UTF-8", option, valid,
                   (unsigned char)text[valid]);
}

/* What a mask keeps has the source's bytes in the file, too. */
static enum lk_code check_kept(const struct cli_job *job) {
    const struct lk_request *r = &job->job.request;
    const enum lk_picture_format format = lk_picture_format(job->output);
    if (!r->mask || (r->mask_paste && !strcmp(r->mask_paste, "off")) || format == LK_PICTURE_PNG) return LK_OK;
    if (format == LK_PICTURE_WEBP && job->quality == 100) return LK_OK;
    return lk_fail(LK_E_USAGE,
                   "--mask: %s: this format would change what is kept; name a .png, or a .webp with --quality 100",
                   job->output);
}

static enum lk_code check_job(const struct cli_jobs *jobs, int i, const struct inputs *in) {
    const struct cli_job *job = &jobs->list[i];
    LK_TRY(check_text("--prompt", job->job.request.prompt));
    LK_TRY(check_text("--negative-prompt", job->job.request.negative_prompt));
    if (jobs->embeds) return LK_OK;
    if (jobs->preview.file && !strcmp(job->output, jobs->preview.file))
        return lk_fail(LK_E_USAGE, "--preview: %s: is the output; name another file", job->output);
    LK_TRY(check_output(jobs, "--output", job->output, ".png", in));
    if (!jobs->file && job->quality && lk_picture_format(job->output) == LK_PICTURE_PNG)
        return lk_fail(LK_E_USAGE, "--quality: %s: a PNG loses nothing; leave it out, or name a .jpg or .webp",
                       job->output);
    return check_kept(job);
}

static int by_output(const void *a, const void *b) {
    const struct cli_job *const *x = a, *const *y = b;
    return strcmp((*x)->output, (*y)->output);
}

/* Two jobs of one name would leave one picture. */
static enum lk_code check_names(const struct cli_jobs *jobs) {
    const struct cli_job **sorted = lk_malloc(((size_t)jobs->n + 1) * sizeof *sorted);
    enum lk_code rc = sorted ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", jobs->file);
    for (int i = 0; !rc && i < jobs->n; i++) sorted[i] = &jobs->list[i];
    if (!rc) qsort(sorted, (size_t)jobs->n, sizeof *sorted, by_output);
    for (int i = 1; !rc && i < jobs->n; i++)
        if (!strcmp(sorted[i - 1]->output, sorted[i]->output))
            rc = lk_fail(LK_E_USAGE, "%s: %s and %s: field \"output\": both are %s", jobs->file, sorted[i - 1]->where,
                         sorted[i]->where, sorted[i]->output);
    lk_free(sorted);
    return rc;
}

enum lk_code cli_jobs_check(const struct cli_jobs *jobs) {
    const struct lk_job_run *run = &jobs->list[0].job.run;
    struct inputs in = {0};
    if (run->n_loras && strcmp(run->gemm, "own") != 0)
        return lk_fail(LK_E_USAGE, "--gemm: %s cannot go on with a sum, as a LoRA needs it; leave one out", run->gemm);
    enum lk_code rc = list_inputs(&in, jobs);
    if (!rc && jobs->embeds) rc = check_output(jobs, "--output", jobs->embeds, ".safetensors", &in);
    if (!rc && jobs->preview.file) rc = check_output(jobs, "--preview", jobs->preview.file, ".png", &in);
    for (int i = 0; !rc && i < jobs->n; i++) {
        rc = check_job(jobs, i, &in);
        if (rc && jobs->file) rc = lk_fail_prefix(rc, "%s: %s", jobs->file, jobs->list[i].where);
    }
    if (!rc && jobs->file && !jobs->embeds) rc = check_names(jobs);
    lk_free(in.list);
    return rc;
}

/* Lists of jobs: a JSON object a line. */

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
