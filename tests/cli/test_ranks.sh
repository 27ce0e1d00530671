#!/bin/sh
# GPUs that hold the weights together, as users run them: a picture with its recipe, and a study, byte for byte what one
# GPU makes; without access to each other's memory by NCCL, and without that a sentence. The GPUs are simulated.
set -eu
PATH=$BUILD_DIR:$PATH
GPUSIM_BUILD=$BUILD_DIR
GPUSIM_DEVICES=2
GPUSIM_LAZY=all # a driver that loads kernels late, under a lock
export GPUSIM_BUILD GPUSIM_DEVICES GPUSIM_LAZY
scratch=$TEST_TMPDIR/ranks
gpu=$SOURCE_DIR/tools/gpusim/with-gpusim
rm -rf "$scratch"
mkdir -p "$scratch/src" "$scratch/lib"
cd "$scratch"
fail() {
    cat out err
    echo "FAILED: $*"
    exit 1
}
if "$gpu" likeness devices | grep -q 'no CUDA kernels'; then
    echo "SKIP: ranks: this build has no CUDA kernels"
    exit 77
fi

make_checkpoint --preset tiny tiny
edit() {
    "$gpu" likeness edit -m tiny --max-sequence-length 32 --num-inference-steps 1 -W 32 -H 32 -q -p x "$@" >out 2>err
}
edit -o one.png --device cuda || fail "one GPU"
edit -o two.png --device cuda:0,1 --weights sharded || fail "two GPUs"
cmp one.png two.png || fail "the picture or its recipe differs"
NCCL_P2P_DISABLE=1 edit -o nccl.png --device cuda:0,1 --weights sharded || fail "two GPUs by NCCL"
cmp one.png nccl.png || fail "the picture or its recipe by NCCL differs"

ln -s "$BUILD_DIR/gpusim/libcuda.so.1" lib/
: >lib/libnccl.so.2 # nothing, in the place of any that this machine may have
code=0
LD_LIBRARY_PATH=$scratch/lib NCCL_P2P_DISABLE=1 likeness edit -m tiny -q -p x -o no.png --device cuda:0,1 --weights sharded >out 2>err || code=$?
if [ ! -e /dev/nvidiactl ]; then
    [ "$code" = 5 ] || fail "without NCCL: expected exit code 5, got $code"
    grep -q 'need NVIDIA.s NCCL, libnccl.so.2 (.*install the package libnccl2' err || fail "without NCCL"
fi

cell=White_Male_20s
make_face --size 64x64 src/$cell.png
printf 'path,race,gender,age\nsrc/%s.png,White,Male,20s\n' $cell >sources.csv
echo '{"schema": 1, "study": "tiny", "sources": "sources.csv", "models": {"flux": {"path": "tiny", "num_inference_steps": 1,
    "max_sequence_length": 32, "allow_cut": true, "text_encoder_out_layers": [1, 2, 3], "width": 32, "height": 32}}, "experiments": {"exp1":
    {"preset": "custom", "models": ["flux"], "prompts": ["O-01", "V-01", "V-02"], "sources": ["'$cell'"]}}}' >study.json
"$gpu" likeness study run study.json -o alone --devices 0 >out 2>err || fail "a study on one GPU"
"$gpu" likeness study run study.json -o shared --devices 0,1 --weights sharded >out 2>err || fail "a study on two GPUs"
for name in alone shared; do
    sed -E 's/"seconds":[0-9.]+,"started_at":"[^"]*"/"seconds":0/' $name/manifest.jsonl >$name.lines
done
cmp alone.lines shared.lines || fail "the manifest differs"
