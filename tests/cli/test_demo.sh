#!/bin/sh
# `likeness demo` as the wheel has it: the report finds what was planted, the log has the commands, a folder of others is left alone.
set -eu
command -v python3 >/dev/null || { echo "SKIP: no python3 here" && exit 77; }
grep -q '^LIKENESS_SANITIZE:BOOL=ON' "$BUILD_DIR/CMakeCache.txt" && { echo "SKIP: a build with sanitizers" && exit 77; }
scratch=$TEST_TMPDIR/demo
rm -rf "$scratch"
mkdir -p "$scratch/likeness/demo_data"
cd "$scratch"
cp "$SOURCE_DIR"/tools/python/likeness/*.py likeness
export LIKENESS_PROGRAM="$BUILD_DIR/likeness" PYTHONDONTWRITEBYTECODE=1
demo() { python3 -c 'import sys, likeness; sys.argv[:1] = ["likeness", "demo"]; likeness.main()' "$@"; }
mv likeness/demo_data data
code=0 && demo >said 2>&1 || code=$?
[ $code -eq 3 ] && grep -q 'from a clone: tools/demo' said || { cat said && exit 1; }
mv data likeness/demo_data
for folder in editors/step1x editors/qwen_edit; do cp -r "$SOURCE_DIR/tools/$folder" likeness/demo_data; done
cp -r "$SOURCE_DIR/tools/judges/qwen2_5_vl" likeness/demo_data/judge
"$BUILD_DIR/make_portraits" --size 64 likeness/demo_data/portraits >/dev/null
mkdir mine && echo kept >mine/file
code=0 && demo mine >said 2>&1 || code=$?
[ $code -eq 2 ] && [ -s mine/file ] || { cat said && exit 1; }
mkdir out && : >out/demo.log && echo old >out/old
demo out >said || { cat said out/demo.log && exit 1; }
grep -q '^Step1X-Edit: age change, Female' said && ! grep -q '^Qwen-Edit: ' said && [ ! -e out/old ] || { cat said && exit 1; }
[ -s out/report/report.html ] && grep -q '^\$ likeness judge run' out/demo.log || { cat out/demo.log && exit 1; }
