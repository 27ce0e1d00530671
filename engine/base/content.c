#include "engine/base/content.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "engine/base/utf8.h"

#define LOOKED_AT 512
#define MAGIC(at, text, name)                                                                                          \
    { at, sizeof(text) - 1, text, name }

/* Published signatures; of one that begins another the longer first. The first five may begin a text. */
enum { N_TEXT_MAGICS = 5 };
static const struct {
    size_t at, n;
    const char *bytes, *name;
} magics[] = {
    MAGIC(0, "version https://git-lfs.github.com/", "a Git LFS pointer in its place (run git lfs pull)"),
    MAGIC(0, "oid sha256:", "a part of a Git LFS pointer in its place (run git lfs pull)"),
    MAGIC(0, "%PDF-", "a PDF document"),
    MAGIC(0, "{\\rtf", "an RTF document"),
    MAGIC(0, "#?RADIANCE", "a Radiance picture"),
    MAGIC(0, "\xff\xd8\xff", "a JPEG picture"),
    MAGIC(0, "\x89PNG\r\n\x1a\n", "a PNG picture"),
    MAGIC(4, "ftypheic", "a HEIC picture (heif-convert makes a PNG of it)"),
    MAGIC(4, "ftypheix", "a HEIC picture (heif-convert makes a PNG of it)"),
    MAGIC(4, "ftypheim", "a HEIC picture (heif-convert makes a PNG of it)"),
    MAGIC(4, "ftypheis", "a HEIC picture (heif-convert makes a PNG of it)"),
    MAGIC(4, "ftyphevc", "a HEIC picture (heif-convert makes a PNG of it)"),
    MAGIC(4, "ftyphevx", "a HEIC picture (heif-convert makes a PNG of it)"),
    MAGIC(4, "ftypmif1", "a HEIF picture (HEIC or AVIF; heif-convert makes a PNG of it)"),
    MAGIC(4, "ftypmsf1", "a HEIF picture (HEIC or AVIF; heif-convert makes a PNG of it)"),
    MAGIC(4, "ftypavif", "an AVIF picture (avifdec makes a PNG of it)"),
    MAGIC(4, "ftypavis", "an AVIF picture (avifdec makes a PNG of it)"),
    MAGIC(4, "ftypcrx ", "a Canon raw picture"),
    MAGIC(4, "ftypqt  ", "a QuickTime film"),
    MAGIC(4, "ftyp", "an MP4 film"),
    MAGIC(8, "WEBP", "a WebP picture"),
    MAGIC(8, "WAVE", "a WAV sound"),
    MAGIC(8, "AVI ", "an AVI film"),
    MAGIC(0, "GIF8", "a GIF picture"),
    MAGIC(0, "II*\0", "a TIFF or camera raw picture"),
    MAGIC(0, "MM\0*", "a TIFF or camera raw picture"),
    MAGIC(0, "II+\0", "a BigTIFF picture"),
    MAGIC(0, "\xff\x0a", "a JPEG XL picture"),
    MAGIC(0, "\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL picture"),
    MAGIC(0, "\0\0\0\x0cjP  \r\n\x87\n", "a JPEG 2000 picture"),
    MAGIC(0, "\xff\x4f\xff\x51", "a JPEG 2000 picture"),
    MAGIC(0, "8BPS", "a Photoshop picture"),
    MAGIC(0, "gimp xcf", "a GIMP picture"),
    MAGIC(0, "v/1\x01", "an OpenEXR picture"),
    MAGIC(0, "qoif", "a QOI picture"),
    MAGIC(0, "\0\0\1\0", "an icon"),
    MAGIC(0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document (.xls, .doc; save it as CSV or text)"),
    MAGIC(0, "PK\3\4", "a ZIP archive (.xlsx, .ods, .pt and .npz are such; export or unpack it)"),
    MAGIC(0, "PK\5\6", "an empty ZIP archive"),
    MAGIC(0, "\x1f\x8b", "a gzip archive (unpack it)"),
    MAGIC(0, "BZh", "a bzip2 archive (unpack it)"),
    MAGIC(0,
          "\xfd"
          "7zXZ\0",
          "an xz archive (unpack it)"),
    MAGIC(0, "\x28\xb5\x2f\xfd", "a zstd archive (unpack it)"),
    MAGIC(0, "7z\xbc\xaf\x27\x1c", "a 7z archive (unpack it)"),
    MAGIC(0, "Rar!\x1a\x07", "a RAR archive (unpack it)"),
    MAGIC(257, "ustar", "a tar archive (unpack it)"),
    MAGIC(0, "GGUF", "a GGUF file"),
    MAGIC(0, "\x80\x02", "a Python pickle (.bin, .ckpt; take the safetensors file instead)"),
    MAGIC(0, "\x80\x04\x95", "a Python pickle"),
    MAGIC(0, "\x80\x05\x95", "a Python pickle"),
    MAGIC(0, "\x93NUMPY", "a NumPy array"),
    MAGIC(0, "\x89HDF\r\n\x1a\n", "an HDF5 file"),
    MAGIC(0, "PAR1", "a Parquet table (export it as CSV or JSON lines)"),
    MAGIC(0, "ARROW1", "an Arrow table (export it as CSV or JSON lines)"),
    MAGIC(0, "SQLite format 3\0", "an SQLite database"),
    MAGIC(0, "$FL2", "an SPSS table (export it as CSV)"),
    MAGIC(0,
          "\x7f"
          "ELF",
          "a program"),
    MAGIC(0, "MZ", "a Windows program"),
    MAGIC(0, "bplist00", "an Apple property list"),
    MAGIC(0, "\0\5\x16\7", "an AppleDouble file (a Mac's notes about the file of the same name without ._)"),
};

/* How a text begins, whatever the case, behind white space and a byte order mark. */
static const struct {
    const char *start, *name;
} texts[] = {
    {"<!doctype html", "a web page in its place (the download failed or needs a login; get it again)"},
    {"<html", "a web page in its place (the download failed or needs a login; get it again)"},
    {"<head", "a web page in its place (the download failed or needs a login; get it again)"},
    {"<svg", "an SVG drawing"},
    {"<?xml", "XML (an SVG drawing, or an error of a file store in its place)"},
    {"<error>", "an error of a file store in its place (get it again)"},
};

/* The size of the header, below 4 GiB, then the header. Looked for first: sizes begin as other formats do. */
static bool is_safetensors(const char *bytes, size_t n) {
    return n >= 10 && !memcmp(bytes + 4, "\0\0\0\0{", 5) && (bytes[9] == '"' || bytes[9] == '}');
}

/* Letters alone may begin any table: a column may be called PAR1. */
static bool is_text(const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)bytes[i] < 0x20 && !memchr("\t\r\n", bytes[i], 3)) return false;
    return lk_utf8_valid_prefix(bytes, n) + 4 > n;
}

