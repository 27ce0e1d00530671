/* Exports of survey platforms as records of plain fields, within lk_records:
 *   Amazon Mechanical Turk  columns Input.NAME and Answer.NAME are NAME; buttons that are a column each (Answer.NAME.4
 * = true) and Answer.taskAnswers (JSON) are NAME = 4; a rejected assignment says so Qualtrics               the second
 * and third head line are no records; previews, spam and what is not finished Label Studio            JSON: each
 * annotation of a task is a record of the task's data and its own results; JSON-MIN:
 *                           {"choices": ["4"]} is 4; a skipped annotation is not finished
 * Prolific and Google Forms export plain tables. */
#pragma once

#include "eval/scores/fields.h"

/* After the header of a table has been read. LK_E_NOMEM. */
enum lk_code lk_platform_open(struct lk_records *records);
/* The row in records->fields is another head line. */
bool lk_platform_is_head(const struct lk_records *records);
/* Names, answers and state of the row in records->fields; *bad with a message for one that is not understood. */
enum lk_code lk_platform_row(struct lk_records *records, bool *bad);
/* The same of an object, whose text is given. LK_E_JSON*, LK_E_NOMEM. */
enum lk_code lk_platform_object(struct lk_records *records, const char *text, size_t n);
/* Further records of the last object. */
bool lk_platform_more(const struct lk_records *records);
enum lk_code lk_platform_next(struct lk_records *records, bool *bad);

/* In fields.c, for platforms.c. */
enum lk_code lk_fields_add(struct lk_fields *fields, const char *name, char kind, const char *text, size_t n);
bool lk_fields_add_object(struct lk_fields *fields, struct lk_json *j, const char *prefix);
void lk_fields_reset(struct lk_fields *fields);
