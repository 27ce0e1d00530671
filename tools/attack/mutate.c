#include <ctype.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tools/attack/campaign.h"

/* Errors that have no field to name, known by their words: any other one without a field is found. */
static const struct exception {
    const char *words, *why;
} exceptions[] = {
    {"truncated", "the file ends too early: what is missing has no name"},
    {"download the file again", "the file ends too early: its length is named"},
    {"expected a JPEG, PNG, WebP, TIFF or BMP by its first bytes", "not of this format"},
    {"not a safetensors file", "not of this format"},
    {"expected a PNG, got another kind of file", "not of this format"},
    {"file is not a database", "not of this format"},
    {"unsupported file format", "not of this format: SQLite says no more"},
    {"database disk image is malformed", "SQLite says no more of a damaged page"},
    {"got an empty file", "nothing is in it"},
    {"no line names a file that is in", "nothing is in it that could be a record"},
    {", got none", "nothing is in it that could be a record"},
    {"expected at most 4096 bytes, got", "larger than any such file: it is not read"},
    {"expected an edited picture of the source's shape", "two pictures that do not fit: their sizes are named"},
    {"structural similarity: expected sides of", "a picture that is too small: its sizes are named"},
    {"the store holds answers to another study (", "two files that do not fit: what may differ is named"},
    {"no study was run here", "SQLite takes an empty file for a new journal"},
    {"are not done: ", "lines that are missing: what they would speak of is named"},
    {"pictures are gone or changed", "the lines on stdout name each picture"},
    {"are not what they should be", "the table on stdout names each file"},
};
enum { N_EXCEPTIONS = sizeof exceptions / sizeof *exceptions };
_Static_assert(sizeof exceptions / sizeof *exceptions <= ATTACK_MAX_EXCEPTIONS, "room in the counts");

/* What a message has in front of a field, or the field itself where the format has few; "#" is a digit. */
static const char *const places[][20] = {
    [ATTACK_JSON] = {"line #", "byte #", "field \"", "field: \"", "fields: \"", "tensor \""},
    [ATTACK_TABLE] = {"line #", "byte #", "column \"", "--"},
    [ATTACK_SAFETENSORS] = {"byte #", "tensor \"", "tensors # ", "header size: ", "the header has #"},
    [ATTACK_PNG] = {"IHDR", "PLTE", "IDAT", "IEND", "tRNS", "tEXt", "zTXt", "iTXt", "byte #", "text chunk \"",
                    "field \"", "field: \"", ": the CRC is wrong", ": CRC error", ": unhandled critical chunk",
                    "invalid chunk type", "width, height: "},
    [ATTACK_JPEG] = {"SOI", "SOF", "DHT", "DQT", "DRI", "SOS", "APP", "marker 0", "width, height: "},
    [ATTACK_BINARY] = {"malformed database schema (", "its configuration is ",
                       "another configuration than it was made with: ", "no such column: ", "no such table: ", "line #",
                       "byte #", "field \""},
    [ATTACK_DATABASE] = {"malformed database schema (", "no such column: ", "no such table: ", "byte #", "table ",
                         "row #", "Page #", "page #", " index ", "Freelist", "NULL value in ",
                         "its tables are not a survey's", "expected a survey's tables"},
    [ATTACK_CONFIG] = {"line #", "byte #", "field \"", "field: \"", "fields: \"", "configs.", "row #"},
};

static const char *find(const char *text, const char *what, size_t n) { return memmem(text, strlen(text), what, n); }

static bool has_place(const char *text, const char *place) {
    size_t n = strcspn(place, "#");
    for (const char *at = text; (at = find(at, place, n)); at += n)
        if (!place[n] || isdigit((unsigned char)at[n])) return true;
    return false;
}

/* Whether the text names the n bytes: "name", name: or name[. */
static bool has_name(const char *text, const char *name, size_t n) {
    for (const char *at = text; n && (at = find(at, name, n)); at++) {
        bool first = at == text || strchr(" \".", at[-1]);
        if (first && (at[n] == ':' || at[n] == '[' || (at[n] == '"' && at > text && at[-1] == '"'))) return true;
    }
    return false;
}

