#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

#include <inttypes.h>
#include <math.h>

struct lk_stream stats_stream(const char *statistic, int case_number) {
    char prefix[64];
    struct lk_stream stream;
    snprintf(prefix, sizeof prefix, "%s/", statistic);
    lk_stream_numbered(&stream, 42, prefix, (uint64_t)case_number);
    return stream;
}

static double value_of(struct lk_stream *stream, enum stats_kind kind) {
    double mantissa;
    switch (kind) {
    case STATS_MEANS:
        return (double)(3 + lk_stream_bounded(stream, 13)) / 3;
    case STATS_FINE:
        return ((double)lk_stream_bounded(stream, 1 << 20) - (1 << 19)) / 1024;
    case STATS_BINARY:
        return (double)lk_stream_bounded(stream, 2);
    case STATS_WIDE:
        mantissa = (double)lk_stream_bounded(stream, 1 << 20) - (1 << 19);
        return ldexp(mantissa, (int)lk_stream_bounded(stream, 41) - 20);
    case STATS_SCORES:
    case STATS_CONSTANT:
        break;
    }
    return (double)(1 + lk_stream_bounded(stream, 5));
}

void stats_values(struct lk_stream *stream, double *values, size_t n, enum stats_kind kind) {
    double constant = kind == STATS_CONSTANT ? value_of(stream, kind) : 0;
    for (size_t i = 0; i < n; i++) values[i] = kind == STATS_CONSTANT ? constant : value_of(stream, kind);
}

uint64_t stats_checksum(uint64_t hash, const double *numbers, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        for (int byte = 0; byte < 8; byte++) hash = (hash ^ (bits >> 8 * byte & 0xff)) * 0x100000001b3u;
    }
    return hash;
}

static size_t count(const char *text, size_t n, char wanted) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++) found += text[i] == wanted;
    return found;
}

void stats_golden_open(struct stats_golden *golden, const char *name, size_t n_columns) {
    char path[256];
    snprintf(path, sizeof path, "golden/data/stats/%s.csv", name);
    stats_golden_open_path(golden, path, n_columns);
    golden->name = name;
}

void stats_golden_open_path(struct stats_golden *golden, const char *path, size_t n_columns) {
    size_t n_bytes;
    char *text = test_read(path, &n_bytes), *at = text;
    *golden = (struct stats_golden){.name = path, .n_columns = n_columns};
    golden->values = malloc(count(text, n_bytes, '\n') * n_columns * sizeof(double));
    for (char *line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at)) {
        if (sscanf(line, "# inputs %" SCNx64, &golden->inputs) == 1 || *line == '#') continue;
        if (!strncmp(line, "case,", 5)) {
            assert_int_equal(count(line, strlen(line), ','), n_columns);
            continue;
        }
        char *end;
        assert_int_equal(strtoull(line, &end, 10), golden->n_cases);
        for (size_t c = 0; c < n_columns; c++) {
            assert_true(*end == ',');
            golden->values[golden->n_cases * n_columns + c] = strtod(end + 1, &end);
        }
        assert_true(*end == 0);
        golden->n_cases++;
    }
    assert_true(golden->n_cases > 0 && golden->inputs);
    free(text);
}

const double *stats_row(const struct stats_golden *golden, int case_number) {
    return golden->values + (size_t)case_number * golden->n_columns;
}

void stats_golden_close(struct stats_golden *golden) { free(golden->values); }

void stats_golden_finish(struct stats_golden *golden, uint64_t checksum) {
    stats_golden_close(golden);
    if (checksum != golden->inputs) fail_msg("%s: other inputs than the peer had", golden->name);
}

void stats_assert_close(const char *what, int case_number, double got, double expected, double relative,
                        double absolute) {
    double allowed = fmax(relative * fabs(expected), absolute);
    if (isnan(expected) ? !isnan(got) : !(got == expected || fabs(got - expected) <= allowed))
        fail_msg("%s, case %d: expected %.17g, got %.17g (relative error %.2g, bound %.2g)", what, case_number,
                 expected, got, fabs(got - expected) / fabs(expected), relative);
}

void stats_assert_value(const char *what, int case_number, double got, double expected) {
    stats_assert_close(what, case_number, got, expected, 1e-10, 1e-12);
}

void stats_assert_p(const char *what, int case_number, double got, double expected) {
    stats_assert_close(what, case_number, got, expected, 1e-8, 0);
}
