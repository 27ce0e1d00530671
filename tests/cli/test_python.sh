#!/bin/sh
# The Python package over the shared library: the bytes of the program's pictures, refusals, stops, memory. Exported symbols.
set -eu
command -v python3 >/dev/null || { echo "SKIP: no python3 here" && exit 77; }
scratch=$TEST_TMPDIR/python
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
others=$(nm -D --defined-only "$BUILD_DIR/liblikeness.so" | awk '{ print $3 }' | grep -v '^lk_' || true)
[ -z "$others" ] || { echo "exported without lk_: $others" && exit 1; }
if [ -z "$(sed -n 's/^LIKENESS_SANITIZE:BOOL=ON/x/p' "$BUILD_DIR/CMakeCache.txt")" ]; then preload=; else
    preload=$(gcc -print-file-name=libasan.so)
fi
"$BUILD_DIR/make_checkpoint" --preset tiny tiny
"$BUILD_DIR/make_face" --size 64x80 face.jpg
"$BUILD_DIR/likeness" edit -q -m tiny -r face.jpg -p "red hair" --seed 42 --num-inference-steps 2 -t 1 -o program.png
PYTHONPATH=$SOURCE_DIR/tools/python LIKENESS_LIBRARY=$BUILD_DIR/liblikeness.so LIKENESS_PROGRAM=$BUILD_DIR/likeness \
    LD_PRELOAD=$preload ASAN_OPTIONS=detect_leaks=0 PYTHONDONTWRITEBYTECODE=1 python3 "$SOURCE_DIR/tests/cli/test_python.py"
