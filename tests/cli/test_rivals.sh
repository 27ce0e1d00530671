#!/bin/sh
# A picture that NVIDIA's libraries computed says so, and is computed by them again. The libraries are stand-ins
# (tests/cuda/rivals), the GPU is simulated.
set -u
work=$TEST_TMPDIR/rivals
gpu=$SOURCE_DIR/tools/gpusim/with-gpusim
failed=0
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
PATH=$BUILD_DIR:$PATH
LD_LIBRARY_PATH=$BUILD_DIR/tests/rivals${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
GPUSIM_BUILD=$BUILD_DIR
export PATH LD_LIBRARY_PATH GPUSIM_BUILD
if ! ls "$BUILD_DIR"/tests/rivals/libcublasLt.so.* >stand-ins 2>&1; then
    echo "SKIP: rivals: no stand-ins: the build found no headers of cuBLASLt and cuDNN"
    exit 77
fi

# expect WHAT PATTERN FILE
expect() {
    if ! grep -qE "$2" "$3"; then
        echo "FAIL: $1: expected a line like $2, got:"
        cat "$3"
        failed=1
    fi
}

make_checkpoint --preset tiny tiny || exit 1
"$gpu" likeness edit -m tiny -o rival.png --max-sequence-length 32 --num-inference-steps 1 -W 32 -H 32 -p x -q \
    --device cuda --gemm cublaslt --conv cudnn >out 2>err || { cat err; exit 1; }
likeness show rival.png >shown
expect "show" '^gemm +cublaslt$' shown
expect "show" '^conv +cudnn$' shown
expect "parameters" 'RNG: CPU, GEMM: cublaslt, Conv: cudnn, Version' rival.png

"$gpu" likeness rerun rival.png -m tiny -o again.png -q --device cuda >out 2>err || { cat err; exit 1; }
if ! cmp -s rival.png again.png; then
    echo "FAIL: rerun: other bytes"
    failed=1
fi
likeness rerun rival.png -m tiny -o cpu.png >out 2>err && { echo "FAIL: rerun elsewhere: another picture passed"; exit 1; }
likeness rerun rival.png -m tiny -o cpu.png --allow-other >out 2>err || { cat err; exit 1; }
expect "rerun elsewhere" 'made on cuda with cublaslt, this is cpu: the bits will differ' err
likeness show cpu.png >shown
if grep -q cublaslt shown; then
    echo "FAIL: a picture of the cpu device names cublaslt"
    failed=1
fi

"$gpu" likeness selftest linear --device cuda --gemm cublaslt --cases 100 >out 2>err || { cat out err; exit 1; }
expect "selftest" '^cublaslt took [1-9][0-9]* calls, [0-9]+ went to our kernels$' out
exit $failed
