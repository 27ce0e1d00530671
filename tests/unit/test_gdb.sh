#!/bin/sh
# tools/gdb/tensors.py prints a tensor's dtype, shape and first values.
set -eu
command -v gdb >/dev/null || { echo "SKIP: no gdb here" && exit 77; }
gdb -batch -ex 'python import struct' 2>&1 | grep -q . && { echo "SKIP: a gdb without Python" && exit 77; }
cd "$TEST_TMPDIR"
cat >tensors.c <<'C'
#include "engine/tensor.h"
static float f[6] = {1, -2.5F, 3};
static uint16_t b[4] = {0x3f80, 0xc020};
struct lk_tensor wide = {f, LK_F32, 2, {2, 3}, 3, {0}}, narrow = {b, LK_BF16, 1, {4}, 1, {0}}, none, far = {(void *)8, LK_F32, 1, {2}, 1, {0}};
int main(void) { return 0; }
C
cc -g -I"$SOURCE_DIR" tensors.c -o tensors
gdb -batch -iex 'set auto-load off' -x "$SOURCE_DIR/tools/gdb/tensors.py" -ex 'break main' -ex run -ex 'print wide' -ex 'print narrow' -ex 'print none' \
    -ex 'print far' ./tensors >said 2>&1 || true
grep -q 'ptrace' said && { echo "SKIP: no debugging here" && exit 77; }
grep -q '= f32 \[2, 3\] at 0x[0-9a-f]*: 1, -2.5, 3, \.\.\.$' said && grep -q '= bf16 \[4\] at 0x[0-9a-f]*: 1, -2.5, 0, 0$' said &&
    grep -q '= no tensor$' said && grep -q '= f32 \[2\] at 0x8, not in host memory$' said || { cat said && exit 1; }
