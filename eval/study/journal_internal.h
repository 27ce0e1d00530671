/* Inside of a journal. Private to eval/study. */
#pragma once

#include "eval/study/journal.h"
#include "eval/study/sql.h"

struct lk_journal {
    struct lk_sql sql;
    char *path;
    char study[65];
    char owner[LK_JOURNAL_OWNER_BYTES];
    bool shuffled[LK_JOURNAL_MAX_MODELS];
};

/* Version 0.1 counted the models of a study, which were these. */
enum { LK_JOURNAL_FIRST_KEYS = 3 };
extern const char *const lk_journal_first_keys[LK_JOURNAL_FIRST_KEYS];

int64_t lk_journal_now_ms(void);
/* Whether the process that leased under this name is gone for sure: one of this machine that is not there. */
bool lk_journal_is_gone(const char *owner);
/* A value of the table `about`; "" when there is none. */
enum lk_code lk_journal_about(struct lk_journal *j, const char *name, char out[65]);
/* The manifest that was written last is no longer current. */
extern const char lk_journal_outdate[];
