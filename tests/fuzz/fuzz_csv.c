/* CSV by itself and as a long score table. What is accepted must read the same when it is written again. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/scores/csv.h"
#include "eval/scores/long_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

static void read_plain(const uint8_t *bytes, size_t size) {
    struct lk_csv csv;
    if (lk_csv_open(&csv, bytes, size, "input")) {
        check(*lk_error_text());
        return;
    }
    for (bool more = true; more;) {
        size_t line = csv.line;
        if (lk_csv_next(&csv, &more)) {
            check(strstr(lk_error_text(), "line ") != NULL);
            break;
        }
        check(!more || csv.line > line);
        for (size_t i = 0; more && i < csv.n_columns; i++) check(strlen(lk_csv_cell(&csv, (int)i)) == csv.cells[i].n);
    }
    lk_csv_close(&csv);
}

static void read_table(const uint8_t *bytes, size_t size) {
    struct lk_dataset first, second;
    struct lk_long_report report;
    lk_dataset_init(&first);
    lk_dataset_init(&second);
    if (!lk_long_table_read(&first, (const char *)bytes, size, "input", &report)) {
        char *text, *again;
        size_t n, n_again;
        check(!lk_long_table_write(&first, "", &text, &n));
        check(!lk_long_table_read(&second, text, n, "written", &report));
        check(!lk_long_table_write(&second, "", &again, &n_again));
        check(n == n_again && !memcmp(text, again, n));
        lk_free(text);
        lk_free(again);
    }
    lk_dataset_free(&first);
    lk_dataset_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_plain(data, size);
    read_table(data, size);
    check(lk_alloc_live() == 0);
    return 0;
}
