#define PCRE2_CODE_UNIT_WIDTH 8
#include "models/tokenizer/pattern.h"

#include <pcre2.h>

#include "engine/base/alloc.h"
#include "models/tokenizer/unicode.h"

/* No pattern may hang. An attempt to match first sees FIRST_WINDOW bytes and may backtrack FIRST_LIMIT times, which is
 * enough for ordinary text. If it wants more, it is repeated with a callback before each item of the pattern, which
 * counts how far the position moved; the whole text has a sum of such steps that grows with its length. */
#define FIRST_WINDOW   64
#define FIRST_LIMIT    32
#define STEPS_PER_BYTE 24
#define STEPS_AT_LEAST (1 << 22)
#define JIT_STACK_MAX  (1u << 20)
#define HEAP_LIMIT_KIB (256u << 10)

static void *context_malloc(size_t size, void *unused) {
    (void)unused;
    return lk_malloc(size);
}

static void context_free(void *block, void *unused) {
    (void)unused;
    lk_free(block);
}

static enum lk_code no_memory(void) { return lk_fail(LK_E_NOMEM, "tokenizer: no memory for a pattern"); }

static enum lk_code compile(struct pattern *pattern, const char *text, size_t length, uint32_t options,
                            const char *where) {
    pcre2_general_context *general = pcre2_general_context_create(context_malloc, context_free, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    int error = PCRE2_ERROR_NOMEMORY;
    PCRE2_SIZE offset = 0;
    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        options |= PCRE2_ANCHORED | PCRE2_UTF;
        pattern->code = pcre2_compile((PCRE2_SPTR)text, length, options, &error, &offset, context);
        /* A literal has no item to call back before, and cannot take long. */
        if (!(options & PCRE2_LITERAL)) options |= PCRE2_AUTO_CALLOUT;
        if (pattern->code)
            pattern->counted = pcre2_compile((PCRE2_SPTR)text, length, options, &error, &offset, context);
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    if (pattern->counted) {
        /* Without memory for machine code the interpreter does the same work. */
        pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
        pcre2_jit_compile(pattern->counted, PCRE2_JIT_COMPLETE);
        return LK_OK;
    }
    if (error == PCRE2_ERROR_NOMEMORY || error == PCRE2_ERROR_HEAP_FAILED) return no_memory();
    PCRE2_UCHAR reason[160];
    pcre2_get_error_message(error, reason, sizeof reason);
    return lk_fail(LK_E_TOKENIZER, "%s: byte %zu of the pattern: %s", where, (size_t)offset, (char *)reason);
}

enum lk_code lk_pattern_compile(struct pattern *pattern, const char *text, size_t length, bool literal,
                                const char *where) {
    size_t at;
    pattern->literal = literal;
    if (literal) return compile(pattern, text, length, PCRE2_LITERAL, where);
    const char *refusal = lk_pattern_refusal(text, length, &at);
    if (!refusal) return compile(pattern, text, length, PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, where);
    return lk_fail(
        LK_E_TOKENIZER,
        "%s: byte %zu of the regular expression: %s is not implemented, because it may mean something else in "
        "the reference's engine",
        where, at, refusal);
}

enum lk_code lk_pattern_compile_word(struct pattern *pattern) {
    static const char word[] = "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]";
    return compile(pattern, word, sizeof word - 1, PCRE2_UCP, "single_word");
}

void lk_pattern_free(struct pattern *pattern) {
    pcre2_code_free(pattern->code);
    pcre2_code_free(pattern->counted);
    pattern->code = pattern->counted = NULL;
}

static int count_steps(pcre2_callout_block *block, void *matcher) {
    struct pattern_matcher *m = matcher;
    size_t now = block->current_position, before = m->last_position;
    m->last_position = now;
    m->steps_left -= 1 + (int64_t)(now > before ? now - before : before - now);
    return m->steps_left < 0 ? PCRE2_ERROR_CALLOUT : 0;
}

enum lk_code lk_pattern_matcher_init(struct pattern_matcher *matcher, size_t length) {
    *matcher = (struct pattern_matcher){.steps_left = (int64_t)length * STEPS_PER_BYTE + STEPS_AT_LEAST};
    pcre2_general_context *general = pcre2_general_context_create(context_malloc, context_free, NULL);
    if (general) {
        matcher->data = pcre2_match_data_create(1, general);
        matcher->context = pcre2_match_context_create(general);
        matcher->counted = pcre2_match_context_create(general);
        matcher->stack = pcre2_jit_stack_create(32 << 10, JIT_STACK_MAX, general);
    }
    pcre2_general_context_free(general);
    if (!matcher->data || !matcher->context || !matcher->counted) {
        lk_pattern_matcher_free(matcher);
        return no_memory();
    }
    pcre2_set_match_limit(matcher->context, FIRST_LIMIT);
    pcre2_set_match_limit(matcher->counted, UINT32_MAX);
    pcre2_set_heap_limit(matcher->counted, HEAP_LIMIT_KIB);
    pcre2_set_callout(matcher->counted, count_steps, matcher);
    if (matcher->stack) {
        pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
        pcre2_jit_stack_assign(matcher->counted, NULL, matcher->stack);
    }
    return LK_OK;
}

void lk_pattern_matcher_free(struct pattern_matcher *matcher) {
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    pcre2_match_context_free(matcher->counted);
    pcre2_jit_stack_free(matcher->stack);
    *matcher = (struct pattern_matcher){0};
}

struct pattern_iterator lk_pattern_begin(const struct pattern *pattern, struct pattern_matcher *matcher,
                                         const char *text, size_t length) {
    return (struct pattern_iterator){.pattern = pattern, .matcher = matcher, .text = text, .length = length};
}

/* The second attempt, on the whole text, counting. */
static int match_counted(const struct pattern_iterator *it, size_t at) {
    struct pattern_matcher *m = it->matcher;
    m->last_position = at;
    int n = pcre2_match(it->pattern->counted, (PCRE2_SPTR)it->text, it->length, at, PCRE2_NO_UTF_CHECK, m->data,
                        m->counted);
    if (n != PCRE2_ERROR_JIT_STACKLIMIT) return n;
    return pcre2_match(it->pattern->counted, (PCRE2_SPTR)it->text, it->length, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       m->data, m->counted);
}

/* Matches at exactly `at`. *end is SIZE_MAX when there is no match. */
static enum lk_code match_here(const struct pattern_iterator *it, size_t at, size_t *end) {
    struct pattern_matcher *m = it->matcher;
    size_t window = it->length;
    uint32_t options = PCRE2_NO_UTF_CHECK;
    if (it->length - at > FIRST_WINDOW) {
        window = at + FIRST_WINDOW;
        while ((it->text[window] & 0xc0) == 0x80) window--;
        options |= PCRE2_PARTIAL_HARD; /* says so when it would look past the window */
    }
    int n = pcre2_match(it->pattern->code, (PCRE2_SPTR)it->text, window, at, options, m->data, m->context);
    if (n < 0 && n != PCRE2_ERROR_NOMATCH) n = match_counted(it, at);
    *end = n >= 0 ? pcre2_get_ovector_pointer(m->data)[1] : SIZE_MAX;
    if (n >= 0) return LK_OK;
    switch (n) {
    case PCRE2_ERROR_NOMATCH:
        return LK_OK;
    case PCRE2_ERROR_CALLOUT:
        return lk_fail(
            LK_E_PROMPT,
            "prompt: byte %zu: splitting the text takes more than the %d steps a byte that are allowed; shorten "
            "its longest run of like characters",
            at, STEPS_PER_BYTE);
    case PCRE2_ERROR_NOMEMORY:
        return no_memory();
    case PCRE2_ERROR_HEAPLIMIT:
        return lk_fail(LK_E_PROMPT, "prompt: byte %zu: splitting the text takes more than %u MiB; shorten it", at,
                       HEAP_LIMIT_KIB >> 10);
    default:
        return lk_fail(LK_E_INTERNAL, "tokenizer: pattern matching failed with PCRE2 code %d", n);
    }
}

enum lk_code lk_pattern_next(struct pattern_iterator *it, bool *found, size_t *start, size_t *end) {
    *found = false;
    while (it->at <= it->length) {
        enum lk_code rc = match_here(it, it->at, end);
        if (rc) return rc;
        bool empty_again = *end == it->at && it->any && it->last_end == *end;
        if (*end != SIZE_MAX && !empty_again) {
            *start = it->at;
            it->at = it->last_end = *end;
            it->any = *found = true;
            return LK_OK;
        }
        uint32_t c;
        size_t n = lk_utf8_decode(it->text + it->at, it->length - it->at, &c);
        it->at += n ? n : 1;
    }
    return LK_OK;
}
