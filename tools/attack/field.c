#include "tools/attack/campaign.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

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
