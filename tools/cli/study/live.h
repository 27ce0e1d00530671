/* serve study: the pages of a run while it goes on. They change nothing. */
#pragma once

#include "tools/cli/study/local.h"
#include "tools/cli/study/runner.h"

enum { LIVE_PICTURES = 12, LIVE_FAILURES = 20 };
#define LIVE_PREVIEW "preview.png" /* in the run's folder: where study run --preview puts what the page shows */

struct live_site {
    struct local_site site; /* of live_local_site */
    const char *folder;
    int64_t (*now)(void);
};
extern const struct local_site live_local_site;

/* What a page shows. */
struct live_view {
    struct lk_journal_counts counts;
    struct live_picture {
        int64_t index, ended_ms;
        char name[LK_STUDY_NAME_BYTES], digest[9];
    } latest[LIVE_PICTURES]; /* the last one first */
    int n_latest, n_failures;
    struct lk_text failures; /* of the first of them, as lines of a list */
    double per_hour;         /* over the last hour, or as long as it has run in that; 0: none */
    int64_t now_ms;
    char preview[48];   /* "step 3 of 8" of the job in hand, as LIVE_PREVIEW says it; "": none */
    int64_t preview_ms; /* when it was written */
};
void live_page(const struct live_site *site, const struct live_view *view, struct lk_text *out);
