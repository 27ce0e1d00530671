#!/bin/sh
# The example notebooks, cell by cell, with a tiny model in the place of theirs; skipped by name where numpy or pandas is missing.
set -eu
command -v python3 >/dev/null || { echo "SKIP: no python3 here" && exit 77; }
grep -q '^LIKENESS_SANITIZE:BOOL=ON' "$BUILD_DIR/CMakeCache.txt" && { echo "SKIP: a build with sanitizers" && exit 77; }
scratch=$TEST_TMPDIR/notebooks
rm -rf "$scratch"
mkdir -p "$scratch/faces"
cd "$scratch"
"$BUILD_DIR/make_checkpoint" --preset tiny tiny
echo id,path,skin_type >sources.csv
for i in 1 2 3 4; do
    "$BUILD_DIR/make_face" --size 64x80 --skin $i faces/$i.jpg
    echo "P$i,faces/$i.jpg,$([ $((i % 2)) = 1 ] && echo I || echo II)" >>sources.csv
done
export PYTHONPATH="$SOURCE_DIR/tools/python" LIKENESS_LIBRARY="$BUILD_DIR/liblikeness.so" LIKENESS_PROGRAM="$BUILD_DIR/likeness"
export LIKENESS_EXAMPLE_MODEL="$scratch/tiny" PYTHONDONTWRITEBYTECODE=1
export LIKENESS_EXAMPLE_SETTINGS='{"num_inference_steps": 2, "max_sequence_length": 256, "width": 32, "height": 32}'
skipped=0
for book in "$SOURCE_DIR"/tools/python/examples/*.ipynb; do
    code=0
    python3 "$SOURCE_DIR/tests/cli/run_notebook.py" "$book" || code=$?
    [ $code -eq 0 ] || [ $code -eq 77 ] || { echo "$book: failed" && exit 1; }
    [ $code -ne 77 ] || skipped=77
done
exit $skipped
