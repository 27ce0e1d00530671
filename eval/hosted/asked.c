#include "eval/hosted/asked.h"

#include <string.h>

#include "eval/document/table_print.h"

static const char *const outcomes[LK_N_OUTCOMES] = {"made", "refused", "placeholder", "fault"};
static const struct {
    const char *key;
    bool number;
} cells[LK_N_ASKED_CELLS] = {[LK_ASKED_STAGE] = {"stage", false},
                             [LK_ASKED_CODE] = {"code", false},
                             [LK_ASKED_HTTP_STATUS] = {"http_status", true},
                             [LK_ASKED_WORDS] = {"words", false},
                             [LK_ASKED_REQUEST_ID] = {"request_id", false},
                             [LK_ASKED_LATENCY_MS] = {"latency_ms", true},
                             [LK_ASKED_REVISED_PROMPT] = {"revised_prompt", false},
                             [LK_ASKED_N_SENT] = {"n_sent", true},
                             [LK_ASKED_AT] = {"asked_at", false},
                             [LK_ASKED_API_MODEL] = {"api_model", false}};

const char *lk_outcome_key(int outcome) { return outcomes[outcome]; }
const char *lk_asked_key(int cell) { return cells[cell].key; }

int lk_outcome_parse(const char *text) {
    if (!*text) return LK_OUTCOME_MADE;
    for (int i = 0; i < LK_N_OUTCOMES; i++)
        if (!strcmp(text, outcomes[i])) return i;
    return -1;
}

void lk_asked_csv_header(struct lk_text *out) {
    lk_text_add(out, ",outcome");
    for (int i = 0; i < LK_N_ASKED_CELLS; i++) lk_text_add(out, ",%s", cells[i].key);
}

void lk_asked_csv(const struct lk_asked *asked, struct lk_text *out) {
    lk_text_add(out, ",%s", outcomes[asked->outcome]);
    for (int i = 0; i < LK_N_ASKED_CELLS; i++) {
        lk_text_add(out, ",");
        if (asked->cells[i]) lk_print_csv_field(out, asked->cells[i], "");
    }
}

void lk_asked_json(const struct lk_asked *asked, struct lk_text *out) {
    lk_text_add(out, "{\"outcome\":\"%s\"", outcomes[asked->outcome]);
    for (int i = 0; i < LK_N_ASKED_CELLS; i++) {
        const char *text = asked->cells[i];
        if (!text || !*text) continue;
        lk_text_add(out, ",\"%s\":", cells[i].key);
        if (cells[i].number && !text[strspn(text, "0123456789")])
            lk_text_add(out, "%s", text);
        else
            lk_text_json(out, text);
    }
    lk_text_add(out, "}");
}
