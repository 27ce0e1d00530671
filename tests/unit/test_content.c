/* What a file is by its first bytes: every kind that people hand over by mistake is named, and what is right is not
 * called anything else. */
#include "engine/base/content.h"

#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/image/image.h"
#include "eval/scores/csv.h"
#include "tests/common/test.h"
#include "weights/checkpoint.h"

#define CASE(bytes, name)                                                                                              \
    { bytes, sizeof(bytes) - 1, name, }

static const struct {
    const char *bytes;
    size_t n;
    const char *name;
} cases[] = {
    CASE("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 5\n", "git lfs pull"),
    CASE("oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n", "git lfs pull"),
    CASE("\0\0\0\x18"
         "ftypheic\0\0\0\0mif1heic",
         "HEIC"),
    CASE("\0\0\0\x18"
         "ftypheix\0\0\0\0",
         "HEIC"),
    CASE("\0\0\0\x18"
         "ftyphevc\0\0\0\0",
         "HEIC"),
    CASE("\0\0\0\x18"
         "ftypmif1\0\0\0\0",
         "HEIF"),
    CASE("\0\0\0\x1c"
         "ftypavif\0\0\0\0",
         "AVIF"),
    CASE("\0\0\0\x1c"
         "ftypavis\0\0\0\0",
         "AVIF"),
    CASE("\0\0\0\x18"
         "ftypcrx \0\0\0\0",
         "Canon raw"),
    CASE("\0\0\0\x14"
         "ftypqt  \0\0\0\0",
         "QuickTime"),
    CASE("\0\0\0\x18"
         "ftypisom\0\0\0\0",
         "MP4"),
    CASE("RIFF\x24\0\0\0WEBPVP8 ", "WebP"),
    CASE("RIFF\x24\0\0\0WAVEfmt ", "WAV"),
    CASE("RIFF\x24\0\0\0AVI LIST", "AVI"),
    CASE("GIF89a\1\0\1\0", "GIF"),
    CASE("II*\0\x08\0\0\0", "TIFF"),
    CASE("MM\0*\0\0\0\x08", "TIFF"),
    CASE("BM\x36\0\0\0\0\0\0\0\x36\0\0\0", "BMP"),
    CASE("\xff\x0a\xfa\x1f", "JPEG XL"),
    CASE("\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
    CASE("\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
    CASE("8BPS\0\1\0\0", "Photoshop"),
    CASE("gimp xcf v011\0", "GIMP"),
    CASE("v/1\x01\2\0\0\0", "OpenEXR"),
    CASE("#?RADIANCE\n", "Radiance"),
    CASE("qoif\0\0\0\1", "QOI"),
    CASE("\0\0\1\0\1\0\x10\x10", "icon"),
    CASE("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "SVG"),
    CASE("\n  <!DOCTYPE HTML><html>", "web page"),
    CASE("\xef\xbb\xbf<!doctype html>", "web page"),
    CASE("<HTML><body>Access denied", "web page"),
    CASE("<?xml version=\"1.0\"?><Error><Code>NoSuchKey", "XML"),
    CASE("<Error><Code>AccessDenied</Code>", "file store"),
    CASE("%PDF-1.7\n", "PDF"),
    CASE("PK\3\4\x14\0\6\0", "xlsx"),
    CASE("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", ".xls"),
    CASE("{\\rtf1\\ansi", "RTF"),
    CASE("\x1f\x8b\x08\0\0\0\0\0", "gzip"),
    CASE("BZh91AY&SY\1", "bzip2"),
    CASE("\xfd"
         "7zXZ\0\0\4",
         "xz"),
    CASE("\x28\xb5\x2f\xfd\4\0", "zstd"),
    CASE("7z\xbc\xaf\x27\x1c\0\4", "7z"),
    CASE("Rar!\x1a\7\1\0", "RAR"),
    CASE("GGUF\3\0\0\0", "GGUF"),
    CASE("\x80\2}q\0(X", "pickle"),
    CASE("\x80\4\x95\x1f\0\0", "pickle"),
    CASE("\x93NUMPY\1\0v\0", "NumPy"),
    CASE("\x89HDF\r\n\x1a\n\0", "HDF5"),
    CASE("PAR1\x15\4", "Parquet"),
    CASE("ARROW1\0\0", "Arrow"),
    CASE("SQLite format 3\0\x10\0", "SQLite"),
    CASE("$FL2@(#) SPSS\2\0\0\0", "SPSS"),
    CASE("\x7f"
         "ELF\2\1\1",
         "program"),
    CASE("bplist00\xd4\1\2", "Apple property list"),
    CASE("\0\5\x16\7\0\2\0\0Mac OS X", "AppleDouble"),
    CASE("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "zeros"),
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void kinds_are_named(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        const char *name = lk_content_name(cases[i].bytes, cases[i].n);
        if (!strstr(name, cases[i].name)) fail_msg("%s: got \"%s\"", cases[i].name, name);
    }
    char tar[512] = "folder/file";
    memcpy(tar + 257, "ustar", 5);
    assert_non_null(strstr(lk_content_name(tar, sizeof tar), "tar archive"));
    assert_string_equal(lk_content_name("", 0), "an empty file");
    assert_string_equal(lk_content_name("not an image\n", 13), "text");
    assert_string_equal(lk_content_name("\xff\xfes\0c\0", 6), "UTF-16 text");
    assert_string_equal(lk_content_name("\1\2\3\4\5\6\7\xff\xff\xfe", 10), "other data");
}

/* Sizes of safetensors headers begin as other formats do: 0x8b1f as gzip, 65536 as an icon. */
static void what_is_right_is_no_other(void **state) {
    (void)state;
    static const char sizes[][5] = {"\x1f\x8b\0\0", "\0\0\1\0", "MZ\0\0", "BM\0\0", "\x80\2\0\0", "\xff\x0a\0\0"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char head[32] = "";
        memcpy(head, sizes[i], 4);
        memcpy(head + 8, "{\"a\":{\"dtype\":", 14);
        assert_string_equal(lk_content_name(head, sizeof head), LK_CONTENT_SAFETENSORS);
    }
    static const char *const texts[] = {
        "item,score\n", "{\"a\":1}", "[1]",          "sep=;\n", "\xef\xbb\xbfitem\tscore",
        "BMI,age\n",    "MZ",        "PK,id\n1,2\n", "a<html>", "PAR1,PAR2\n1,2\n",
        "GIF89a\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *other = lk_content_not_text(texts[i], strlen(texts[i]));
        if (other) fail_msg("\"%s\" is called %s", texts[i], other);
    }
}

/* The same bytes to every reader: each names the file and what it is. */
static void every_reader_says_it(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        const char *path = test_path("strange.gguf"), *words = cases[i].name;
        const bool is_gguf = !strcmp(words, "GGUF"), padded = cases[i].n < 8;
        struct lk_checkpoint cp;
        struct lk_image image;
        struct lk_csv csv;
        test_write(path, cases[i].bytes, cases[i].n);
        enum lk_code rc = lk_image_read(&image, path, 1, 0);
        if (!rc || !strstr(lk_error_text(), words) || !strstr(lk_error_text(), "strange"))
            fail_msg("%s as a picture: %s", words, lk_error_text());
        rc = lk_checkpoint_open_file(&cp, path);
        if (!rc || (!is_gguf && !padded && !strstr(lk_error_text(), words)) || !strstr(lk_error_text(), "strange"))
            fail_msg("%s as GGUF: %s", words, lk_error_text());
        path = test_path("strange.safetensors");
        test_write(path, cases[i].bytes, cases[i].n);
        rc = lk_checkpoint_open_file(&cp, path);
        if (!rc || (!is_gguf && strcmp(words, "BMP") && !strstr(lk_error_text(), words)) ||
            !strstr(lk_error_text(), "strange"))
            fail_msg("%s as safetensors: %s", words, lk_error_text());
        if (!strcmp(words, "BMP")) continue; /* BM may begin a text */
        rc = lk_json_check(cases[i].bytes, cases[i].n, "strange.json");
        if (!rc || !strstr(lk_error_text(), words) || !strstr(lk_error_text(), "strange.json"))
            fail_msg("%s as JSON: %s", words, lk_error_text());
        rc = lk_csv_open(&csv, cases[i].bytes, cases[i].n, "strange.csv");
        if (!rc || !strstr(lk_error_text(), words) || !strstr(lk_error_text(), "strange.csv"))
            fail_msg("%s as CSV: %s", words, lk_error_text());
    }
}

/* A name typed in one of Unicode's forms finds a file in the other; another name finds none. */
static void names_in_either_form(void **state) {
    (void)state;
    static const char *const forms[][2] = {{"Jose\xcc\x81.csv", "Jos\xc3\xa9.csv"},
                                           {"Mu\xcc\x88ller.csv", "M\xc3\xbcller.csv"},
                                           {"\xe1\x84\x80\xe1\x85\xa1.csv", "\xea\xb0\x80.csv"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int there = 0; there < 2; there++) {
            char asked[1200], *text;
            size_t n;
            unlink(test_path(forms[i][!there]));
            test_write(test_path(forms[i][there]), "x", 1);
            snprintf(asked, sizeof asked, "%s", test_path(forms[i][!there]));
            assert_ok(lk_read_file(asked, 10, &text, &n));
            lk_free(text);
            unlink(test_path(forms[i][there]));
            assert_fails(lk_read_file(asked, 10, &text, &n), LK_E_NOT_FOUND, forms[i][!there]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_named),
        cmocka_unit_test(what_is_right_is_no_other),
        cmocka_unit_test(every_reader_says_it),
        cmocka_unit_test(names_in_either_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
