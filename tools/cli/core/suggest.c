#include "tools/cli/core/options.h"

#include <string.h>

#define MAX_LENGTH 40

static int min3(int a, int b, int c) {
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap of neighbours) from a to b; large for long words. */
static int distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n > MAX_LENGTH || m > MAX_LENGTH) return MAX_LENGTH;
    int d[MAX_LENGTH + 1][MAX_LENGTH + 1];
    for (size_t i = 0; i <= n; i++) d[i][0] = (int)i;
    for (size_t j = 0; j <= m; j++) d[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            int replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, replace);
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && d[i - 2][j - 2] + 1 < d[i][j]) d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[n][m];
}

const char *cli_suggest(const char *typed, const char *const *names, size_t n_names) {
    const char *best = NULL;
    size_t length = strlen(typed);
    int limit = length < 4 ? 1 : 1 + (int)length / 4; /* a word of 8 may be 3 edits away */
    for (size_t i = 0; i < n_names; i++) {
        int d = distance(typed, names[i]);
        /* What begins a long name is an abbreviation of it. */
        if (length >= 4 && !strncmp(typed, names[i], length)) d = 1;
        if (d > limit) continue;
        limit = d - 1;
        best = names[i];
    }
    return best;
}
