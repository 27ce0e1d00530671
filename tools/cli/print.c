#include "tools/cli/print.h"

void cli_print_text(FILE *out, const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        /* U+0080 to U+009F are control characters too; in UTF-8 they begin with 0xc2. */
        int c1 = *c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
        if (*c < 0x20 || *c == 0x7f || c1)
            fprintf(out, "\\x%02x", c1 ? *++c : *c);
        else
            fputc(*c, out);
    }
}

const char *cli_bytes(uint64_t bytes, char out[32]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++) value /= 1024;
    snprintf(out, 32, unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}
