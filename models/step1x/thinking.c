#include "models/step1x/thinking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "models/step1x/reply.h"

#define THINK       "<#Think>"
#define SUCCESS     "<#Success>"
#define FENCE       "```"
#define FENCE_BYTES 3

static const struct {
    const char *tag;
    enum lk_verdict verdict;
} outcomes[] = {{"<#Reflection>", LK_VERDICT_REFLECTION},
                {"<#Failed>", LK_VERDICT_FAILED},
                {SUCCESS, LK_VERDICT_SUCCESS},
                {"<#Others>", LK_VERDICT_OTHERS}};
#define N_OUTCOMES (sizeof outcomes / sizeof *outcomes)

const char *lk_step1x_language(const char *prompt) {
    size_t length = strlen(prompt);
    int n_chinese = 0;
    for (size_t at = 0, n; at < length; at += n) {
        uint32_t code;
        n = lk_utf8_decode(prompt + at, length - at, &code);
        if (!n) n = 1;
        n_chinese += code >= 0x4e00 && code <= 0x9fff;
    }
    return n_chinese > 1 ? "中文" : "英文";
}

bool lk_step1x_is_error(const char *reply) {
    static const char mark[] = "错误:";
    return !strncmp(reply, mark, sizeof mark - 1);
}

/* No more than `cap` where the condition holds. */
static void limit(double *score, bool condition, double cap) {
    if (condition && *score > cap) *score = cap;
}

static double capped(const struct lk_step1x_faults *f) {
    double score = f->raw_score;
    if (score >= 0 && score <= 1.0000001) score *= 10.0; /* a share instead of points */
    score = score < 10.0 ? score : 10.0;                 /* NaN too, as in Python */
    score = score > 0.0 ? score : 0.0;
    bool omissions = f->hallucinations > 0 || f->omissions > 0;
    limit(&score, f->meets == LK_STEP1X_MEETS_NO, 2.0);
    limit(&score, f->meets == LK_STEP1X_MEETS_PARTIAL, 5.0);
    limit(&score, f->major_conflicts >= 2, 5.0);
    limit(&score, f->major_conflicts == 1, 8.0);
    limit(&score, omissions, 7.0);
    limit(&score, f->meets != LK_STEP1X_MEETS_YES || f->major_conflicts > 0 || omissions, 8.99);
    char digits[32];
    snprintf(digits, sizeof digits, "%.4f", score);
    return strtod(digits, NULL);
}

enum lk_code lk_step1x_read_consistency(const char *reply, bool *valid, double *score, char **reason) {
    struct lk_step1x_faults faults;
    const char *first = strchr(reply, '{'), *last = strrchr(reply, '}');
    *valid = false;
    *reason = NULL;
    if (lk_step1x_is_error(reply) || !first || !last || last < first) return LK_OK;
    LK_TRY(lk_step1x_read_faults(first, (size_t)(last + 1 - first), valid, &faults, reason));
    if (*valid) *score = capped(&faults);
    return LK_OK;
}

void lk_step1x_print_score(double score, char out[32]) {
    snprintf(out, 32, "%.4f", score);
    char *end = out + strlen(out);
    while (end[-1] == '0' && end[-2] != '.') *--end = 0;
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
    return n;
}

enum lk_code lk_step1x_read_reflection(const char *reply, bool *valid, char **words) {
    const char *think = strstr(reply, THINK), *outcome = NULL;
    int n_present = 0, n_times = 0;
    *valid = false;
    *words = NULL;
    for (size_t i = 0; i < N_OUTCOMES; i++) {
        const char *at = strstr(reply, outcomes[i].tag);
        if (!at) continue;
        n_present++;
        n_times = count(reply, outcomes[i].tag);
        outcome = at;
    }
    if (!think || n_present != 1 || n_times != 1 || outcome < think) return LK_OK;
    size_t n;
    const char *start = lk_utf8_strip(think, strlen(think), &n);
    *words = lk_strndup(start, n);
    *valid = true;
    return *words ? LK_OK : lk_fail(LK_E_NOMEM, "reflection: out of memory");
}

enum lk_verdict lk_step1x_verdict(const char *words, const char **next) {
    const char *after = NULL;
    enum lk_verdict verdict = LK_VERDICT_FAILED;
    int n = 0;
    for (size_t i = 0; i < N_OUTCOMES; i++) {
        int times = count(words, outcomes[i].tag);
        if (!times) continue;
        n += times;
        verdict = outcomes[i].verdict;
        after = strstr(words, outcomes[i].tag) + strlen(outcomes[i].tag);
    }
    if (strncmp(words, THINK, strlen(THINK)) || count(words, THINK) != 1 || n != 1) verdict = LK_VERDICT_FAILED;
    if (next) *next = verdict == LK_VERDICT_REFLECTION ? after : NULL;
    return verdict;
}

/* The last n characters taken off, as far as there are that many. */
static const char *without_last(const char *start, const char *end, int n) {
    while (n-- > 0 && end > start) {
        end--;
        while (end > start && ((unsigned char)*end & 0xc0) == 0x80) end--;
    }
    return end;
}

enum lk_code lk_step1x_read_scores(const char *reply, bool *valid, double *least) {
    static const char json_fence[] = FENCE "json";
    size_t n;
    const char *start = lk_utf8_strip(reply, strlen(reply), &n), *end = start + n;
    size_t opening = !strncmp(start, json_fence, sizeof json_fence - 1) ? sizeof json_fence - 1
                     : !strncmp(start, FENCE, FENCE_BYTES)              ? FENCE_BYTES
                                                                        : 0;
    if (opening) {
        end = without_last(start, end, FENCE_BYTES); /* whatever they are */
        start += opening;
        if (end < start) end = start;
    }
    return lk_step1x_read_score_list(start, (size_t)(end - start), valid, least);
}

int lk_step1x_best_round(const struct lk_round *rounds, int n) {
    int best = 0;
    double most = -1;
    bool best_succeeded = false;
    for (int i = 0; i < n; i++) {
        bool succeeded = rounds[i].reflection && strstr(rounds[i].reflection, SUCCESS);
        bool tie = rounds[i].score == most;
        if (rounds[i].score > most || (tie && succeeded && !best_succeeded)) {
            best_succeeded = succeeded;
            most = rounds[i].score;
            best = i;
        } else if (tie && succeeded == best_succeeded) {
            best = i;
        }
    }
    return best;
}

void lk_step1x_advance(struct lk_step1x_course *course, enum lk_verdict verdict, const char *next,
                       const char *original) {
    course->done = verdict == LK_VERDICT_SUCCESS || verdict == LK_VERDICT_OTHERS;
    if (course->done) return;
    course->from_source = verdict != LK_VERDICT_REFLECTION;
    course->prompt = course->from_source ? original : next;
}
