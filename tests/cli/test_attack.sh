#!/bin/sh
# A working set-up of every command, and tools/attack on it: 2,000 damaged files, with LIKENESS_TEST_FULL 100,000.
# ATTACK_CORPUS is a folder for what is worth to be damaged further.
set -u
[ -w /dev/shm ] && folder=$(mktemp -d /dev/shm/likeness-attack-XXXXXX) || folder=$TEST_TMPDIR/attack # on a disk it takes twice as long
trap 'rm -rf "$folder" "$folder".worker-*' EXIT
trap 'exit 1' HUP INT TERM
PATH=$BUILD_DIR:$PATH
OMP_NUM_THREADS=1
export PATH OMP_NUM_THREADS
unset HF_HUB_CACHE HF_HOME
mkdir -p "$folder" "$TEST_TMPDIR" && rm -f "$TEST_TMPDIR"/survivor-* && cd "$folder" || exit 1
make_checkpoint --preset tiny m || exit 1
(cd m && find . -type f | sort | xargs sha256sum) >SUMS
make_face --size 32x32 face.jpg && make_face --size 24x32 small.png || exit 1
likeness edit -m m -o recipe.png --max-sequence-length 32 --num-inference-steps 1 -W 32 -H 32 -p x -q >out.txt || exit 1
item=flux_20s_male_black
for p in O-01 O-02 V-03; do
    echo "{\"item_id\":\"$item"_"$p.edited\",\"source\":\"face.jpg\",\"edited\":\"small.png\"}"
    for arm in edited preserved; do
        echo "{\"item_id\":\"$item"_"$p.$arm\",\"scores\":{\"edit_success\":4,\"skin_tone\":3,\"race_drift\":2,\"gender_drift\":1,\"age_drift\":1}}" >&3
    done
done >images.jsonl 3>answers.jsonl
{
    echo item_id,kind,who,axis,score
    for p in O-01 O-02 V-03; do
        for axis in edit_success skin_tone race_drift; do
            echo "${item}_$p.edited,judge,primary,$axis,4"
            echo "${item}_$p.edited,judge,secondary,$axis,2"
        done
    done
} >scores.csv
printf 'item_id,axis,score,reviewer,time,reason\n%s,edit_success,2,Doe,2026-01-17,why\n' ${item}_O-01 >review.csv
echo "{\"item_id\":\"${item}_O-01\",\"axis\":\"race_drift\",\"score\":2,\"reviewer\":\"A\",\"reason\":\"light\"}" >review.jsonl
make_ratings --seed 7 images.jsonl ratings.jsonl participants.csv || exit 1
{
    echo workerId,imageId,editQuality,skinToneShift,raceDrift,genderDrift,ageDrift,duration_ms,taskId
    echo "w1,${item}_catB_001,4,lighter,2,1,off-target,15200,t7"
    echo "w2,${item}_catB_001,5,same,2,1,on-target,15300,t7"
} >ratings.csv
{
    echo item,rater,x,y,g,p
    for i in 1 2 3 4 5 6; do for r in a b; do echo "i$i,$r,$i.5,$((i % 5 + 1)),g$((i % 2)),0.0$i"; done; done
} >values.csv
likeness t2i prompts -o prompts.csv 2>/dev/null || exit 1
sed -n '1,6p' prompts.csv >some.csv && mv some.csv prompts.csv
{
    echo file_path,prompt_id,model_tag,seed,cfg,face_found,gender,gender_conf,arm
    for s in 0 1 2 3 4 5; do echo "a$s.png,p,sdxl,$s,6.5,true,Male,0.$s,"; echo "b$s.png,p,sdxl,$((s + 6)),6.5,true,Female,0.9,"; done
} >labels.csv

# Weights in four bits, prompts encoded ahead, lists of jobs.
likeness quantize m -o q >out.txt || exit 1
likeness embed -m m -p x --max-sequence-length 32 -q -o e.safetensors >out.txt || exit 1
echo '{"output":"result/a.png","prompt":"x","seed":3,"width":32,"height":32,"num_inference_steps":1,"guidance_scale":1.5,"images":[]}' >jobs.jsonl
for seconds in 1.0,1.1,0.9 0.8,0.82,0.79; do
    echo "{\"likeness_bench\":1,\"model\":\"flux2-dev\",\"device\":\"one\",\"dtype\":\"bf16\",\"quantize\":\"none\",\"width\":64,\"height\":64,\"references\":1,\"num_inference_steps\":2,\"stages\":[{\"name\":\"vae_encode\",\"seconds\":[0,0]},{\"name\":\"image\",\"seconds\":[$seconds]}]}"
