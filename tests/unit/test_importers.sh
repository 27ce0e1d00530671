#!/bin/sh
# Readers of people's tables have no words for nothing and no comparison of names of their own: both are in
# eval/scores/words.c. A reader is what includes eval/scores/csv.h or fields.h; those below look into running text.
set -eu
cd "$SOURCE_DIR"
readers=$(grep -rl --include='*.c' -e 'eval/scores/csv\.h"' -e 'eval/scores/fields\.h"' eval tools |
    grep -vE '^eval/(scores/(csv|feature_prompts)|judge/legacy|t2i/(tokens|distribution))\.c$')
[ "$(echo "$readers" | wc -l)" -gt 20 ]
# shellcheck disable=SC2086
found=$(grep -nE 'strn?casecmp\(|tolower\(|isalnum\(|"(NA|N/A|n/a|nan|NaN|NULL|None|null|<NA>|#N/A)"' $readers |
    grep -v 'strncasecmp(brackets\[i\]' || true) # ages: 3-9 is not 39
if [ -n "$found" ]; then
    echo "use lk_is_missing, lk_same_name or lk_word_of of eval/scores/words.h:"
    echo "$found"
    exit 1
fi
