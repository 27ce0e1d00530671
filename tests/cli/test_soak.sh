#!/bin/sh
# Experiment 1 as it stands, 5,040 jobs of tiny checkpoints by one worker: in each model's 1,680 memory grows by 1 MiB at
# most once they are under way, and no file stays open. In the full run only: about ten minutes.
set -eu
[ -n "${LIKENESS_TEST_FULL-}" ] || {
    echo "SKIP: soak: in the full run only (LIKENESS_TEST_FULL)"
    exit 77
}
PATH=$BUILD_DIR:$PATH
data=$SOURCE_DIR/tests/golden/data
scratch=$TEST_TMPDIR/soak
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
OMP_WAIT_POLICY=passive
export PATH OMP_WAIT_POLICY
fail() {
    echo "FAILED: $*"
    exit 1
}

make_portraits --size 64 sources >made
cat >study.json <<JSON
{"schema": 1, "study": "soak", "sources": "sources/sources.csv", "models": {
  "flux": {"path": "$data/flux2/rich/checkpoint", "num_inference_steps": 2, "max_sequence_length": 40, "allow_cut": true,
    "text_encoder_out_layers": [1, 2, 3], "width": 64, "height": 64},
  "step1x": {"path": "$data/step1x/plain/checkpoint", "num_inference_steps": 2, "allow_steps": true, "size_level": 64},
  "qwen": {"path": "$data/qwen_edit/edit2511/checkpoint", "num_inference_steps": 2, "width": 64, "height": 64}},
  "experiments": {"exp1": {"preset": "full"}}}
JSON
likeness study run study.json -o out --threads 1 --json >events 2>errors &
run=$!
# Files of the worker, a line every two seconds: fewest between two jobs, when no picture is being written.
while kill -0 $run 2>/dev/null; do
    worker=$(cat /proc/$run/task/$run/children 2>/dev/null || true)
    worker=${worker%% *}
    [ -z "$worker" ] || echo "$(grep -c '"event":"done"' events) $(ls "/proc/$worker/fd" 2>/dev/null | wc -l)"
    sleep 2
done >files
wait $run || fail "$(tail -n 3 errors)"
[ "$(tail -n 3 events | grep -c '"nominal":1680,"success":1680,"failed":0')" = 3 ] || fail "$(tail -n 3 events)"
sed -nE 's/.*"event":"done","item_id":"([a-z0-9]*)_.*"resident_bytes":([0-9]+),.*/\1 \2/p' events |
    awk '{ n[$1]++ } n[$1] == 300 { warm[$1] = $2 } n[$1] > 300 && $2 > most[$1] { most[$1] = $2 }
        END { for (m in n) { grown = most[m] - warm[m]; printf "%s: %d jobs, %d KiB more than after 300\n", m, n[m], grown / 1024
                             if (n[m] != 1680 || grown > 1048576) bad = 1 } exit bad }' || fail "memory grows"
# Of Qwen-Image-Edit, the last model, which takes most of the time.
awk '$1 > 3400 && $1 < 4200 && (!a || $2 < a) { a = $2 } $1 > 4200 && $2 > 2 && (!b || $2 < b) { b = $2 }
    END { printf "%d files open, then %d\n", a, b; exit !a || b > a }' files || fail "files stay open"
likeness study verify out | grep -qx '5040 pictures, 0 not as recorded' || fail "verify"
echo "soak: all is well"