done >both
sed -n 1p both >old.json && sed -n 2p both >new.json
# A model that looks, its scores, and what it says of sources.
make_checkpoint --family qwen25_vl --preset tiny vl || exit 1
echo "{\"item_id\":\"${item}_O-01\",\"source\":\"face.jpg\",\"edited\":\"small.png\"}" >pairs.jsonl
likeness judge run --slot primary -m vl --pairs pairs.jsonl -o judged.jsonl --mode direct -q -t 1 || exit 1
echo '{"source_id":"Black_Male_20s","path":"face.jpg"}' >sources.jsonl
likeness feature extract sources.jsonl -m vl -o features.jsonl --mode forced -q -t 1 || exit 1
likeness judge --pairs images.jsonl >pixel.jsonl || exit 1
# A study, its pictures, its journal; candidates for sources and who chose them.
make_face --size 64x64 a.png && make_face --size 64x64 --skin 5 b.png || exit 1
printf 'path,race,gender,age\na.png,White,Male,20-29\nb.png,South-east Asian,Female,more than 70\n' >sources.csv
cat >study.json <<'T'
{"schema": 1, "study": "two", "study_seed": 42, "prompt_scheme": "ov", "sources": "sources.csv",
 "models": {"flux": {"path": "m", "num_inference_steps": 1, "max_sequence_length": 32, "allow_cut": true, "width": 32, "height": 32, "seed": 7}},
 "experiments": {"exp1": {"preset": "custom", "models": ["flux"], "prompts": ["O-01", "V-01"],
   "sources": ["White_Male_20s", "SoutheastAsian_Female_70plus"]}},
 "analysis": {"judge_prompt": "v1", "temperature": 0.1, "threshold.drift": 3, "bootstrap": 1000, "alpha": 0.05, "sample": "pairs500"}}
T
cp study.json other.json
likeness study run study.json -o made --threads 1 >out.txt || exit 1
for k in 1 2; do likeness study run study.json -o sharded --threads 1 --shard $k/2 >out.txt || exit 1; done
make_portraits --size 16 portraits || exit 1
cp portraits/labels.csv portraits.csv
likeness study pools portraits.csv -o portraits/pools.jsonl >out.txt || exit 1
sed -nE '1,84s/^\{"pool": 1, ("source_id": "[^"]*"), ("file": "[^"]*")\}$/{"time": "2026-01-17T10:00:00Z", "actor": "A", "action": "choose", \1, "pool": 1, \2, "criteria": {"frontal_face": true, "clear_focus": true, "proper_lighting": true, "identifiable_features": true, "neutral_expression": true, "upright_posture": true}, "note": ""}/p' \
    portraits/pools.jsonl >portraits/selection_log.jsonl
likeness study finalize portraits/pools.jsonl -o set >out.txt || exit 1
# A survey with answers.
printf '{"study":"mini","code":"C1ABCDEF","approval":"none is needed","investigator":"A","contact":"a@b.org","retain_until":"2029-01-17","tasks":1,"items":[{"id":"%s","source":"a.png","edited":"b.png","preserved":"a.png"}]}' ${item}_O-01 >survey.json
likeness survey pilot survey.json --pilot 3 >out.txt || exit 1
echo 'pilot-0,C1ABCDEF' >codes.csv
{
    echo prompt_id,model_tag,seed,cfg,file_path,arm,steps,mode
    for s in 0 1 2 3 4 5; do echo "p,sdxl,$s,6.5,a$s.png,none,50,text"; echo "p,sdxl,$((s + 6)),6.5,b$s.png,none,50,text"; done
} >log.csv
echo "{\"imageId\":\"${item}_O-01\",\"expected\":{\"editQuality\":1,\"raceDrift\":1}}" >gold.jsonl
# Command lines, a word in each line.
mkdir words
words() { tr ' ' '\n' >"words/$1"; }
echo edit -m not-there -r face.jpg -p x -W 64 -H 64 --steps 3 -s 7 --guidance-scale 4 --true-cfg-scale 2 -n y -o result/o.png | words edit
echo plan -m m -W 64 -H 64 --max-sequence-length 32 --references 1 --device sm_80 --vram 16G --json | words plan
echo judge -r face.jpg -r small.png | words judge
echo stats kappa values.csv --x y --y y --weights quadratic | words stats
echo sample strata126 --scores scores.csv --json | words sample
echo report --scores scores.csv --bootstrap 10 --date 2026-01-01 --title x -o result/out | words report
echo t2i post-filter --labels labels.csv --target uniform --attribute gender --tol 0.6 -o result/kept.csv | words post-filter
echo study plan study.json --device sm_80 | words study
echo review set ${item}_O-01 race_drift 2 --review result/journal --by A.B. --time 2026-01-17T10:00:00Z --note n | words review
echo survey cost 000 | words survey
[ -n "${LIKENESS_TEST_FULL:-}" ] && default=100000 || default=2000
attack ${ATTACK_CORPUS:+--corpus "$ATTACK_CORPUS"} --runs "${ATTACK_RUNS:-$default}" --seed "${ATTACK_SEED:-1}" --workers "$(nproc)" .
code=$?
[ $code = 0 ] || cp survivor-* "$TEST_TMPDIR" 2>/dev/null
exit $code
