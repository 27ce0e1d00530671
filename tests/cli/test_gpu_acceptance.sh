#!/bin/sh
# tools/gpu-acceptance without a GPU, and what it makes of its parts' outputs, which small scripts play here.
set -u
work=$TEST_TMPDIR/gpu_acceptance
accept=$SOURCE_DIR/tools/gpu-acceptance
failed=0
rm -rf "$work"
mkdir -p "$work/bin" "$work/build"
cd "$work" || exit 1
unset LD_LIBRARY_PATH
fail() {
    echo "FAIL: $*"
    cat out err
    failed=1
}
# has NAME PATTERN
has() { grep -qE "$2" out || fail "$1: no line like $2"; }
# play PATH: the rest is a script on stdin
play() {
    { echo '#!/bin/sh'; cat; } >"$1"
    chmod +x "$1"
}
# run NAME CODE LAST-LINE [ARGUMENT...]
run() {
    name=$1 expected=$2 last=$3
    shift 3
    rm -f first tested
    PATH=$work/bin:$PATH "$accept" --build "$work/build" "$@" >out 2>err
    code=$?
    [ $code -eq "$expected" ] || fail "$name: expected exit code $expected, got $code"
    [ "$(tail -n 1 out)" = "$last" ] || fail "$name: expected the last line $last"
}
export work
play bin/wait_for <<'SCRIPT' # wait_for FILE WORD: not for ever, should its reader be gone
n=6000
until grep -q "$2" "$1" 2>/dev/null || [ $((n -= 1)) -eq 0 ]; do sleep 0.01; done
SCRIPT

if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
    "$accept" --build "$work/build" >out 2>err
    code=$?
    [ $code -eq 5 ] || fail "no GPU: expected exit code 5, got $code"
    [ ! -s out ] || fail "no GPU: something on stdout"
    grep -q "no GPU: neither /dev/nvidiactl" err || fail "no GPU: no reason given"
fi
"$accept" --slow >out 2>err
[ $? -eq 2 ] || fail "--slow is no error of usage"
"$accept" --build >out 2>err
[ $? -eq 2 ] || fail "--build without a folder is no error of usage"

# A machine with a GPU, where all is well.
play bin/nvidia-smi <<'SCRIPT'
case "$1" in --query-gpu*) printf '345, 70.12\n1980, 500.00\n'; wait_for "$work/first" .; echo '1650, 699.50' ;; esac
SCRIPT
play bin/cmake <<'SCRIPT'
echo "-- CUDA kernels: /usr/bin/nvcc"
case "$1" in --build) echo "$*" >"$work/built" ;; esac
SCRIPT
ctest_plays() { # ranks: Passed, or ***Skipped
    play bin/ctest <<SCRIPT
echo "\$*" >>"$work/tested"
case "\$*" in
*" -E "*) echo " 1/2 Test  #1: cuda/ops ............   Passed    0.10 sec"
    echo " 2/2 Test  #2: cuda/golden .........   Passed    0.10 sec" ;;
*residency*) echo " 1/1 Test  #3: cuda/streamed .......   Passed    0.10 sec" ;;
*ranks*) echo "4: SKIP: cuda: 2 GPUs are needed, 1 are here"
    echo " 1/1 Test  #4: cuda/ranks ..........$1    0.10 sec" ;;
*repro*) echo "5: bits: flux2 edit f32: pixels 012345678901 as committed, latents 0123456789ab"
    echo "5: bits: 11 of 12 edits: as repro/cuda_sm_86.txt"
    echo " 1/1 Test  #5: cuda/repro ..........   Passed    0.10 sec" ;;
esac
SCRIPT
}
ctest_plays "   Passed"
play bin/compute-sanitizer <<'SCRIPT'
echo "========= ERROR SUMMARY: 0 errors"
SCRIPT
likeness_plays() {
    play build/likeness <<SCRIPT
case "\$1" in
devices) printf 'cpu   a\n      b\ncuda:0  NVIDIA A100\n      sm_80, 80 GiB memory\n' ;;
selftest)
    echo "cuda:0 (NVIDIA A100) against cpu"
    echo "op   cases   NMSE f32  NMSE bf16   values with other bits"
    echo "linear   200   3.0e-14   2.0e-07   0 of 100   ok"
    echo "add      200   9.0e-13   1.0e-06   0 of 100   $1"
    exit $2 ;;
esac
SCRIPT
}
likeness_plays ok 0
play build/bench_ops <<'SCRIPT'
echo "without cuDNN: not installed" >&2
wait_for "$work/build/acceptance/clocks.log" 1980
echo "op,what,sizes,us,sd,tflops,gbs,library,library_us,library_sd,ratio,device,commit"
echo '"linear","block, out","8x16x32","100.00","1.00","200.00","300.0","cublaslt","98.00","1.00","0.980","cuda:0","abc"'
wait_for "$work/build/acceptance/bench.log" block
echo first >"$work/first"
wait_for "$work/build/acceptance/clocks.log" 1650
echo '"add","","8x16","10.00","1.00","0.10","1500.0","","","","","cuda:0","abc"'
echo "3 cases left out: 60 seconds were over" >&2
SCRIPT
run good 0 ACCEPTED
for target in $(sed 's/.*--target //' built); do
    grep -q "/$target.dir\$" "$BUILD_DIR/CMakeFiles/TargetDirectories.txt" || fail "the build has no target $target"
