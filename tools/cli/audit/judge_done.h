/* What earlier runs of a judge have asked: the items of its file of answers. */
#pragma once

#include <stdbool.h>

#include "engine/base/store.h"
#include "tools/cli/audit/judge_record.h"

struct judge_done {
    struct lk_store texts;
    char **list; /* "ITEM ORDER", sorted */
    size_t n, capacity;
    /* Whether the picture of this digest is the item's; answers about another are none. NULL: all are. */
    bool (*is_shown)(const void *pictures, const char *item_id, const char *sha256);
    const void *pictures;
};

/* Adds the items of a file, which may be missing. LK_E_CHANGED: a line of another judge, or one that was asked
 * otherwise than `record` says. mend: a last line that was cut off is taken away. */
enum lk_code judge_done_read(struct judge_done *done, const struct judge_record *record, const char *path, bool mend);
/* bad: and has no answer but a failure or a refusal. */
bool judge_is_done(const struct judge_done *done, const char *item_id, const char *order, bool bad);
/* Moves the answers about other pictures from the file to the end of FILE.earlier, where nobody counts them. */
enum lk_code judge_done_set_aside(const struct judge_done *done, const char *path);
void judge_done_free(struct judge_done *done);
