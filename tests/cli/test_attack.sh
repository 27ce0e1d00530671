#!/bin/sh
# A working set-up of every command, and tools/attack on it: 2,000 damaged files, with LIKENESS_TEST_FULL 100,000.
set -u
folder=$TEST_TMPDIR/attack
PATH=$BUILD_DIR:$PATH
OMP_NUM_THREADS=1
export PATH OMP_NUM_THREADS
unset HF_HUB_CACHE HF_HOME
rm -rf "$folder"
mkdir -p "$folder" && cd "$folder" || exit 1
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
    for s in 0 1 2 3 4 5; do echo "a$s.png,p,sdxl,$s,6.5,true,Male,0.$s,"; echo "b$s.png,p,sdxl,$s,6.5,true,Female,0.9,"; done
} >labels.csv
[ -n "${LIKENESS_TEST_FULL:-}" ] && default=100000 || default=2000
exec attack --runs "${ATTACK_RUNS:-$default}" --seed "${ATTACK_SEED:-1}" .
