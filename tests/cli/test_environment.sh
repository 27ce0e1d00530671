#!/bin/sh
# Whatever surrounds a command (language, time zone, no home, closed standard streams, limits of memory, files and file
# size), it gives the result that it gives elsewhere, or ends with a sentence and a code of its own.
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
printf '1.5 2.5 4\n' | tr ' ' '\n' >numbers

cat >commands <<'T'
edit -m m -r face.jpg -o out/o.png --max-sequence-length 32 --num-inference-steps 1 -W 64 -H 64 -p x -q
report --primary answers.jsonl --bootstrap 10 --date 2026-01-01 -o out
t2i metrics --labels labels.csv --ref uniform --bootstrap 10 -o out
plan -m flux2-dev --json
stats adjust numbers
chat -m m -p x
no-such-command
T
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
# A sanitizer's own memory does not fit into such limits.
! grep -q '^LIKENESS_SANITIZE:BOOL=ON' "$BUILD_DIR/CMakeCache.txt" || sed -i '/ulimit -[vs]/d' surroundings
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
