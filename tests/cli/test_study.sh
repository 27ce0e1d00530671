#!/bin/sh
# Studies of tiny checkpoints, run as users do: pictures as `edit` makes them, the manifest, resume, failures.
set -eu
PATH=$BUILD_DIR:$PATH
scratch=$TEST_TMPDIR/study
data=$SOURCE_DIR/tests/golden/data
rm -rf "$scratch"
mkdir -p "$scratch/src"
cd "$scratch"
OMP_WAIT_POLICY=passive
export OMP_WAIT_POLICY
fail() {
    echo "FAILED: $*"
    exit 1
}
expect() { # CODE COMMAND...
    want=$1
    shift
    got=0
    "$@" >stdout 2>stderr || got=$?
    [ "$got" = "$want" ] || { cat stdout stderr; fail "$*: expected exit code $want, got $got"; }
    ! grep 'died by signal' stderr || fail "$*: a worker crashed" # the run goes on, and nothing else would tell
}
# Without what differs between two runs of the same jobs: times.
plain() { sed -E 's/"seconds":[0-9.]+,"started_at":"[^"]*"/"seconds":0/' "$1"; }

skin=0
for cell in White_Male_20s White_Female_20s Black_Male_20s Black_Female_30s; do
    skin=$((skin + 1))
    make_face --size 64x64 --skin "$skin" src/$cell.png
done
cat >sources.csv <<'CSV'
path,race,gender,age
src/White_Male_20s.png,White,Male,20s
src/White_Female_20s.png,White,Female,20s
src/Black_Male_20s.png,Black,Male,20s
src/Black_Female_30s.png,Black,Female,30s
CSV
models='"flux": {"path": "'$data'/flux2/rich/checkpoint", "num_inference_steps": 1, "max_sequence_length": 40, "allow_cut": true,
    "text_encoder_out_layers": [1, 2, 3], "width": 32, "height": 32},
  "step1x": {"path": "'$data'/step1x/plain/checkpoint", "num_inference_steps": 1, "allow_steps": true, "size_level": 32},
  "qwen": {"path": "'$data'/qwen_edit/edit2511/checkpoint", "num_inference_steps": 2, "width": 32, "height": 32}'
# study FILE MODELS SOURCES
study() {
    echo '{"schema": 1, "study": "tiny", "sources": "sources.csv", "models": {'"$models"'},
        "experiments": {"exp1": {"preset": "custom", "models": ['"$2"'], "prompts": ["O-01", "V-01"], "sources": ['"$3"']}}}' >"$1"
}
study three.json '"flux", "step1x", "qwen"' '"Black_Female_30s"'
study two.json '"flux", "step1x"' '"White_Male_20s", "White_Female_20s", "Black_Male_20s", "Black_Female_30s"'

# One PNG and one line a job, in the study's order.
expect 0 likeness study run three.json -o out --threads 1
grep -q '^qwen     nominal 2  success 2  failed 0$' stdout || fail "the summary"
likeness study jobs three.json >names
sed -E 's/^\{"item_id":"([^"]*)".*/\1/' out/manifest.jsonl | cmp - names || fail "the manifest is not in the study's order"
# A model is its weights, wherever they lie: the run goes on, and has nothing left to do.
sed "s#$data/#$data/../data/#" three.json >moved.json
cp out/manifest.jsonl before
expect 0 likeness study run moved.json -o out --threads 1
cmp before out/manifest.jsonl || fail "another path is another study"
# What version 0.1.0 recorded of this model in an HF cache, whose blobs counted, still names it there.
hub=$scratch/hub/models--acme--tiny
snapshot=$hub/snapshots/0123456789abcdef0123456789abcdef01234567
mkdir -p "$hub/blobs" "$hub/refs"
printf 0123456789abcdef0123456789abcdef01234567 >"$hub/refs/main"
(cd "$data/flux2/rich/checkpoint" && find . -type f) | while read -r file; do
    blob=$(sha256sum <"$data/flux2/rich/checkpoint/$file" | cut -c 1-64)
    cp "$data/flux2/rich/checkpoint/$file" "$hub/blobs/$blob"
    mkdir -p "$(dirname "$snapshot/$file")"
    ln -s "$hub/blobs/$blob" "$snapshot/$file"
