#!/bin/sh
# cmake --install into an empty prefix. tools/examples/edit.c is built against it by pkg-config alone, and its picture has
# the bytes of the installed program's, recipe and all.
set -eu
scratch=$TEST_TMPDIR/install
prefix=$scratch/prefix
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
cmake --install "$BUILD_DIR" --prefix "$prefix" >log 2>&1 || { cat log && exit 1; }
for file in bin/likeness lib/liblikeness.a lib/liblikeness.so lib/likeness/python/likeness/__init__.py lib/pkgconfig/likeness.pc include/likeness/likeness.h include/likeness/models/pipeline.h \
    include/likeness/engine/device.h share/man/man1/likeness.1 share/bash-completion/completions/likeness \
    share/zsh/site-functions/_likeness share/fish/vendor_completions.d/likeness.fish; do
    [ -s "$prefix/$file" ] || { echo "not installed: $file" && exit 1; }
done
if grep -rn "$SOURCE_DIR" "$prefix/include" "$prefix/lib/pkgconfig"; then
    echo "installed files name the source folder" && exit 1
fi

cached() { sed -n "s/^$1:[A-Z]*=//p" "$BUILD_DIR/CMakeCache.txt"; }
sanitizers=
[ "$(cached LIKENESS_SANITIZE)" != ON ] || sanitizers=-fsanitize=address,undefined
if [ "$(cached LIKENESS_STATIC)" = ON ]; then # what Debian has no static library of, and the C library
    others=$(readelf -d "$prefix/bin/likeness" | grep NEEDED | grep -vE 'lib(c|m|cjson)\.so|ld-linux' || true)
    [ -z "$others" ] || { echo "linked dynamically: $others" && exit 1; }
fi
flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs likeness)
# The words of the flags must be separate.
# shellcheck disable=SC2086
"$(cached CMAKE_C_COMPILER)" -std=c11 -Wall -Wextra -Wpedantic -Werror $sanitizers \
    "$prefix/share/doc/likeness/examples/edit.c" $flags -o edit

# A user's names are the user's: every symbol of the library begins with lk_, and a program may have any other.
others=$(nm -g --defined-only "$prefix/lib/liblikeness.a" | awk 'NF == 3 { print $3 }' | grep -v '^lk_' |
    grep -v '^__' || true)
[ -z "$others" ] || { echo "symbols without lk_: $others" && exit 1; }
# The shared library exports what the installed headers declare, and no more: tools/likeness.map is that list.
find "$prefix/include/likeness" -name '*.h' -exec cat {} + | grep -v '^ *[*/]' | grep -oE '\<lk_[a-z0-9_]+ *[([]|\<lk_[a-z0-9_]+;' | tr -d ' ([;' |
    LC_ALL=C sort -u >declared
nm -g --defined-only "$prefix/lib/liblikeness.a" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort -u | LC_ALL=C comm -12 declared - >api
sed -n 's/^    \(lk_[a-z0-9_]*\);$/\1/p' "$SOURCE_DIR/tools/likeness.map" | LC_ALL=C sort >exported
diff api exported || { echo "tools/likeness.map: < are declared in public headers, > are not" && exit 1; }
if [ -f "$prefix/lib/liblikeness.so" ] && [ -z "$sanitizers" ]; then
    nm -D --defined-only "$prefix/lib/liblikeness.so" | awk '{ print $3 }' | LC_ALL=C sort | diff exported - ||
        { echo "liblikeness.so exports other names than tools/likeness.map" && exit 1; }
fi
{ cat "$prefix/share/doc/likeness/examples/edit.c" && echo 'int json_find(void); int json_find(void) { return 0; }'; } >own.c
# shellcheck disable=SC2086
"$(cached CMAKE_C_COMPILER)" -std=c11 $sanitizers own.c $flags -o own

export OMP_WAIT_POLICY=passive
"$BUILD_DIR/make_checkpoint" --preset tiny tiny
"$BUILD_DIR/make_face" --size 64x80 face.jpg
./edit tiny face.jpg "red hair" library.png 2
"$prefix/bin/likeness" edit -q -m tiny -r face.jpg -p "red hair" --seed 42 --num-inference-steps 2 -o program.png >/dev/null

cmp library.png program.png || { echo "the library's picture is not the program's" && exit 1; }
# The program makes the picture again from it.
"$prefix/bin/likeness" rerun library.png -q -m tiny -r face.jpg -o again.png >/dev/null && cmp library.png again.png
if ./edit nowhere face.jpg x none.png 2>message; then echo "a missing model was accepted" && exit 1; fi
grep -q nowhere message || { cat message && exit 1; }
# The Python package finds its library and its program beside it.
if command -v python3 >/dev/null && [ -z "$sanitizers" ]; then
    PYTHONPATH=$prefix/lib/likeness/python PYTHONDONTWRITEBYTECODE=1 python3 -c '
import likeness
print(likeness.Model("tiny").family, likeness.run("models").split()[0])' >python
    [ "$(cat python)" = "flux2-dev model" ] || { cat python && exit 1; }
fi
