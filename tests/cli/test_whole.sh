#!/bin/sh
# From drawn portraits to the report: six sources, two prompts, three models, two judges, raters. Twice, with the same bytes.
set -eu
[ -n "${LIKENESS_TEST_FULL-}" ] || { echo "SKIP: a minute of CPU time, in the full run only (LIKENESS_TEST_FULL)"; exit 77; }
PATH=$BUILD_DIR:$PATH
scratch=$TEST_TMPDIR/whole
data=$SOURCE_DIR/tests/golden/data
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
OMP_WAIT_POLICY=passive
export OMP_WAIT_POLICY
make_checkpoint --preset tiny tiny
make_checkpoint --family qwen25_vl --preset tiny vl
cells='"White_Male_20s", "White_Female_20s", "Black_Male_30s", "Black_Female_30s", "Indian_Male_70plus", "Latino_Female_50s"'
echo '{"schema": 1, "study": "whole", "sources": "faces/sources.csv", "analysis": {"bootstrap": 50}, "models": {
  "flux": {"path": "'"$data"'/flux2/rich/checkpoint", "num_inference_steps": 1, "max_sequence_length": 40, "allow_cut": true,
    "text_encoder_out_layers": [1, 2, 3], "width": 32, "height": 32},
  "step1x": {"path": "'"$data"'/step1x/plain/checkpoint", "num_inference_steps": 1, "allow_steps": true, "size_level": 32},
  "qwen": {"path": "'"$data"'/qwen_edit/edit2511/checkpoint", "num_inference_steps": 2, "width": 32, "height": 32}},
  "experiments": {"exp1": {"preset": "custom", "prompts": ["O-01", "V-03"], "sources": ['"$cells"']}}}' >study.json

whole() {
    likeness study run study.json -o run -t 1 &&
        likeness study verify run &&
        likeness judge run --slot primary -m vl --from run --study study.json -o primary.jsonl --mode direct -q -t 1 &&
        likeness judge run --slot secondary -m tiny --from run --study study.json -o secondary.jsonl --mode direct -q -t 1 &&
        make_ratings run/manifest.jsonl ratings.jsonl participants.csv &&
        likeness report --from run --primary primary.jsonl --secondary secondary.jsonl --ratings ratings.jsonl \
            --participants participants.csv -o report
}
for time in first second; do
    mkdir $time
    (cd $time && make_portraits --size 64 faces && cp ../study.json . && ln -s ../vl ../tiny . && whole) >$time.log 2>&1 ||
        { cat $time.log; exit 1; }
done
for time in first second; do
    sed -E 's/"seconds":[0-9.]+,"started_at":"[^"]*"//' $time/run/manifest.jsonl >$time.manifest
    [ "$(grep -c '"status":"success"' $time.manifest)" = 36 ] || { cat $time.log; echo "not all was made"; exit 1; }
done
cmp first.manifest second.manifest
diff -r first/run/results second/run/results
diff -r first/report second/report
for section in summary edits disparity human tests robustness examples design left-out; do
    grep -q "id=\"section-$section\"" first/report/report.html || { echo "no section $section"; exit 1; }
done