static const char *of_magic(const char *bytes, size_t n) {
    const bool text = is_text(bytes, n);
    if (is_safetensors(bytes, n)) return LK_CONTENT_SAFETENSORS;
    for (size_t i = 0; i < (text ? N_TEXT_MAGICS : sizeof magics / sizeof *magics); i++) {
        size_t at = magics[i].at;
        if (n < at + magics[i].n || memcmp(bytes + at, magics[i].bytes, magics[i].n) != 0) continue;
        if (at == 8 && memcmp(bytes, "RIFF", 4) != 0) continue;
        return magics[i].name;
    }
    return NULL;
}

static const char *of_text(const char *bytes, size_t n) {
    size_t i = n >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (i < n && memchr(" \t\r\n", bytes[i], 4)) i++;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        size_t length = strlen(texts[k].start);
        if (n - i >= length && !strncasecmp(bytes + i, texts[k].start, length)) return texts[k].name;
    }
    return NULL;
}

const char *lk_content_not_text(const void *bytes, size_t n) {
    if (n > LOOKED_AT) n = LOOKED_AT;
    const char *name = n ? of_magic(bytes, n) : NULL;
    if (!name && n) name = of_text(bytes, n);
    if (!name && n >= 16 && !memcmp(bytes, (const char[16]){0}, 16))
        name = "zeros in its place (a download or copy that did not end; get it again)";
    return name;
}

const char *lk_content_name(const void *bytes, size_t n) {
    const char *name = lk_content_not_text(bytes, n), *text = bytes;
    if (n > LOOKED_AT) n = LOOKED_AT;
    if (name) return name;
    if (!n) return "an empty file";
    if (is_text(bytes, n)) return *text == '{' || *text == '[' ? "JSON" : "text";
    if (n >= 2 && (!memcmp(bytes, "\xff\xfe", 2) || !memcmp(bytes, "\xfe\xff", 2))) return "UTF-16 text";
    if (n >= 6 && text[0] == 'B' && text[1] == 'M' && !text[5]) return "a BMP picture";
    return "other data";
}
