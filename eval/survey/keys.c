/* The keys of a survey's file, each described once: what is not here is refused, and `help survey-file` prints them. */
#include <string.h>

#include "engine/base/text.h"
#include "eval/survey/study.h"

static const struct key {
    const char *name, *help;
} keys[] = {
    {"study", "the survey's name, which codes are made with"},
    {"schema", "of later versions; not read"},
    {"protocol", "questions, rules and pay: 003, 001, 000 or 004 [003]"},
    {"experiment", "1, an edit; 2, two edits of one source; 3, a picture of two people [003: 2, else 1]"},
    {"seed", "tasks, orders and sides are drawn with it [42]"},
    {"items",
     "what raters see: a list of {\"id\", \"source\", \"edited\", and of experiment 2 \"preserved\", of experiment 3 "
     "\"second_source\"; \"prompt\", unless the id names one of the portrait study}; pictures lie below this file's "
     "folder"},
    {"item_ids", "portrait, ids as flux_20s_male_white_O-01; plain, ids that say nothing [portrait]"},
    {"packing", "random; blocked, items stay in their order [random]"},
    {"tasks", "how many tasks the items are cut into [10]"},
    {"places", "how many people do each task [3; with shared_percent 1]"},
    {"shared_percent", "so much of the items lies in several tasks, the rest in one [0]"},
    {"shared_raters", "in how many tasks [3]"},
    {"tasks_per_worker", "how many tasks one person may do [1]"},
    {"gold",
     "items whose answers are known, a list or a file's name: as items, with \"expected\", and of experiment 3 with "
     "\"occupation\"; `survey gold` makes them"},
    {"gold_per_task", "[000 and 004: 4, of experiment 3: 2; else 0]"},
    {"gold_deal", "balanced, each is used as often as any other; drawn, as version 0.1.0 did it [balanced]"},
    {"checks_per_task", "questions that name the option to select, at most 5 [001: 3, else 0]"},
    {"tutorial",
     "practice items, a list or a file's name: as gold, with \"feedback\"; `survey new` makes them, and 001 needs 3 to "
     "5"},
    {"claim_minutes", "a place is given back when nothing was answered for so long [000 and 004: 20, else 120]"},
    {"min_seconds", "for each question; an earlier answer is not taken [001: 5, else 0]"},
    {"minutes", "how long a task takes, as consent says it [the protocol's]"},
    {"pay", "dollars for a task, as consent says it [the protocol's]"},
    {"code", "one completion code for everybody [one for each]"},
    {"approval", "of the ethics board, as consent says it; a server needs it, as the next two"},
    {"investigator", "as consent says it"},
    {"contact", "as consent says it"},
    {"attribution", "whose the portraits are, as guide and export say it"},
    {"retain_until", "when the data are deleted, as consent and export say it"},
    {"texts", "a JSON file of words that take the place of the pages' own"},
    {"skin_scale", "bipolar; printed, the ends that the supplement prints [bipolar]"},
    {"exp2_option", "of 001: A, the two pictures compared; B, five questions about each [A]"},
    {"q3_version", "of 001, experiment 3: B, how expected somebody looks; A, asks about stereotypes by name [B]"},
    {"show_metadata", "race, gender and age of the source beside it [003: true, else false]"},
    {"fixed_sides", "the edited picture always on the left [false]"},
    {"show_arm_labels", "with its name [false]"},
    {"consent_first", "before the guide [000: true, else false]"},
    {"host", "the public name behind a proxy"},
    {"signed_links", "only links of `survey links` enter [false]"},
    {"entries_per_hour", "new people of all [1000]"},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

bool lk_survey_key_known(const char *name) {
    for (int i = 0; i < N_KEYS; i++)
        if (!strcmp(keys[i].name, name)) return true;
    return false;
}

enum lk_code lk_survey_explain(struct lk_text *out) {
    lk_text_add(out,
                "A survey's file is one JSON object, as `likeness survey new` writes it. Its keys, with what holds "
                "without them in brackets:\n\n");
    for (int i = 0; i < N_KEYS; i++) {
        lk_text_add(out, "  %s\n", keys[i].name);
        for (const char *at = keys[i].help; *at;) { /* lines of at most 90 */
            size_t n = strlen(at);
            if (n > 90)
                for (n = 90; n > 1 && at[n] != ' ';) n--;
            lk_text_add(out, "      %.*s\n", (int)n, at);
            at += n + (at[n] == ' ');
        }
    }
    return out->rc;
}