done
[ "$(sed -n '1s/.*cuda.(\([a-z]*\).*/\1/p' tested)" = streamed ] || fail "streamed edits are not tested first"
has good '^\| device \| NVIDIA A100 \| sm_80, 80 GiB memory \|'
has good '^\| build \| configure \| CUDA kernels: /usr/bin/nvcc \|'
has good '^\| selftest \| --cases 200 \| 2 ops, worst NMSE 9.0e-13 f32, 1.0e-06 bf16 \|'
has good '^\| streamed \| .* \| 1 passed \|'
has good '^\| sharded \| .* \| 1 passed \|'
has good '^\| bits \| .* \| 1 passed \|'
has good '^\| bits \| flux2 edit f32 \| pixels 012345678901 as committed, latents 0123456789ab \|'
has good '^\| bits \| 11 of 12 edits \| as repro/cuda_sm_86.txt \|'
has good '^\| tests \| .* \| 2 passed \|'
has good '^\| sanitizer \| racecheck \| ERROR SUMMARY: 0 errors \|'
has good '^\| sanitizer \| memcheck of a streamed edit \| ERROR SUMMARY: 0 errors \|'
has good '^\| bench \| .* \| 3 cases left out, 2 cases \|'
has good '^\| bench \| linear block, out 8x16x32 \| 100.00 us, 200.00 TF/s, 300.0 GB/s, 0.980 x cublaslt, 345 to 1980 MHz, 500 W \|'
has good '^\| bench \| add  8x16 \| 10.00 us, 0.10 TF/s, 1500.0 GB/s, 1650 to 1650 MHz, 699 W \|'

ctest_plays "***Skipped"
run "a test is skipped" 1 "FAILED: sharded"
has "a test is skipped" '^\| sharded \| .* \| FAILED: 0 passed; cuda/ranks Skipped \(cuda: 2 GPUs are needed, 1 are here\)'
run "a part is left out" 0 "ACCEPTED without sharded" --without sharded
has "a part is left out" '^\| sharded \| weights shared by GPUs \| left out \|'
ctest_plays "   Passed"
"$accept" --without build >out 2>err
[ $? -eq 2 ] || fail "--without build is no error of usage"

likeness_plays FAILED 5
run "an op fails" 1 "FAILED: selftest"
has "an op fails" '^\| selftest \| --cases 200 \| FAILED: exit code 5: add .* \|'
likeness_plays ok 0

play bin/compute-sanitizer <<'SCRIPT'
echo "========= Invalid __global__ read of size 4 bytes"
echo "========= ERROR SUMMARY: 2 errors"
exit 9
SCRIPT
run "the sanitizer finds" 1 "FAILED: sanitizer"
rm bin/compute-sanitizer
if ! command -v compute-sanitizer >/dev/null; then
    run "no sanitizer" 1 "FAILED: sanitizer"
    run "no sanitizer, and said so" 0 "ACCEPTED without sanitizer" --without sanitizer
fi

play bin/ctest <<'SCRIPT'
echo "No tests were found!!!"
SCRIPT
run "no test" 1 "FAILED: streamed sharded bits tests" --without sanitizer
play bin/ctest <<'SCRIPT'
echo " 1/1 Test  #1: cuda/ops ............***Failed    0.10 sec"
exit 8
SCRIPT
play build/bench_ops <<'SCRIPT'
exit 5
SCRIPT
run "all tests fail, and the rates" 1 "FAILED: streamed sharded bits tests bench" --without sanitizer

play bin/cmake <<'SCRIPT'
sleep 5
SCRIPT
GPU_ACCEPTANCE_SECONDS=1
export GPU_ACCEPTANCE_SECONDS
run "cut" 1 "FAILED: build"
has "cut" '^\| build \| configure \| FAILED: cut after [0-9]+ s'
unset GPU_ACCEPTANCE_SECONDS
play bin/cmake <<'SCRIPT'
echo "no compiler"
exit 1
SCRIPT
run "no build" 1 "FAILED: build"

# A driver without a device, seen after the build.
play bin/cmake </dev/null
play build/likeness <<'SCRIPT'
printf 'cpu   a\ncuda  none: no CUDA driver on this machine\n'
SCRIPT
PATH=$work/bin:$PATH "$accept" --build "$work/build" >out 2>err
[ $? -eq 5 ] || fail "no device: expected exit code 5"
grep -q "no GPU: no CUDA driver on this machine" err || fail "no device: no reason given"
exit $failed
