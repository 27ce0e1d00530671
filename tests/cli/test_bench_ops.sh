#!/bin/sh
# bench_ops on the simulated GPU with small shapes: every op has a row, libraries (stand-ins) stand beside ours, and
# real shapes are refused, because simulated times mean nothing.
set -u
work=$TEST_TMPDIR/bench_ops
failed=0
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
LD_LIBRARY_PATH=$BUILD_DIR/tests/rivals${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
GPUSIM_BUILD=$BUILD_DIR
export LD_LIBRARY_PATH GPUSIM_BUILD
bench() { "$SOURCE_DIR/tools/gpusim/with-gpusim" "$BUILD_DIR/bench_ops" "$@"; }
fail() {
    echo "FAIL: $*"
    failed=1
}

bench -k add >out 2>err
code=$?
if grep -q "no CUDA kernels" err; then
    echo "SKIP: bench_ops: $(cat err)"
    exit 77
fi
[ $code -eq 5 ] || fail "real shapes: expected exit code 5, got $code"
grep -q "times mean nothing" err || fail "real shapes: no reason given"

bench -s tiny -r 2 -o csv >out 2>err || fail "tiny shapes: $(cat err)"
grep -q "simulated: times mean nothing" err || fail "tiny shapes: nothing says that the times are simulated"
for op in linear attention layer_norm rms_norm norm_rope conv2d group_norm gated_act; do
    grep -q "^\"$op\"," out || fail "no row of $op"
done
if ls "$BUILD_DIR"/tests/rivals/libcublasLt.so.* >found 2>&1; then
    grep -qE '^"linear",.*,"cublaslt","[0-9.]+","[0-9.]+","[0-9.]+",' out || fail "no cuBLASLt beside linear"
    grep -qE '^"conv2d","3x3",.*,"cudnn",' out || fail "no cuDNN beside conv2d"
    grep -qE '^"conv2d","enlarging",.*,"","","","",' out || fail "cuDNN cannot enlarge, but has a time"
fi

bench -s tiny -r 2 -b 0.000001 >out 2>err || fail "budget: $(cat err)"
grep -qE '^[0-9]+ cases left out' err || fail "budget: nothing was left out"
bench -s huge >out 2>err
[ $? -eq 2 ] || fail "-s huge is no error of usage"
exit $failed
