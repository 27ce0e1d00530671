#!/bin/sh
# Whatever surrounds a command (language, time zone, no home, closed standard streams, limits of memory, files and file
# size), it gives the result that it gives elsewhere, or ends with a sentence and a code of its own. With
# LIKENESS_TEST_FULL more commands.
set -u
folder=$TEST_TMPDIR/environment
PATH=$BUILD_DIR:$PATH
OMP_NUM_THREADS=1
export PATH OMP_NUM_THREADS
unset HF_HUB_CACHE HF_HOME
rm -rf "$folder"
mkdir -p "$folder" && cd "$folder" || exit 1
make_checkpoint --preset tiny m && make_face --size 64x80 face.jpg || exit 1
for p in O-01 O-02 V-03; do
    echo "{\"item_id\":\"flux_20s_male_black_$p\",\"scores\":{\"edit_success\":4,\"skin_tone\":3,\"race_drift\":2,\"gender_drift\":1,\"age_drift\":1}}"
done >answers.jsonl
printf 'file_path,prompt_id,model_tag,seed,gender\na.png,1,m,0,Male\nb.png,1,m,1,Female\n' >labels.csv
printf 'x\n0.5\n0.25\n0.04\n' >numbers

cat >commands <<'T'
edit -m m -r face.jpg -o out/o.png --max-sequence-length 32 --num-inference-steps 1 -W 64 -H 64 -p x -q
report --primary answers.jsonl --bootstrap 10 --date 2026-01-01 -o out
t2i metrics --labels labels.csv --ref uniform --bootstrap 10 -o out
plan -m flux2-dev --json
stats adjust numbers --value x
chat -m m -p x
no-such-command
T
if [ -n "${LIKENESS_TEST_FULL:-}" ]; then
    make_checkpoint --family qwen25_vl --preset tiny vl && make_face --size 24x32 small.png || exit 1
    echo '{"item_id":"flux_20s_male_black_O-01","source":"small.png","edited":"small.png"}' >pairs.jsonl
    echo '{"workerId":"w","imageId":"flux_20s_male_black_O-01","arm":"edited","scores":{"edit_success":4}}' >ratings.jsonl
    printf 'item_id,axis,score,reviewer,time,reason\nflux_20s_male_black_O-01,race_drift,1,Doe,2026-01-17,why\n' >review.csv
    likeness edit -m m -p x -q -o made.png --max-sequence-length 32 --num-inference-steps 1 -W 64 -H 64 >/dev/null || exit 1
    (cd m && find . -type f | sort | xargs sha256sum) >SUMS
    printf 'path,race,gender,age\nsmall.png,White,Male,20s\n' >sources.csv
    echo '{"schema":1,"study":"s","sources":"sources.csv","models":{"flux":{"path":"m","num_inference_steps":1,"max_sequence_length":32,"allow_cut":true,"width":64,"height":64}},"experiments":{"exp1":{"preset":"custom","prompts":["O-01"],"sources":["White_Male_20s"]}}}' >study.json
    echo '{"source_id":"White_Male_20s","path":"small.png"}' >faces.jsonl
    cat >>commands <<'T'
embed -m m -p x --max-sequence-length 32 -q -o out/e.safetensors
quantize m -o out/q
verify m --manifest SUMS
show made.png
models --json
judge -r face.jpg -r face.jpg
judge --pairs pairs.jsonl
judge run --slot primary -m vl --pairs pairs.jsonl -o out/judged --mode direct -q -t 1
judge prompt --pairs pairs.jsonl
judge import answers.jsonl
judge agreement --primary answers.jsonl --secondary answers.jsonl
feature extract faces.jsonl -m vl -o out/f --mode forced -q -t 1
review list --primary answers.jsonl --secondary answers.jsonl
review import review.csv --review out/journal
ratings evaluations --ratings ratings.jsonl --salt x
sample pairs500
study new -o out/s.json
study check study.json
study plan study.json
study jobs study.json --json
survey cost 000
t2i prompts -o out/p.csv
t2i post-filter --labels labels.csv --target uniform --attribute gender --tol 0.6 -o out/kept.csv
stats bootstrap numbers --value x
completions bash
help edit
T
fi
# Where no locale can be made, none is ever set.
if localedef -i de_DE -f UTF-8 "$folder/de_DE.UTF-8" 2>localedef.err; then
    [ "$(LOCPATH=$folder LC_ALL=de_DE.UTF-8 /usr/bin/printf %.1f 1,5)" = 1,5 ] || { echo "the locale is not German"; exit 1; }
else
    echo "no German locale here ($(tail -n 1 localedef.err)); whether the program sets one at all:"
    ! readelf --dyn-syms -W "$BUILD_DIR/likeness" | grep -E 'setlocale|newlocale|uselocale' || exit 1
fi
export LOCPATH="$folder"
cat >surroundings <<'T'
LC_ALL=de_DE.UTF-8 "$@"
TZ=Pacific/Auckland "$@"
unset HOME; "$@"
"$@" <&-
"$@" >&-
"$@" 2>&-
exec <&- >&- 2>&-; "$@"
"$@" >/dev/full
ulimit -v 250000; "$@"
ulimit -v 60000; "$@"
ulimit -n 5; "$@"
ulimit -n 12; "$@"
ulimit -f 8; "$@"
ulimit -s 256; "$@"
T
# A sanitizer's own memory does not fit into such limits, and it sees a leak of the C library's, which reads LOCPATH.
if grep -q '^LIKENESS_SANITIZE:BOOL=ON' "$BUILD_DIR/CMakeCache.txt"; then
    sed -i '/ulimit -[vs]/d' surroundings
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
fi
: >wrong
# The result: what is printed and written.
while read -r command; do
    rm -rf out whole && mkdir out
    likeness $command >whole.out 2>whole.err </dev/null
    code=$?
    mv out whole
    while read -r around; do
        mkdir out
        sh -c "$around" sh likeness $command >got.out 2>got.err </dev/null
        got=$?
        case $around in *'>&-'* | *'>/dev/full'*) cp whole.out got.out ;; esac
        if [ $got = $code ]; then
            cmp whole.out got.out >>wrong 2>&1 && diff -r whole out >>wrong || echo "$around: likeness $command: another result" >>wrong
        elif [ $got -lt 2 ] || [ $got -gt 7 ]; then
            echo "$around: likeness $command: ends with $got: $(tail -n 1 got.err)" >>wrong
        elif [ ! -s got.err ]; then
            case $around in *'2>&-'*) ;; *) echo "$around: likeness $command: ends with $got and says nothing" >>wrong ;; esac
        fi
        find out -name '.lk-*' >>wrong
        rm -rf out
    done <surroundings
done <commands
cat wrong
[ ! -s wrong ]
