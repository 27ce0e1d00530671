/* The files of a model, copied so that a test may change them, and what must then be refused. */
#pragma once

#include "tests/common/test.h"

/* Copies those of files (relative to `from`, NULL ends them) that `from` has to the folder test_path(NAME), removes the
 * others there, and gives that folder. */
const char *test_copy_files(const char *name, const char *from, const char *const *files);
/* A file of the last copy; in a static ring of 4 buffers. */
const char *test_copied(const char *file);
/* One key of a config of the copy set to the JSON `value`; NULL: removed. */
void test_set_key(const char *file, const char *key, const char *value);

/* Opens the copy, and gives back what it opened. */
typedef enum lk_code test_open(const char *folder);

struct test_change {
    const char *file, *key, *value; /* as of test_set_key */
    enum lk_code code;              /* 0: any of bad input */
    const char *part;               /* of the message; NULL: the key */
};

/* Each change alone is refused by a message that has its part. */
void test_changes_are_refused(test_open *open, const struct test_change *changes, size_t n);

struct test_keys {
    const char *const *files;    /* JSON configs of the copy, NULL ends them */
    const char *const *inert;    /* keys without meaning for inference, whatever they hold; NULL ends them */
    const char *const *optional; /* keys that may be absent; NULL ends them */
    bool optional_open;          /* without one the model opens; otherwise either answer is defined */
    test_open *open;
};

/* Each key of each config (and of its objects) mistyped, removed, and one unknown key added: the message names file and
 * key, and nothing stays live. Gives the number of variations. */
int test_every_key_counts(const struct test_keys *keys);