done
pin='"weights_identity": "54edbb932e4b908cc0d4d0c62e11e116b1533500bbb0b2f2b2840a68173d0b1e", "num_inference_steps": 1, "max_sequence_length": 40, "allow_cut": true,
    "text_encoder_out_layers": [1, 2, 3], "width": 32, "height": 32}'
for place in acme/tiny "$data/flux2/rich/checkpoint"; do
    echo '{"schema": 1, "study": "pinned", "sources": "sources.csv", "models": {"flux": {"path": "'"$place"'", '"$pin"'},
        "experiments": {"exp1": {"preset": "custom", "prompts": ["O-01"], "sources": ["White_Male_20s"]}}}' >pinned.json
    want=0
    [ "$place" = acme/tiny ] || want=3
    expect $want env HF_HUB_CACHE="$scratch/hub" likeness study run pinned.json -o "pinned$want" --threads 1
done
grep -q 'expected the weights 54edbb93' stderr || fail "other weights than the study asks for"
for key in item_id experiment model source_id source_sha256 race gender age prompt_id category subcategory prompt_text \
    feature_prompt final_prompt arm steps guidance_scale true_cfg_scale seed precision quantization offload width height \
    settings output_path output_sha256 status error seconds started_at program_version; do
    [ "$(grep -c "\"$key\":" out/manifest.jsonl)" = 6 ] || fail "the manifest lacks $key"
done
sed -E 's/.*"output_path":"([^"]*)","output_sha256":"([^"]*)".*/\2  out\/\1/' out/manifest.jsonl | sha256sum -c --quiet ||
    fail "digests in the manifest"

# Each picture is the one that `edit` makes.
prompt=$(sed -nE '1s/.*"final_prompt":"([^"]*)".*/\1/p' out/manifest.jsonl)
likeness edit -q -m "$data/flux2/rich/checkpoint" -r src/Black_Female_30s.png -p "$prompt" -s 42 --steps 1 -t 1 \
    --max-sequence-length 40 --text-encoder-out-layers 1,2,3 -W 32 -H 32 -o flux.png >stdout
likeness edit -q -m "$data/step1x/plain/checkpoint" -r src/Black_Female_30s.png -p "$prompt" -s 42 --steps 1 --allow-steps -t 1 \
    --size-level 32 -o step1x.png >stdout
likeness edit -q -m "$data/qwen_edit/edit2511/checkpoint" -r src/Black_Female_30s.png -p "$prompt" -s 0 --steps 2 -t 1 \
    -W 32 -H 32 -o qwen.png >stdout
for model in flux step1x qwen; do
    cmp "$model.png" "out/results/exp1/$model/O/${model}_30s_female_black_O-01.png" || fail "$model: another picture than edit's"
done

# From text, each with its own seed and guidance.
echo '{"schema": 1, "study": "t2i", "models": {'"$models"'}, "experiments": {"t2i": {"models": ["flux"], "seeds": "5:6",
    "cfg": [3]}}}' >text.json
