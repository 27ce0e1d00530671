#!/bin/sh
# Kernels for drivers older than nvcc (LIKENESS_PTXAS): the fatbin has PTX 8.0 without newer pragmas, all of
# nvcc's kernels, and machine code for sm_80 and sm_90. Here the ptxas is nvcc's own, whatever its age.
set -eu
nvcc=$(sed -n 's/^NVCC:[A-Z]*=//p' "$BUILD_DIR/CMakeCache.txt")
if [ ! -x "$nvcc" ]; then
    echo "SKIP: older drivers: no nvcc"
    exit 77
fi
scratch=$TEST_TMPDIR/older_drivers
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
ptxas=$(dirname "$(readlink -f "$nvcc")")/ptxas
sh "$SOURCE_DIR/kernels/cuda/runtime/older_drivers.sh" "$nvcc" "$ptxas" "$SOURCE_DIR/kernels/cuda/gemm/gemm_gathered.cu" out.fatbin \
    -std=c++17 -O3 -fmad=false -lineinfo -I"$SOURCE_DIR"
fail() {
    echo "FAILED: $*"
    exit 1
}
[ "$(ls)" = out.fatbin ] || fail "files are left: $(ls)"
entries() { grep -a '^\.visible \.entry' "$1"; }
entries out.fatbin >got || fail "no kernels"
entries "$BUILD_DIR/cuda/gemm_gathered.fatbin" | cmp - got || fail "other kernels than nvcc's"
grep -aq '^\.version 8\.0$' out.fatbin || fail "the PTX is not of version 8.0"
if grep -aq 'used_bytes_mask' out.fatbin; then fail "a pragma of PTX 8.3"; fi
[ "$(grep -ao 'ELF' out.fatbin | wc -l)" -ge 2 ] || fail "no machine code for two architectures"
