#!/bin/sh
# Every command that writes is ended at a random moment, by a signal, a limit of the file size or a full disk: what it
# writes is there whole or not at all, what it reads is as it was, and the next run leaves no temporary file. 4 moments
# each, with LIKENESS_TEST_FULL 100. The disk is a tmpfs of a few kilobytes, where this user may mount one.
set -u
folder=$TEST_TMPDIR/kills
PATH=$BUILD_DIR:$PATH
OMP_NUM_THREADS=1
export PATH OMP_NUM_THREADS
unset HF_HUB_CACHE HF_HOME
rm -rf "$folder"
mkdir -p "$folder" && cd "$folder" || exit 1
make_checkpoint --preset tiny m && make_checkpoint --family qwen25_vl --preset tiny vl && make_face --size 64x80 face.jpg && make_face --size 24x32 small.png || exit 1
printf 'prompt_id,model_tag,seed,cfg,file_path\n1,m,0,4,face.jpg\n1,m,1,4,small.png\n1,m,2,4,./face.jpg\n1,m,3,4,./small.png\n' >log.csv
item=flux_20s_male_black
for p in O-01 O-02 V-03; do
    for arm in edited preserved; do
        echo "{\"item_id\":\"${item}_$p.$arm\",\"scores\":{\"edit_success\":4,\"skin_tone\":3,\"race_drift\":2,\"gender_drift\":1,\"age_drift\":1}}"
    done
done >answers.jsonl
printf 'item_id,axis,score,reviewer,time,reason\n%s,edit_success,2,Doe,2026-01-17,why\n%s,race_drift,1,Doe,2026-01-17,why\n' \
    ${item}_O-01 ${item}_O-02 >review.csv
for p in O-01 O-02; do echo "{\"item_id\":\"${item}_$p\",\"source\":\"small.png\",\"edited\":\"small.png\"}"; done >pairs.jsonl
echo "{\"workerId\":\"w\",\"imageId\":\"${item}_O-01\",\"arm\":\"edited\",\"scores\":{\"edit_success\":4}}" >ratings.jsonl
printf 'file_path,prompt_id,model_tag,seed,gender\na.png,1,m,0,Male\nb.png,1,m,1,Female\n' >labels.csv

# The command lines of which each is ended.
cat >commands <<T
edit -m m -r face.jpg -o out/o.png --max-sequence-length 32 --num-inference-steps 1 -W 64 -H 64 -p x -q
report --primary answers.jsonl --bootstrap 10 --date 2026-01-01 -o out
review import review.csv --review out/journal
t2i metrics --labels labels.csv --ref uniform --bootstrap 10 -o out
t2i post-filter --labels labels.csv --target uniform --attribute gender --tol 0.6 -o out/kept.csv
judge run --slot primary -m vl --pairs pairs.jsonl -o out/judged --mode direct -q -t 1
judge --pairs pairs.jsonl
t2i label --log log.csv --labeler vlm -m vl --faces $SOURCE_DIR/tests/golden/data/yunet/tiny.safetensors --batch 1 -q -t 1 --overwrite -o out/l.csv
ratings evaluations --ratings ratings.jsonl --salt x
embed -m m -p x --max-sequence-length 32 -q -o out/e.safetensors
quantize m -o out/q
T

inputs() { find m vl face.jpg small.png ./*.jsonl ./*.csv -type f | sort | xargs sha256sum; }
# Below $1, from a seed: the moments are the same ones, as far as the machine is.
next() { awk -v n="$1" -v seed="$i$command" 'BEGIN { for (k = 1; k <= length(seed); k++) s = (s * 31 + index("0123456789abcdefghijklmnopqrstuvwxyz", substr(seed, k, 1))) % 1000003; print s * 7919 % 1000003 % n }'; }

# Each file of out is one of the whole run's, byte for byte; a journal is a beginning of it in whole lines.
whole() {
    find out \( -name '.lk-*' -o -name '*.partial' \) -prune -o -type f -print | while read -r file; do
        cmp -s "$file" "whole/${file#out/}" && continue
        case $file in
        out/journal | out/judged)
            head -c "$(stat -c %s "$file")" "whole/${file#out/}" | cmp -s - "$file" && [ -z "$(tail -c 1 "$file")" ] && continue ;;
        esac
        echo "$1: $file is half there"
    done
}
: >wrong

[ -n "${LIKENESS_TEST_FULL:-}" ] && moments=100 || moments=4
before=$(inputs)
while read -r command; do
    rm -rf out whole && mkdir out
    likeness $command >/dev/null 2>&1 </dev/null || echo "$command: fails without being ended" >>wrong
    mv out whole && mkdir out
    size=$(($(du -sk whole | cut -f 1) + 1))
    start=$(date +%s%N)
    likeness $command >/dev/null 2>&1 </dev/null
    took=$((($(date +%s%N) - start) / 1000000 + 2))
    i=0
    while [ $i -lt $moments ]; do
        i=$((i + 1))
        rm -rf out && mkdir out
        if [ $((i % 4)) = 0 ]; then
            (ulimit -f $(next 24) && exec likeness $command) >/dev/null 2>&1 </dev/null
        elif [ $((i % 4)) = 2 ] && unshare -m true 2>/dev/null; then
            rm -rf after && mkdir after
            unshare -m sh -c 'mount -t tmpfs -o size=$1k none out && shift && { "$@"; code=$?; cp -r out/. after; exit $code; }' \
                sh $((4 + $(next 4) * 4 + $(next $size))) likeness $command >/dev/null 2>&1 </dev/null
            case $? in 0 | 3 | 6 | 7) ;; *) echo "$command: ends with another code on a full disk" >>wrong ;; esac
            rm -rf out && mv after out
        else
            [ $((i % 4)) = 1 ] && signal=KILL || signal=TERM
            after=$(next $took)
            likeness $command >/dev/null 2>&1 </dev/null & pid=$!
            sleep "$(printf '%d.%03d' $((after / 1000)) $((after % 1000)))"
            kill -$signal $pid 2>/dev/null
            wait $pid
        fi 2>/dev/null
        whole "$command" >>wrong
        rm -rf out/journal out/q # which nothing replaces
        likeness $command >/dev/null 2>&1 </dev/null || echo "$command: the next run fails" >>wrong
        find out -name '.lk-*' >>wrong
        diff -r out whole >>wrong
    done
done <commands
# A report over an older one, when the disk is full after some files: all of one or all of the other.
report() { likeness report --primary answers.jsonl --bootstrap 10 --title "$1" --date 2026-01-01 -o "$2" >/dev/null 2>&1; }
report old old && report new new || echo "report fails" >>wrong
for blocks in 4 16 40 150 400; do
    rm -rf out && cp -r old out
    (ulimit -f $blocks && report new out)
    diff -r out old >/dev/null || diff -r out new >>wrong
    find out -name '.lk-*' >>wrong
done
[ "$before" = "$(inputs)" ] || echo "an input changed" >>wrong
cat wrong
[ ! -s wrong ]
