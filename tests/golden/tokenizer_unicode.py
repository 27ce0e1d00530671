"""Writes models/tokenizer/unicode_tables.h: where the reference's Unicode differs from other versions.

The reference's categories are measured, one regular expression per category over all code points. They are compared
with Python's unicodedata (Unicode 14, as PCRE2 10.40 to 10.42) and with unicodedata2 (the newest), so that the table
serves PCRE2 of any version between."""

import unicodedata

import tokenizers
import unicodedata2
from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn".split()
POINTS = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
# Of each category one character of 2, 3 and 4 bytes that has it in every version from 10 on; 0 where none is needed.
REPRESENTATIVES = {
    "Lu": (0, 0x1E00, 0x10400), "Ll": (0x101, 0x1E01, 0x10428), "Lm": (0, 0xA60C, 0x16B40), "Lo": (0, 0xA500, 0x20000),
    "Mn": (0, 0x20D0, 0x101FD), "Mc": (0, 0x903, 0x11000), "Nd": (0, 0x966, 0x1D7CE), "No": (0, 0x2460, 0x10107),
    "Pd": (0, 0x2010, 0x10EAD), "Po": (0, 0x2016, 0x10100), "Sm": (0, 0x2200, 0x1D6C1), "So": (0, 0x2300, 0x1F600),
    "Cf": (0, 0x2060, 0x1D173), "Cn": (0x378, 0xFDD0, 0x1FFFE),
}  # fmt: skip


def measured_categories():
    category = {}
    for name in CATEGORIES:
        split = pre_tokenizers.Split(Regex(r"\p{%s}+" % name), "removed", invert=True)
        for i in range(0, len(POINTS), 4096):
            for piece, _ in split.pre_tokenize_str("".join(map(chr, POINTS[i : i + 4096]))):
                category.update((ord(c), name) for c in piece)
    return category


def differences():
    category = measured_categories()
    found = {0x180E: "Cf"}  # PCRE2's \s has it, the reference's has not
    for c in POINTS:
        if category[c] != unicodedata.category(chr(c)) or category[c] != unicodedata2.category(chr(c)):
            found[c] = category[c]
    for name, characters in REPRESENTATIVES.items():
        for i, c in enumerate(characters):
            assert not c or category[c] == name and c not in found
            assert c or not any(k == name and len(chr(f).encode()) == i + 2 for f, k in found.items())
    return found


def inert_in_nfc():
    """What combines, decomposes or composes in the newest Unicode but not in the reference."""

    def newest(text):
        return unicodedata2.normalize("NFC", text)

    reference = normalizers.NFC().normalize_str
    found = {}
    for c in map(chr, POINTS):
        if unicodedata2.combining(c):
            for mark in "\u0334\u0323\u0345":
                pair = "\u25cc" + c + mark, "\u25cc" + mark + c
                if (reference(pair[0]) == reference(pair[1])) != (newest(pair[0]) == newest(pair[1])):
                    found[ord(c)] = 1
        parts = unicodedata2.decomposition(c)
        if parts and parts[0] != "<":
            parts = [int(part, 16) for part in parts.split()]
            for text in ("".join(map(chr, parts)), unicodedata2.normalize("NFD", c)):
                if reference(text) != newest(text):
                    found.update((p, 1) for p in [ord(c)] + parts if p != 0x307)
    return found


def ranges(found):
    out = []
    for c in sorted(found):
        if out and out[-1][1] == c - 1 and out[-1][2] == found[c]:
            out[-1][1] = c
        else:
            out.append([c, c, found[c]])
    return out


def write_tables(path):
    found = ranges(differences())
    kinds = sorted({kind for _, _, kind in found}, key=list(REPRESENTATIVES).index)
    with open(path, "w") as f:
        f.write(f"""\
/* Where the reference's Unicode differs from that of other libraries. Made by tests/golden/tokenizer_unicode.py
 * (tokenizers {tokenizers.__version__}, Unicode {unicodedata.unidata_version} to {unicodedata2.unidata_version}); tests/golden/test_tokenizer.c holds every code point to it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum unicode_kind {{ {", ".join("KIND_" + kind.upper() for kind in kinds)}, N_UNICODE_KINDS }};

/* [kind]: a character of that general category in every Unicode version from 10 on, of 2, 3 and 4 bytes. */
static const uint32_t unicode_representatives[N_UNICODE_KINDS][3] = {{
""")
        for kind in kinds:
            f.write("    [KIND_%s] = {0x%x, 0x%x, 0x%x},\n" % (kind.upper(), *REPRESENTATIVES[kind]))
        f.write("""\
};

/* Code points whose category, or being white space, depends on the version, with the reference's category. */
static const struct unicode_difference {
    uint32_t first, last;
    enum unicode_kind kind;
} unicode_differences[] = {
""")
        for first, last, kind in found:
            f.write("    {0x%x, 0x%x, KIND_%s},\n" % (first, last, kind.upper()))
        f.write("""\
};
#define N_UNICODE_DIFFERENCES (sizeof unicode_differences / sizeof *unicode_differences)

/* Code points that combine, decompose or compose in today's Unicode but not in the reference's normalizer. */
static const struct {
    uint32_t first, last;
} unicode_inert[] = {
""")
        for first, last, _ in ranges(inert_in_nfc()):
            f.write("    {0x%x, 0x%x},\n" % (first, last))
        f.write("};\n#define N_UNICODE_INERT (sizeof unicode_inert / sizeof *unicode_inert)\n")
