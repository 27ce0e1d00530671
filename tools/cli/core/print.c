#include "tools/cli/cli.h"

#include "engine/base/log.h"
#include "eval/document/table.h"

void cli_print_text(FILE *out, const char *text) { lk_log_text(out, text, false); }

enum lk_code cli_print_table(const struct lk_table *table, bool json) {
    struct lk_text text = {0};
    (json ? lk_table_json : lk_table_markdown)(table, &text);
    if (!text.rc) fwrite(text.bytes, 1, text.n, stdout);
    return lk_text_free(&text);
}

const char *cli_bytes(uint64_t bytes, char out[32]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++) value /= 1024;
    snprintf(out, 32, unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

const char *cli_count(uint64_t count, char out[32]) {
    static const char *const units[] = {"", " K", " M", " G", " T"};
    double value = (double)count;
    int unit = 0;
    for (; value >= 1000 && unit < 4; unit++) value /= 1000;
    snprintf(out, 32, unit ? "%.2f%s" : "%.0f%s", value, units[unit]);
    return out;
}