/* Names are the keys of objects, the tensors in a header among them, and the cells of a table's first line. */
static bool names_one_of(const char *text, const struct attack_bytes *file, enum attack_form form) {
    const char *at = (const char *)file->data, *end = at + file->n, *from = at;
    for (; form == ATTACK_TABLE && at < end && (at == from || at[-1] != '\n'); at++)
        if (*at == ',' || *at == '\n') {
            if (has_name(text, from, (size_t)(at - from))) return true;
            from = at + 1;
        }
    for (; (form == ATTACK_JSON || form == ATTACK_CONFIG || form == ATTACK_SAFETENSORS) && at + 1 < end; at++)
        if (*at == '"') {
            if (at[1] == ':' && has_name(text, from, (size_t)(at - from))) return true;
            from = at + 1;
        }
    return false;
}

/* Whether the n bytes of a message, as far as they needed no escape, stand in the command line; a space may be the end
 * of a word. */
static bool has_words(const struct attack_bytes *words, const char *what, size_t n) {
    if (n > 200) n = 200; /* longer ones are cut off in messages */
    for (size_t i = 0; i < n; i++)
        if (what[i] == '\\' || what[i] & 0x80) n = i;
    for (size_t at = 0, i; at + n <= words->n; at++) {
        for (i = 0; i < n && (words->data[at + i] == what[i] || (words->data[at + i] == '\n' && what[i] == ' ')); i++) {
        }
        if (i == n) return true;
    }
    return false;
}

/* Of a command line the word itself is the field: the error begins with it, the command before it or not, or quotes it.
 */
static bool names_word_of(const char *errors, const struct attack_bytes *words) {
    const char *name = strstr(errors, "error: ") + strlen("error: "), *quote = strchr(name, '"');
    size_t n = strcspn(name, ":\n"), last = n;
    while (last && name[last - 1] != ' ') last--;
    return !strncmp(name, "expected a command", 18) || has_words(words, name + last, n - last) ||
           (quote && has_words(words, quote + 1, strcspn(quote + 1, "\"\n")));
}

bool attack_names_field(const char *errors, const struct attack_target *t, const struct attack_bytes *undamaged,
                        const struct attack_bytes *damaged, unsigned long *excepted) {
    for (size_t i = 0; i < sizeof *places / sizeof **places && places[t->form][i]; i++)
        if (has_place(errors, places[t->form][i])) return true;
    if (*t->command == '@' && names_word_of(errors, damaged)) return true;
    if (names_one_of(errors, undamaged, t->form) || names_one_of(errors, damaged, t->form)) return true;
    for (int i = 0; i < N_EXCEPTIONS; i++)
        if (strstr(errors, exceptions[i].words)) {
            excepted[i]++;
            return true;
        }
    return false;
}

void attack_print_exceptions(const unsigned long *excepted) {
    for (int i = 0; i < N_EXCEPTIONS; i++)
        if (excepted[i])
            printf("  %lu without a field: \"%s\": %s\n", excepted[i], exceptions[i].words, exceptions[i].why);
}

/* A value of an SQLite file, changed as another program would: by a statement. The file stays whole. */

static size_t below(uint64_t *state, size_t n) { return n ? (size_t)(attack_random(state) % n) : 0; }

