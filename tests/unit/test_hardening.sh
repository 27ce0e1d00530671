#!/bin/sh
# A release build's program lies anywhere in memory, has its addresses resolved before it runs and then write-protected,
# and looks after its stack.
set -eu
program=$BUILD_DIR/likeness
grep -qE '^CMAKE_BUILD_TYPE:[A-Z]*=(Release)?$' "$BUILD_DIR/CMakeCache.txt" || exit 77
if grep -qE '^LIKENESS_(SANITIZE|FUZZ):BOOL=ON|^CMAKE_EXE_LINKER_FLAGS:STRING=.*-static' "$BUILD_DIR/CMakeCache.txt"; then exit 77; fi
bad=0
has() {
    "$1" "$2" -W "$program" | grep -qE "$3" || {
        echo "likeness has no $3"
        bad=1
    }
}
has readelf -h 'Type: +DYN'
has readelf -l 'GNU_RELRO'
has readelf -d 'BIND_NOW|FLAGS_1.*NOW'
has readelf --dyn-syms '__stack_chk_fail'
has readelf --dyn-syms '__[a-z]*printf_chk'
exit $bad