likeness study jobs text.json | wc -l >n
expect 0 likeness study run text.json -o text --threads 1 --queue 64 --json
[ "$(sed -nE 's/.*"output_sha256":"([^"]*)".*/\1/p' text/manifest.jsonl | sort -u | wc -l)" = "$(cat n)" ] ||
    fail "seeds or guidance are not the job's own"
head -n 1 text/generation_log.csv | tr -d '\r' | grep -qx 'prompt_id,model_tag,seed,cfg,file_path,arm,steps,mode,fair_attribute,fair_level,fair_label,scheduler,width,height,sha256' || fail "the log's header"
[ "$(wc -l <text/generation_log.csv)" = $(($(cat n) + 1)) ] || fail "a line of the log for each picture"
[ "$(grep -c '^17,flux,[56],3,results/t2i/flux/none/flux_17_none_s[56]_cfg3.png,none,1,text' text/generation_log.csv)" = 2 ] ||
    fail "two seeds, two lines a prompt"
printf 'file_path,gender\nresults/t2i/flux/none/flux_17_none_s6_cfg3.png,Male\n' >labels.csv
expect 0 likeness t2i metrics --labels labels.csv --log text/generation_log.csv --ref uniform -o metrics
grep -q 'guidance value' metrics/report.html || fail "t2i does not read the log"
[ ! -e out/generation_log.csv ] || fail "a log without pictures from text"
# Three guidance values: a row each, with intervals; the reference is 0 from itself.
likeness t2i prompts | sed -n 1,2p >one.csv
sed -E 's/"t2i": \{/&"table": "one.csv", "arms": ["none"], /; s/"seeds": "5:6"/"seeds": "0:3"/; s/"cfg": \[3\]/"cfg": [2, 4, 6]/' text.json >cfg.json
expect 0 likeness study run cfg.json -o cfg --threads 1 --queue 64
tr -d '\r' <cfg/generation_log.csv | awk -F , -v OFS=, 'NR == 1 { print $0, "gender" } NR > 1 { print $0, $3 % 2 && ($4 < 6 || $3 > 1) ? "Male" : "Female" }' >labels.csv
expect 0 likeness t2i metrics --labels labels.csv --ref uniform --bootstrap 100 -o metrics
[ "$(cut -d , -f 5-7,10,13 metrics/tables/t2i_cfg.csv | tr -d '\r' | sed 1d | paste -sd ' ')" = '2,4,0,0,reference 4,4,0,0,yes 6,4,0.5,0.5,yes' ] ||
    fail "cfg: $(cat metrics/tables/t2i_cfg.csv)"
[ "$(cut -d , -f 8,9 metrics/tables/t2i_cfg.csv | grep -c '^[0-9.]*,[0-9]')" = 3 ] || fail "intervals"
text=$(sed -nE '/"item_id":"flux_17_none_s6_cfg3"/s/.*"final_prompt":"([^"]*)".*/\1/p' text/manifest.jsonl)
likeness edit -q -m "$data/flux2/rich/checkpoint" -p "$text" -s 6 --guidance-scale 3 --steps 1 -t 1 \
    --max-sequence-length 40 --text-encoder-out-layers 1,2,3 -W 32 -H 32 -o text.png >stdout
cmp text.png text/results/t2i/flux/none/flux_17_none_s6_cfg3.png || fail "text to image: another picture than edit's"

# A soak of two prompts with many seeds: when SQLite has its pages, no job leaves memory behind.
if [ -n "${LIKENESS_TEST_FULL-}" ]; then
    likeness t2i prompts | sed -n 1,3p >few.csv
    sed -E 's/"t2i": \{/&"table": "few.csv", /; s/"seeds": "5:6"/"seeds": "0:2499"/; s/: 32/: 16/g' text.json >soak.json
    expect 0 likeness study run soak.json -o soak --threads 1 --queue 64 --json
    sed -nE 's/.*"event":"done".*"resident_bytes":([0-9]+),.*/\1/p' stdout >resident
    awk 'NR == 1500 { warm = $1 } END { if (NR != 5000 || $1 - warm > 1048576) { print NR " jobs: " warm " to " $1; exit 1 } }' \
        resident || fail "memory grows"
fi

# On a GPU, simulated where there is none: the bits of `edit --device cuda`.
if [ -n "${LIKENESS_TEST_FULL-}" ] && [ -e "$BUILD_DIR/gpusim/libcuda.so.1" ]; then
    cuda=
    likeness devices | grep -q '^cuda  none' && cuda=$SOURCE_DIR/tools/gpusim/with-gpusim
    sed 's/"flux", "step1x", "qwen"/"flux"/; s/"O-01", "V-01"/"O-01"/' three.json >cuda.json
    GPUSIM_BUILD=$BUILD_DIR expect 0 $cuda likeness study run cuda.json -o cuda --devices 0
    GPUSIM_BUILD=$BUILD_DIR expect 0 $cuda likeness edit -q -m "$data/flux2/rich/checkpoint" -r src/Black_Female_30s.png \
        -p "$prompt" -s 42 --steps 1 --device cuda --max-sequence-length 40 --text-encoder-out-layers 1,2,3 -W 32 -H 32 -o cuda.png
    cmp cuda.png cuda/results/exp1/flux/O/flux_30s_female_black_O-01.png || fail "cuda: another picture than edit's"
fi

# What is done is not done again; what is lost is.
cp out/manifest.jsonl first
expect 0 likeness study run three.json -o out --threads 1
cmp first out/manifest.jsonl || fail "a run with nothing to do changed the manifest"
rm out/results/exp1/flux/V/flux_30s_female_black_V-01.png
expect 0 likeness study run three.json -o out --threads 1 --json
grep -q 'warning: 1 pictures are gone' stderr || fail "a lost picture is not named"
[ "$(grep -c '"event":"done"' stdout)" = 1 ] || fail "one job was to be made again"
plain first >a
plain out/manifest.jsonl | cmp a - || fail "the picture made again differs"

# Nobody reads the events any more: all pictures are made nonetheless, and the exit code says what was lost.
{
    while [ ! -e left ]; do sleep 0.02; done
    code=0
    likeness study run three.json -o unread --threads 1 --json 2>unread.log || code=$?
    echo $code >unread.code
} | {
    exec <&-
    : >left
}
[ "$(cat unread.code)" = 7 ] && grep -q 'stdout: Broken pipe' unread.log || fail "events that nobody reads: $(cat unread.code unread.log)"
diff -r out/results unread/results || fail "events that nobody reads: other pictures"

# The study changes: what it still asks for stays, what is new is made, what is not asked for is kept and listed.
cp -r out changed
ls -i changed/results/exp1/flux/O/*_30s_* >before
expect 0 likeness study run two.json -o changed --threads 1
grep -q 'changed: 2 pictures are no longer asked for' stderr || fail "what is not asked for is not told: $(cat stderr)"
ls -i changed/results/exp1/flux/O/*_30s_* | cmp - before || fail "what is asked for already is made again"
expect 0 likeness study run two.json -o fresh --threads 1
plain fresh/manifest.jsonl >new_lines
plain changed/manifest.jsonl | cmp - new_lines || fail "the manifest of a changed study"
cmp fresh/study.json changed/study.json || fail "the run's copy of the study is the old one"
expect 0 likeness study status changed
grep -q '^2 pictures are no longer asked for' stdout || fail "status: $(cat stdout)"
expect 0 likeness study prune changed
diff -r fresh/results changed/results | grep -v '^Only in changed/results/exp1: qwen$' && fail "prune leaves other pictures"
[ -z "$(find changed/results -name 'qwen*.png')" ] || fail "prune leaves what is not asked for"
rm -r fresh changed

# A source that is no picture: tried once, for it will not become one; kept as failed, the others are made.
cp src/White_Female_20s.png good.png
echo 'no picture' >src/White_Female_20s.png
expect 6 likeness study run two.json -o bad --threads 1 --json
[ "$(grep -c '"event":"failed","item_id":"flux_20s_female_white_O-01"' stdout)" = 1 ] || fail "one attempt"
[ "$(grep -c '"status":"failed","error":".*White_Female_20s.png' bad/manifest.jsonl)" = 4 ] || fail "failed lines"
[ "$(grep -c '"status":"success"' bad/manifest.jsonl)" = 12 ] || fail "the other jobs"
expect 6 likeness study run two.json -o bad --threads 1 --json
grep -q '"event":"failed","item_id"' stdout && fail "a failure is not tried again unless told"
expect 6 likeness study run two.json -o bad --threads 1 --json --retry-failed
[ "$(grep -c '"event":"failed","item_id"' stdout)" = 4 ] || fail "--retry-failed"

# NaN in the weights: the job fails naming the stage, and there is no picture.
cp -rL "$data/flux2/rich/checkpoint" nan
weights=$(ls nan/transformer/*.safetensors | tail -n 1)
size=$(stat -c %s "$weights")
{ head -c $((size - 2000)) "$weights"; printf '\300\177%.0s' $(seq 1000); } >patched
cat patched >"$weights"
{ cat sources.csv && echo src/White_Male_20s.png,Black,Male,20s; } >doubled.csv
sed "s|$data/flux2/rich/checkpoint|nan|; s/sources.csv/doubled.csv/" three.json | sed 's/"flux", "step1x", "qwen"/"flux"/' >nan.json
expect 6 likeness study run nan.json -o bad-weights --threads 1
grep -q 'warning: .*doubled.csv: line 6: Black_Male_20s: expected one source of this cell.*; .likeness study check. names all' stderr ||
    fail "a cell with two sources: $(cat stderr)"
[ "$(grep -c '"status":"failed","error":"[a-z_ ]*.*values are NaN or Inf' bad-weights/manifest.jsonl)" = 2 ] || fail "NaN"
[ "$(find bad-weights -name '*.png' | wc -l)" = 0 ] || fail "a picture of NaNs"

# Shards: each job in one of them.
cp good.png src/White_Female_20s.png
for i in 1 2 3; do expect 0 likeness study run two.json -o sharded --shard $i/3 --threads 1; done
cat sharded/shards/?-of-3/manifest.jsonl | sed -E 's/^\{"item_id":"([^"]*)".*/\1/' | sort >parts
likeness study jobs two.json | sort | cmp - parts || fail "shards"
for i in 1 2 3; do likeness study jobs two.json --shard $i/3 >shard && sed -E 's/^\{"item_id":"([^"]*)".*/\1/' sharded/shards/$i-of-3/manifest.jsonl | cmp - shard ||
    fail "jobs of shard $i"; done

# What is on record of shards, and put together: as one run, whatever devices, queues and visits made it.
expect 0 likeness study status sharded
grep -q '^flux     nominal 8  success 8  failed 0  running 0  left 0 ' stdout || fail "status of shards"
expect 0 likeness study merge two.json -o sharded
grep -q '^step1x   nominal 8  success 8  failed 0$' stdout || fail "merge"
expect 0 likeness study run two.json -o single --devices cpu,cpu --threads 1 --queue 5 --jobs-per-visit 3
diff -r single/results sharded/results || fail "shards made other pictures"
plain single/manifest.jsonl >a
plain sharded/manifest.jsonl | cmp a - || fail "the merged manifest"
# The same pictures twenty times, whatever the threads, the queue and the visits.
if [ -n "${LIKENESS_TEST_FULL-}" ]; then
    for how in "1 1 1" "2 2 2" "3 3 3" "4 4 4" "5 8 8" "6 16 8" "7 64 1" "8 1 2" "9 2 3" "10 3 4" "11 4 8" "12 8 1" "13 16 2" "14 64 3" \
        "15 1 4" "16 2 8" "16 3 1" "1 4 2" "2 8 3" "4 16 4"; do
        set -- $how
        expect 0 likeness study run two.json -o again --threads "$1" --queue "$2" --jobs-per-visit "$3"
        expect 0 likeness study run three.json -o three --threads "$1" --queue "$2" --jobs-per-visit "$3"
        diff -r single/results again/results && diff -r out/results three/results || fail "threads, queue, visits $how"
        rm -r again three
    done
fi
expect 0 likeness study run two.json -o sharded --json
grep -q '"event":"done"' stdout && fail "what shards have made is made again"
rm sharded/journal.sqlite*
rm -r sharded/shards/2-of-3
expect 6 likeness study merge two.json -o sharded
grep -q 'of 16 jobs were not made by any shard' stderr || fail "a shard that is missing"
expect 6 likeness study merge three.json -o sharded
grep -q '^warning: [0-9]* pictures that this study does not ask for are left' stderr || fail "a merge into another study: $(cat stderr)"
mkdir empty
expect 3 likeness study merge two.json -o empty
[ -z "$(ls empty)" ] || fail "a merge of nothing leaves $(ls empty)"

# Every picture against its digest; a sample made again.
expect 0 likeness study verify single
grep -qx '16 pictures, 0 not as recorded' stdout || fail "verify"
expect 0 likeness study rerun two.json -o single --sample 20% --threads 1
grep -qx '4 pictures made again, 0 differ' stdout || fail "rerun"
picture=single/results/exp1/flux/O/flux_20s_male_white_O-01.png
size=$(stat -c %s $picture)
head -c $((size - 1)) $picture >cut && echo >>cut && cat cut >$picture
expect 3 likeness study verify single
grep -qx 'flux_20s_male_white_O-01: changed' stdout || fail "a changed picture"
expect 3 likeness study rerun two.json -o single --sample 100% --threads 1
grep -qx "flux_20s_male_white_O-01: $picture: gone, or another picture than was recorded" stdout || fail "rerun of a swapped picture"
grep -qx '16 pictures made again, 1 differ' stdout || fail "rerun does not count a swapped picture"
expect 3 likeness study rerun three.json -o single
grep -q 'single/journal.sqlite: is of another study' stderr || fail "rerun of another study"
expect 3 likeness study verify single --requeue
expect 0 likeness study run two.json -o single --threads 1
expect 0 likeness study verify single
diff -r single/results sharded/results || fail "the picture made again"
sha=$(sed -nE 's/.*"item_id":"flux_20s_male_white_V-01".*"output_sha256":"([^"]*)".*/\1/p' single/manifest.jsonl)
cp -r single forged
LC_ALL=C sed -i "s/$sha/$(echo "$sha" | tr 0-9a-f 1-9a-f0)/g" forged/journal.sqlite
expect 3 likeness study rerun two.json -o forged --sample 100% --threads 1
grep -qx 'flux_20s_male_white_V-01: differs, see forged/rerun/results/exp1/flux/V/flux_20s_male_white_V-01.png' stdout ||
    fail "rerun does not name the difference"
grep -qx '16 pictures made again, 1 differ' stdout || fail "rerun finds no difference"
expect 0 likeness study status bad
[ "$(grep -c '^failed: .*White_Female_20s.png' stdout)" = 4 ] || fail "status names failures"
expect 3 likeness study status src
expect 2 likeness study rerun two.json -o single --sample 0%

# A report is of runs of one configuration, whose outputs were made in one way.
sed -nE '1,3s/^\{"item_id":"([^"]*)".*/{"item_id":"\1","judge":"pixel","scores":{"edit_success":4}}/p' out/manifest.jsonl >scores
expect 0 likeness report --from out --pixel scores -o report
grep -q '"nominal":.*6,' report/configuration.json || fail "the run's nominal N"
grep -q '"studies":.*"[0-9a-f]\{64\}"' report/configuration.json || fail "the report does not name the study"
grep -q 'src="[^"]*out/results/exp1/flux/O/' report/report.html || fail "the report shows no picture of the run"
# The source lies elsewhere than the study named for it, by a link: it is not shown.
mkdir far && cp three.json *.csv far && ln -s ../src far
for study in three.json far/three.json; do
    expect 0 likeness report --from out --study $study --pixel scores -o report --embed-images
    grep -o '[0-9]* pictures lie outside' stderr || true
    grep -o 'data:image' report/report.html | wc -l
done | tr '\n' ' ' >shown
[ "$(cat shown)" = '7 3 pictures lie outside 6 ' ] || fail "a report shows a picture from elsewhere, or not from here: $(cat shown)"
# Its pictures are judged without a list of them.
sed -E 's/^(\{"item_id":"[^"]*").*"source_id":"([^"]*)".*"output_path":"([^"]*)".*/\1,"source":"src\/\2.png","edited":"out\/\3"}/' out/manifest.jsonl >listed
expect 0 likeness judge --pairs listed
sort stdout >by_list
expect 0 likeness judge --from out
sort stdout | cmp -s - by_list || fail "judge --from, by the run's own copy of the study, is not judge --pairs of the same"
expect 0 likeness judge --from out --study three.json
sort stdout | cmp -s - by_list || fail "judge --from is not judge --pairs of the same"
[ "$(wc -l <by_list)" = 6 ] || fail "not all pictures of the run are judged: $(wc -l <by_list)"
expect 2 likeness judge --from out --pairs listed
expect 3 likeness judge --from src
cp -r out half_up
sed -i 's/"rounding": "half_even"/"rounding": "half_up"/' half_up/study.json
expect 3 likeness report --from out --from half_up --pixel scores -o report2
grep -q 'analysis.rounding: "half_even" and "half_up"' stderr || fail "report does not name the setting"
[ ! -e report2 ] || fail "a refused report leaves files"
expect 0 likeness report --from out --from half_up --allow rounding --pixel scores -o report2
expect 3 likeness judge --from out --from half_up --study three.json
grep -q 'half_up: flux_30s_female_black_O-01: item_id: expected each once' stderr || fail "$(cat stderr)"
expect 0 likeness report --from half_up --pixel scores -o report3
grep -q '"rounding":.*"half_up"' report3/configuration.json || fail "the study's rounding does not hold"
expect 3 likeness report --from out --pixel scores --rounding half_down -o report4
grep -q -- '--rounding: the study says half_even, got half_down' stderr || fail "another rounding than the study's"
expect 0 likeness report --from out --pixel scores --rounding half_down --allow rounding -o report4
expect 3 likeness report --from out --pixel scores --threshold-drift 4 -o report6
grep -q -- '--threshold-drift: the study says 3, got 4; --allow threshold.drift accepts it' stderr || fail "drift: $(cat stderr)"
sed -i '1s/"steps":1,/"steps":7,/' half_up/manifest.jsonl
expect 3 likeness report --from half_up --pixel scores -o report5
grep -q 'exp1: steps is 7 in half_up/manifest.jsonl, line 1 (flux_30s_female_black_O-01), and 1 in .*line 2 ' stderr ||
    fail "report does not name the field"
expect 0 likeness report --from half_up --allow steps --pixel scores -o report5
sed -i '2s/"experiment":"exp1"/"experiment":"exp9"/' half_up/manifest.jsonl
expect 3 likeness report --from half_up --pixel scores -o report6
grep -q 'half_up/manifest.jsonl: line 2: expected an output' stderr || fail "a manifest that is none"

# A batch script: the shell reads it, a task's command is the right one.
expect 0 likeness study slurm two.json -o "it's out" --tasks 7 --devices 0,1
bash -n stdout || fail "the batch script"
grep -q '^#SBATCH --array=1-7$' stdout && grep -q '^#SBATCH --gres=gpu:2$' stdout || fail "what the script asks for"
mkdir -p bin
printf '#!/bin/sh\nshift\nexec "$@"\n' >bin/srun
printf '#!/bin/sh\nfor word; do echo "[$word]"; done\nexit ${CODE-0}\n' >bin/likeness
printf '#!/bin/sh\necho scontrol "$@"\n' >bin/scontrol
chmod +x bin/*
SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_JOB_ID=9 PATH=$PWD/bin:$PATH bash ./stdout >words
printf '[%s]\n' study run two.json -o "it's out" --shard 3/7 --devices 0,1 | cmp - words || fail "a task's command"
CODE=143 SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_JOB_ID=9 PATH=$PWD/bin:$PATH bash ./stdout | grep -qx 'scontrol requeue 9_3' ||
    fail "a task that is stopped is queued again"

# A Kubernetes Job: a pod's command, without a cluster, is what its shell would run; the parts are put together.
expect 0 likeness study k8s two.json -o k8s --tasks 3 --devices cpu --container registry/likeness:1 --claim disk
cp stdout job.yaml
grep -qx '  completions: 3' job.yaml && grep -qx '        image: "registry/likeness:1"' job.yaml &&
    grep -q 'claimName: "disk"' job.yaml || fail "the Job: $(cat job.yaml)"
grep -q 'nvidia.com/gpu' job.yaml && fail "a GPU for the CPU"
pod() { sed -nE '/^        args:$/{n;s/^ *- "(.*)"$/\1/;s/\\"/"/g;s/\\\\/\\/g;p}' "$1"; }
for i in 0 1 2; do JOB_COMPLETION_INDEX=$i sh -c "$(pod job.yaml) --threads 1" >log 2>&1 || fail "pod $i: $(cat log)"; done
expect 0 likeness study merge two.json -o k8s
diff -r single/results k8s/results || fail "pods made other pictures"
expect 0 likeness study k8s two.json -o "it's out" --tasks 7 --devices 0,1 --container i
grep -q 'nvidia.com/gpu: "2"' stdout || fail "what the Job asks for"
JOB_COMPLETION_INDEX=2 PATH=$PWD/bin:$PATH sh -c "$(pod stdout)" >words
printf '[%s]\n' study run two.json -o "it's out" --shard 3/7 --devices 0,1 | cmp - words || fail "a pod's command"
expect 2 likeness study k8s two.json -o k8s

# A journal that is none; a study of which nothing can be made.
mkdir none
echo nothing >none/journal.sqlite
expect 3 likeness study status none
grep -q 'none/journal.sqlite: expected what this program wrote' stderr || fail "a journal that is none: $(cat stderr)"
sed 's/sources.csv/no.csv/' two.json >no.json
expect 3 likeness study run no.json -o no
grep -q 'no job can be made: flux_20s_male_white_O-01: the study has no source of this cell; .*no.csv: cannot open.*; .likeness study check. names' stderr &&
    [ ! -e no ] || fail "no source at all: $(cat stderr)"

# Usage.
expect 2 likeness study new more
expect 2 likeness study status single --shard 1/2
grep -q -- "--shard: not an option of 'study status'; it belongs to: study jobs, study run" stderr || fail "an option of others"
expect 2 likeness study run two.json -o x --sample 1%
expect 2 likeness study run two.json -o x --prefer single
expect 2 likeness study run two.json -o x --shard 4/3
expect 2 likeness study run two.json -o x --devices gpu
expect 2 likeness study run two.json
# A run's folder that somebody moves away while it is in use: said, exit 7, and nothing is made in its place.
study slow.json '"qwen"' '"White_Male_20s", "Black_Female_30s"'
sed 's/"num_inference_steps": 2/"num_inference_steps": 20/' slow.json >slower.json
likeness study run slower.json -o away --threads 1 >stdout 2>stderr & pid=$!
until likeness study status away 2>/dev/null | grep -q 'running [1-9]'; do kill -0 $pid || fail "the run ended"; done
pkill -STOP -P $pid && kill -STOP $pid && mv away kept
pkill -CONT -P $pid && kill -CONT $pid
got=0
wait $pid || got=$?
[ $got = 7 ] && grep -q "moved or removed while it was in use" stderr || { cat stderr; fail "a moved folder: exit code $got"; }
[ ! -e away ] || fail "a moved folder is made anew"
mv kept away
expect 0 likeness study run slower.json -o away --threads 2
echo "study: all is well"