/* The rows of a query, one text each; one of them at random. "" without any. */
static void one_of(sqlite3 *db, const char *sql, uint64_t *state, char out[80]) {
    sqlite3_stmt *q;
    size_t n = 0;
    *out = '\0';
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL)) return;
    while (sqlite3_step(q) == SQLITE_ROW)
        if (!below(state, ++n)) snprintf(out, 80, "%s", (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
}

static void change_value(sqlite3 *db, uint64_t *state) {
    static const char *const values[] = {"NULL",
                                         "-1",
                                         "0",
                                         "1",
                                         "7",
                                         "1e300",
                                         "''",
                                         "'x'",
                                         "x'ff00c3'",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "'<b>'",
                                         "hex(zeroblob(5000))"};
    char table[80], column[80], row[80], sql[500];
    one_of(db, "SELECT name FROM sqlite_master WHERE type='table'", state, table);
    snprintf(sql, sizeof sql, "SELECT name FROM pragma_table_info('%s')", table);
    one_of(db, sql, state, column);
    snprintf(sql, sizeof sql, "SELECT rowid FROM \"%s\"", table);
    one_of(db, sql, state, row);
    if (below(state, 8))
        snprintf(sql, sizeof sql, "UPDATE OR IGNORE \"%s\" SET \"%s\"=%s WHERE rowid=%s", table, column,
                 values[below(state, sizeof values / sizeof *values)], row);
    else
        snprintf(sql, sizeof sql, "DELETE FROM \"%s\" WHERE rowid=%s", table, row);
    sqlite3_exec(db, sql, NULL, NULL, NULL);
}

void attack_mutate_database(struct attack_bytes *b, uint64_t *state) {
    sqlite3 *db;
    sqlite3_int64 n = 0;
    unsigned char *copy = sqlite3_malloc64(b->n + 1), *after = NULL;
    if (!copy || sqlite3_open(":memory:", &db)) abort();
    memcpy(copy, b->data, b->n);
    if (!sqlite3_deserialize(db, "main", copy, (sqlite3_int64)b->n, (sqlite3_int64)b->n,
                             SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)) {
        change_value(db, state);
        after = sqlite3_serialize(db, "main", &n, 0);
    }
    if (after && n) {
        uint8_t *data = realloc(b->data, (size_t)n + 1);
        if (!data) abort();
        memcpy(data, after, (size_t)n);
        *b = (struct attack_bytes){data, (size_t)n};
    }
    sqlite3_free(after);
    sqlite3_close(db);
}

uint64_t attack_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The bytes from `at`, n_old of them, become n_new others. */
static void splice(struct attack_bytes *b, size_t at, size_t n_old, const void *bytes, size_t n_new) {
    uint8_t *data = malloc(b->n - n_old + n_new + 1);
    if (!data) abort();
    memcpy(data, b->data, at);
    if (n_new) memcpy(data + at, bytes, n_new);
    memcpy(data + at + n_new, b->data + at + n_old, b->n - at - n_old);
    free(b->data);
    b->data = data;
    b->n += n_new - n_old;
}

/* A character cut in its middle, as a limit of bytes cuts it. */
static void cut_character(struct attack_bytes *b, uint64_t *state) {
    static const char *const halves[] = {"\xc3", "\xe2\x82", "\xf0\x9f\x98", "\x80", "\xed\xa0\x80"};
    const char *half = halves[below(state, sizeof halves / sizeof *halves)];
    splice(b, below(state, b->n + 1), 0, half, strlen(half));
}

static void mutate_bytes(struct attack_bytes *b, uint64_t *state) {
    size_t at = below(state, b->n), n = 1 + below(state, 64);
    if (n > b->n - at) n = b->n - at;
    uint8_t byte = (uint8_t)attack_random(state), *copy = malloc(n + 1);
    if (!copy) abort();
    memcpy(copy, b->data + at, n);
    switch (b->n ? below(state, 5) : 4) {
    case 0:
        b->data[at] ^= (uint8_t)(1u << below(state, 8));
        break;
    case 1:
        splice(b, at, n, NULL, 0);
        break;
    case 2:
        splice(b, at, 0, copy, n);
        break;
    case 3:
        b->n = at; /* cut off */
        break;
    default:
        splice(b, at, 0, &byte, 1);
    }
    free(copy);
}

static const char *const hostile[] = {
    "-1",
    "0",
    "1",
    "-0",
    "1e308",
    "-1e308",
    "1e999",
    "1e-320",
    "NaN",
    "nan",
    "inf",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "0.1",
    "65536",
    "1000000007",
    "\"a\\u0000b\"",
    "\"\\ud800\"",
    "\"..\\/..\\/x\"",
    "=1+1",
    "\"",
    ",",
    "\n",
    "\r",
    "\xff\xfe",
    "\xef\xbb\xbf",
    "\xe2\x80\xae",
    "\x1b[2J",
    "NA",
    "O-01",
    "edited",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "1,2,3",
    "..",
};

/* One of the list, or something long. */
static void put_hostile(struct attack_bytes *b, size_t at, size_t n_old, uint64_t *state) {
    size_t i = below(state, sizeof hostile / sizeof *hostile + 2), n = sizeof hostile / sizeof *hostile;
    if (i < n) {
        splice(b, at, n_old, hostile[i], strlen(hostile[i]));
        return;
    }
    size_t length = (size_t)1 << (4 + below(state, 13));
    char *text = malloc(length);
    if (!text) abort();
    memset(text, i == n ? '[' : '7', length);
    splice(b, at, n_old, text, length);
    free(text);
}

/* The token of JSON at or behind a place: a string with its quotes, a number or a word. */
static bool json_token(const struct attack_bytes *b, size_t *from, size_t *to) {
    const uint8_t *d = b->data;
    size_t i = *from;
    while (i < b->n && d[i] != '"' && d[i] != '-' && !isalnum(d[i])) i++;
    if (i >= b->n) return false;
    *from = i++;
    if (d[*from] == '"') {
        while (i < b->n && d[i] != '"') i += d[i] == '\\' ? 2 : 1;
        i++;
    } else {
        while (i < b->n && (isalnum(d[i]) || d[i] == '.' || d[i] == '-' || d[i] == '+')) i++;
    }
    *to = i < b->n ? i : b->n;
    return true;
}

static void mutate_json(struct attack_bytes *b, uint64_t *state) {
    size_t from = below(state, b->n), to;
    if (!json_token(b, &from, &to)) return;
    size_t end = to; /* of the member, with the comma behind it */
    while (end < b->n && b->data[end] != ',' && b->data[end] != '}' && b->data[end] != '\n') end++;
    if (end < b->n && b->data[end] == ',') end++;
    uint8_t *copy = malloc(end - from + 1);
    if (!copy) abort();
    memcpy(copy, b->data + from, end - from);
    switch (below(state, 6)) {
    case 0:
        splice(b, from, end - from, NULL, 0);
        break;
    case 1:
        splice(b, from, 0, copy, end - from);
        break;
    default:
        put_hostile(b, from, to - from, state);
    }
    free(copy);
}

static void mutate_table(struct attack_bytes *b, uint64_t *state) {
    size_t at = below(state, b->n), from = at, to = at;
    bool line = below(state, 3) == 0;
    while (from && b->data[from - 1] != '\n' && (line || b->data[from - 1] != ',')) from--;
    while (to < b->n && b->data[to] != '\n' && (line || b->data[to] != ',')) to++;
    if (!line) {
        put_hostile(b, from, to - from, state);
        return;
    }
    if (to < b->n) to++;
    uint8_t *copy = malloc(to - from + 1);
    if (!copy) abort();
    memcpy(copy, b->data + from, to - from);
    bool twice = below(state, 2);
    splice(b, from, twice ? 0 : to - from, copy, twice ? to - from : 0);
    free(copy);
}

/* The header is damaged as JSON, and its length is right again, mostly. */
static void mutate_safetensors(struct attack_bytes *b, uint64_t *state) {
    uint64_t length = 0;
    if (b->n < 8) return;
    memcpy(&length, b->data, 8);
    if (length > b->n - 8) return;
    struct attack_bytes header = {malloc(length + 1), length};
    if (!header.data) abort();
    memcpy(header.data, b->data + 8, length);
    mutate_json(&header, state);
    splice(b, 8, length, header.data, header.n);
    length = below(state, 8) ? header.n : attack_random(state) >> below(state, 64);
    memcpy(b->data, &length, 8);
    free(header.data);
}

static void write_be32(uint8_t *to, uint64_t v) {
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static size_t read_be(const uint8_t *from, int n) {
    size_t v = 0;
    for (int i = 0; i < n; i++) v = v << 8 | from[i];
    return v;
}

/* Removes, repeats or damages the part [at, at + n) of a file made of such parts; what it holds begins at `inside`. */
static void mutate_part(struct attack_bytes *b, size_t at, size_t n, size_t inside, size_t n_inside, uint64_t *state) {
    uint8_t *copy = malloc(n + 1);
    if (!copy) abort();
    memcpy(copy, b->data + at, n);
    switch (below(state, 4)) {
    case 0:
        splice(b, at, n, NULL, 0);
        break;
    case 1:
        splice(b, at, 0, copy, n);
        break;
    default:
        for (size_t k = 1 + below(state, 4); k && n_inside; k--)
            b->data[inside + below(state, n_inside < 32 ? n_inside : 32)] =
                below(state, 2) ? (uint8_t)attack_random(state) : (uint8_t[]){0, 1, 0x7f, 0xff}[below(state, 4)];
    }
    free(copy);
}

/* A chunk, with its checksum made right again. */
static void mutate_png(struct attack_bytes *b, uint64_t *state) {
    size_t at = 8, chosen = 8, n_chunks = 0;
    for (; at + 12 <= b->n && read_be(b->data + at, 4) <= b->n - at - 12; at += 12 + read_be(b->data + at, 4))
        if (!below(state, ++n_chunks)) chosen = at;
    if (!n_chunks) return;
    size_t n = read_be(b->data + chosen, 4), before = b->n;
    mutate_part(b, chosen, 12 + n, chosen + 8, n, state);
    if (b->n == before && below(state, 8))
        write_be32(b->data + chosen + 8 + n, crc32(0, b->data + chosen + 4, (uInt)(n + 4)));
}

/* A segment before the scan. */
static void mutate_jpeg(struct attack_bytes *b, uint64_t *state) {
    size_t at = 2, chosen = 0, n_segments = 0;
    for (; at + 4 <= b->n && b->data[at] == 0xff && read_be(b->data + at + 2, 2) + 2 <= b->n - at;
         at += 2 + read_be(b->data + at + 2, 2)) {
        if (!below(state, ++n_segments)) chosen = at;
        if (b->data[at + 1] == 0xda) break;
    }
    if (!n_segments) return;
    size_t n = read_be(b->data + chosen + 2, 2) + 2;
    mutate_part(b, chosen, n, chosen + 2, n - 2, state);
}

/* Any bytes, mostly those of the first kilobyte, where most formats say what follows. */
static void mutate_binary(struct attack_bytes *b, uint64_t *state) {
    size_t n = b->n && below(state, 2) && b->n > 1024 ? 1024 : b->n;
    for (size_t k = 1 + below(state, 8); k && n; k--)
        b->data[below(state, n)] =
            below(state, 2) ? (uint8_t)attack_random(state) : (uint8_t[]){0, 1, 0x7f, 0xff}[below(state, 4)];
}

void attack_mutate(struct attack_bytes *bytes, enum attack_form form, uint64_t *state) {
    static void (*const mutators[])(struct attack_bytes *, uint64_t *) = {
        [ATTACK_JSON] = mutate_json,
        [ATTACK_TABLE] = mutate_table,
        [ATTACK_SAFETENSORS] = mutate_safetensors,
        [ATTACK_PNG] = mutate_png,
        [ATTACK_JPEG] = mutate_jpeg,
        [ATTACK_BINARY] = mutate_binary,
        [ATTACK_CONFIG] = mutate_json,
        [ATTACK_DATABASE] = attack_mutate_database,
    };
    for (size_t n = 1 + below(state, 3); n; n--)
        if (!below(state, 16) && (form == ATTACK_JSON || form == ATTACK_TABLE))
            cut_character(bytes, state);
        else if (below(state, 5))
            mutators[form](bytes, state);
        else
            mutate_bytes(bytes, state);
}
