#!/bin/sh
# What a draw of a resample costs in instructions, which no load of the machine changes: the difference between 40 and 20
# resamples of 20,000 rows. Exit status 77 (skipped) without valgrind, which counts, or where the build has sanitizers or
# is not optimised.
set -eu
command -v valgrind >/dev/null || { echo "SKIP: bootstrap_cost: valgrind is not installed: nothing was counted"; exit 77; }
if grep -q 'LIKENESS_SANITIZE:BOOL=ON\|CMAKE_BUILD_TYPE:STRING=Debug' "$BUILD_DIR/CMakeCache.txt"; then
    echo "SKIP: bootstrap_cost: this build's instructions are not those of a release"
    exit 77
fi
rows=20000
scratch=$TEST_TMPDIR/bootstrap_cost
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
awk -v n=$rows 'BEGIN { print "x,g"; for (i = 0; i < n; i++) printf "%.7f,%s\n", rand(), i % 2 ? "a" : "b" }' >values.csv
export OMP_NUM_THREADS=1
strip -g -o likeness "$BUILD_DIR/likeness" # valgrind 3.19 gives up on what clang says of lines
counted() { # counted RESAMPLES OPTION...
    resamples=$1
    shift
    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null ./likeness stats bootstrap \
        values.csv --value x --resamples "$resamples" "$@" 2>&1 >out | sed -n 's/.* I *refs: *//p' | tr -d ,
}
bounded() { # bounded MOST OPTION...: instructions of a draw, with the sum that it goes into
    most=$1
    shift
    cost=$((($(counted 40 "$@") - $(counted 20 "$@")) / (20 * rows)))
    echo "stats bootstrap $*: $cost instructions a draw"
    [ "$cost" -gt 0 ] && [ "$cost" -le "$most" ] || { echo "expected 1 to $most"; exit 1; }
}
bounded 16
bounded 32 --by g
