#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/log.h"
#include "engine/base/utf8.h"
#include "models/text/chat.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

struct state {
    const struct cli_arguments *arguments;
    struct lk_image images[CLI_MAX_IMAGES];
    struct lk_device *device;
    struct lk_chat *chat;
    struct lk_chat_reply reply;
    bool terminal;                       /* stdout is one: control characters are shown, not obeyed */
    double started_s, first_s, latest_s; /* when the prompt began, when the first and the last token came */
};

/* The text may hold NUL, at which the terminal's printer would stop. */
static void print_safely(const char *text, size_t n) {
    for (size_t at = 0; at < n; at++) {
        lk_log_text(stdout, text + at, true);
        at += strlen(text + at);
        if (at < n) fputs("\\x00", stdout);
    }
}

static enum lk_code on_text(void *context, const char *text, size_t n, int64_t n_tokens) {
    struct state *s = context;
    s->latest_s = lk_log_now();
    if (n_tokens == 1) s->first_s = s->latest_s;
    if (s->terminal)
        print_safely(text, n);
    else
        fwrite(text, 1, n, stdout);
    if (fflush(stdout) || ferror(stdout)) return lk_fail_errno(errno, "stdout");
    const char *signal_name = cli_signals_name();
    return signal_name ? lk_fail(LK_E_INTERRUPTED, "stopped by %s; the reply is not complete", signal_name) : LK_OK;
}

static enum lk_code check_utf8(const char *option, const char *text) {
    size_t length = text ? strlen(text) : 0, valid = length ? lk_utf8_valid_prefix(text, length) : 0;
    if (valid == length) return LK_OK;
    return lk_fail(LK_E_PROMPT, "%s: byte %zu: expected UTF-8, got 0x%02x; convert the text to UTF-8", option, valid,
                   (unsigned char)text[valid]);
}

/* Everything that can be refused before the weights are opened. */
static enum lk_code check_arguments(const struct cli_arguments *a) {
    if (a->greedy && (a->temperature >= 0 || a->top_k >= 0 || a->top_p >= 0))
        return lk_fail(LK_E_USAGE, "--greedy: takes the most likely token, so --temperature, --top-k and --top-p have "
                                   "no effect; give the one or the others");
    LK_TRY(check_utf8("--prompt", a->job.request.prompt));
    return check_utf8("--system", a->system);
}

static void make_generation(struct lk_generation_config *g, const struct cli_arguments *a) {
    if (a->greedy) g->do_sample = false;
    if (a->temperature >= 0 || a->top_k >= 0 || a->top_p >= 0) g->do_sample = true;
    if (a->temperature >= 0) g->temperature = a->temperature;
    if (a->top_k >= 0) g->top_k = a->top_k;
    if (a->top_p >= 0) g->top_p = a->top_p;
    if (a->repetition_penalty >= 0) g->repetition_penalty = a->repetition_penalty;
    if (a->max_new_tokens) g->max_new_tokens = a->max_new_tokens;
}

static void report(const struct state *s) {
    const struct lk_chat_reply *r = &s->reply;
    char peak[32];
    lk_log(LK_LOG_INFO, "prompt: %lld tokens, %lld of them images, %.2f s", (long long)r->n_prompt_tokens,
           (long long)r->n_image_tokens, s->first_s - s->started_s);
    double seconds = s->latest_s - s->first_s;
    lk_log(LK_LOG_INFO, "reply: %lld tokens, %.2f tokens/s, %s; activations %s", (long long)r->n_tokens,
           seconds > 0 ? (double)(r->n_tokens - 1) / seconds : 0,
           r->stopped ? "ended by the model" : "cut at --max-new-tokens", cli_bytes(r->peak_bytes, peak));
}

static enum lk_code ask(struct state *s) {
    const struct cli_arguments *a = s->arguments;
    const struct lk_chat_part system = {.text = a->system};
    struct lk_chat_part parts[CLI_MAX_IMAGES + 1];
    struct lk_chat_message messages[2];
    int n_parts = 0;
    struct lk_chat_request request;
    lk_chat_request_init(&request, s->chat);
    for (int i = 0; i < a->n_images; i++) parts[n_parts++] = (struct lk_chat_part){.image = &s->images[i]};
    parts[n_parts++] = (struct lk_chat_part){.text = a->job.request.prompt};
    if (a->system) messages[request.n_messages++] = (struct lk_chat_message){"system", &system, 1};
    messages[request.n_messages++] = (struct lk_chat_message){"user", parts, n_parts};
    request.messages = messages;
    make_generation(&request.generation, a);
    request.seed = a->job.request.seed;
    request.text = on_text;
    request.text_context = s;
    cli_signals_install();
    lk_log(LK_LOG_INFO, "%s in %s on %s", lk_chat_family(s->chat), a->job.run.dtype, s->device->name);
    s->started_s = lk_log_now();
    enum lk_code rc = lk_chat_reply(s->chat, s->device, &request, &s->reply);
    if (s->reply.n_tokens) putchar('\n');
    if (!rc) report(s);
    return rc;
}

static enum lk_code run(struct state *s) {
    const struct cli_arguments *a = s->arguments;
    LK_TRY(check_arguments(a));
    LK_TRY(cli_device_open(&a->job.run, &s->device));
    for (int i = 0; i < a->n_images; i++)
        LK_TRY(lk_image_read(&s->images[i], a->images[i], a->job.run.exif_transpose, 0));
    LK_TRY(lk_chat_open(&s->chat, a->model, cli_dtype(&a->job.run)));
    return ask(s);
}

enum lk_code cli_chat(const struct cli_arguments *arguments) {
    struct state s = {.arguments = arguments, .terminal = isatty(STDOUT_FILENO)};
    enum lk_code rc = run(&s);
    lk_chat_reply_free(&s.reply);
    lk_chat_close(s.chat);
    if (s.device) lk_device_free(s.device);
    for (int i = 0; i < CLI_MAX_IMAGES; i++) lk_image_free(&s.images[i]);
    return rc;
}
