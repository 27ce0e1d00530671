#!/bin/sh
# Runs the program as users do. Each folder cases/NAME holds `cmd` (a shell script, run in an empty folder with the
# fixtures below) and what it must give: `stdout`, `stderr` (no file: nothing may be printed) and `code` (no file: 0).
# In expected text a line "..." stands for any number of lines and * for any text within a line.
#   sh tests/cli/test_cli.sh [PATTERN]      PATTERN: only these cases, as edit_*
set -u
cases=$SOURCE_DIR/tests/cli/cases
scratch=$TEST_TMPDIR/cli
PATH=$BUILD_DIR:$PATH
HF_HUB_CACHE=$scratch/hf
OMP_WAIT_POLICY=passive
unset NO_COLOR HF_HOME OMP_NUM_THREADS LIKENESS_CPU_ISA
export PATH HF_HUB_CACHE OMP_WAIT_POLICY
rm -rf "$scratch"
mkdir -p "$scratch/fixtures" "$scratch/hf" "$scratch/cases"

fixtures() {
    cd "$scratch/fixtures" || exit 1
    make_checkpoint --preset tiny tiny || exit 1
    make_checkpoint --family qwen25_vl --preset tiny vl || exit 1
    make_lora --share 0.3 tiny style.safetensors || exit 1
    make_lora --share 0.3 --rank 40 --seed 2 --only single_ tiny Turbo.safetensors || exit 1
    make_face --size 64x80 face.jpg || exit 1
    make_face --size 96x64 --skin 6 --hair 1 second.png || exit 1
    make_face --size 40x40 small.png || exit 1
    make_face --size 80x100 --skin 6 --hair 1 edited.png || exit 1
    head -c 700 face.jpg >truncated.jpg
    : >empty.png
    echo "not an image" >text.jpg
    cat >ratings.csv <<'TABLE'
item,rater,score
i1,a,1
i1,b,2
i1,c,1
i2,a,3
i2,b,3
i2,c,NA
i3,a,5
i3,b,4
i3,c,5
i4,a,2
i4,b,2
i4,c,2
TABLE
    cat >pairs.csv <<'TABLE'
judge_a,judge_b,group,source,label,p
1,2,red,s1,0,0.01
2,2,blue,s1,1,0.04
3,3,red,s2,0,0.03
,4,blue,s2,1,
5,5,red,s3,1,0.2
4,4,blue,s3,1,0.005
5,4,green,s4,0,1
2,NA,green,s4,0,NA
1,1,red,s5,1,nan
TABLE
    # An edit of two steps with a short prompt, the quickest that goes through every stage.
    cat >edit_tiny <<'SCRIPT'
#!/bin/sh
output=$1
shift
exec likeness edit -m tiny -o "$output" --max-sequence-length 32 --num-inference-steps 2 -t 2 -q "$@"
SCRIPT
    chmod +x edit_tiny
}
(fixtures) || exit 1

# matches EXPECTED GOT
matches() {
    awk -v expected="$1" -v got="$2" '
        function regex(line,   i, c, out) {
            for (i = 1; i <= length(line); i++) {
                c = substr(line, i, 1)
                if (c == "*") out = out ".*"
                else if (index("\\^$.[]|()?+{}/", c)) out = out "\\" c
                else out = out c
            }
            return "^" out "$"
        }
        function fits(i, j) {
            for (; i <= n; i++) {
                if (want[i] == "...") {
                    for (; j <= m + 1; j++) if (fits(i + 1, j)) return 1
                    return 0
                }
                if (j > m || have[j] !~ regex(want[i])) return 0
                j++
            }
            return j == m + 1
        }
        BEGIN {
            while ((getline line < expected) > 0) want[++n] = line
            while ((getline line < got) > 0) have[++m] = line
            exit !fits(1, 1)
        }'
}

passed=0
failed=0
skipped=0
for folder in "$cases"/${1:-*}/; do
    name=$(basename "$folder")
    work=$scratch/cases/$name
    mkdir -p "$work"
    ln -s "$scratch"/fixtures/* "$work"
    got=$scratch/cases/$name.got
    mkdir -p "$got"
    (cd "$work" && PATH=$work:$PATH && export PATH && sh "$folder/cmd") >"$got/stdout" 2>"$got/stderr" </dev/null
    code=$?
    if [ $code -eq 77 ]; then
        echo "SKIP: $name: $(cat "$got/stderr")"
        skipped=$((skipped + 1))
        continue
    fi
    bad=
    expected=$(cat "$folder/code" 2>/dev/null || echo 0)
    [ "$code" = "$expected" ] || bad="$bad; exit code: expected $expected, got $code"
    for stream in stdout stderr; do
        file=$folder/$stream
        [ -e "$file" ] || file=/dev/null
        matches "$file" "$got/$stream" && continue
        bad="$bad; $stream differs"
        diff "$file" "$got/$stream"
    done
    if [ -n "$bad" ]; then
        echo "FAIL: $name$bad"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
done
echo "$passed cases passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
