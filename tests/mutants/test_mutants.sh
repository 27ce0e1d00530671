#!/bin/sh
# Breaks the models on purpose, one line at a time (mutants.txt), and requires that a test notices: a golden test of a
# whole family must fail on a stage beyond its bound, any other by an assertion; not by an error or a crash. In a build
# with sanitizers their reports notice too, but for leaks: a failed assertion leaves what its test holds. A change that
# cannot be made exactly once, or that does not compile, is an error.
#
# One file is compiled per mutant and linked in front of the libraries that are built already; of a header, the first
# file of its folder that includes it.
# Of the test "cli" the program itself has the mutant, also in its main file, and the case is one of tests/cli/cases, whole names only.
#   test_mutants.sh [PART-OF-A-NAME...]
# With names the unbroken code is shown to pass first; without, the other tests of the suite show it.
# MUTANTS=2/4: only the second quarter of the list. MUTANTS_RECENT=40: only mutants of files that the last 40 commits
# changed, and mutants that they added; all where git does not say which, and with LIKENESS_TEST_FULL.
set -eu
: "${BUILD_DIR:?}" "${SOURCE_DIR:?}"
list=$SOURCE_DIR/tests/mutants/mutants.txt
quarter=${MUTANTS:-1/1}
work=$BUILD_DIR/mutants/${quarter%/*}
mkdir -p "$work/scratch"
export TEST_TMPDIR=$work/scratch # other tests may run at the same time

die() {
    echo "$*" >&2
    exit 1
}

# link_command TEST: the command that links it, run from $BUILD_DIR, with @BEFORE@ in front of the objects and @OUT@ as
# its output.
link_command() {
    if [ "$1" = test_cli ]; then
        ninja -C "$BUILD_DIR" -t commands likeness | grep -e ' -o likeness ' | tail -n 1 |
            sed -E "s| -o likeness | -Wl,-S,-z,muldefs -o @OUT@ |; s| ([^ ]*CMakeFiles/likeness.dir/)| @BEFORE@ \\1|"
        return
    fi
    target=$(readlink "$BUILD_DIR/tests/$1" || echo "$1") # most tests are links to the program of their folder
    if [ -f "$BUILD_DIR/build.ninja" ]; then
        ninja -C "$BUILD_DIR" -t commands "tests/$target" | tail -n 1
    else
        echo "cd tests && $(cat "$BUILD_DIR/tests/CMakeFiles/$target.dir/link.txt")"
    fi | sed -E "s| -o [^ ]*$target | -Wl,-S -o @OUT@ |; s| ([^ ]*CMakeFiles/$target.dir/)| @BEFORE@ \\1|"
}

# compile_command FILE: how FILE is compiled, its source and object as @IN@ and @OUT@.
compile_command() {
    grep -F "\"command\":" "$BUILD_DIR/compile_commands.json" | grep -F -- "-c $SOURCE_DIR/$1\"" | head -n 1 |
        sed -E 's/^ *"command": "(.*)",?$/\1/; s/\\"/"/g; s/\\\\/\\/g; s| -o [^ ]+ -c [^ ]+$| -o @OUT@ -c @IN@|; s/-Werror//'
}

# mutate OLD NEW <in >out: replaces the one occurrence of OLD, text for text.
mutate() {
    OLD=$1 NEW=$2 awk '
        BEGIN { old = ENVIRON["OLD"]; new = ENVIRON["NEW"] }
        {
            at = index($0, old)
            if (at) {
                n++
                if (index(substr($0, at + length(old)), old)) n++
                $0 = substr($0, 1, at - 1) new substr($0, at + length(old))
            }
            print
        }
        END { exit n == 1 ? 0 : n ? 3 : 2 }'
}

sanitized=0
! grep -q '^LIKENESS_SANITIZE:BOOL=ON' "$BUILD_DIR/CMakeCache.txt" || sanitized=1
export TEST_PATIENCE_S=10
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

# run_test TEST CASE: runs $work/TEST, which has with a mutant in it, or its CASE alone: 0 noticed, 1 passed, 2
# failed otherwise, 3 skipped itself. Tests of the cuda device have the simulated GPU.
run_test() {
    status=0
    if [ "$1" = test_cli ]; then
        rm -rf "$work/bin" && mkdir "$work/bin" && ln -s "$BUILD_DIR"/make_* "$work/bin" && mv "$work/$1" "$work/bin/likeness"
        BUILD_DIR=$work/bin TEST_TMPDIR=$work sh "$SOURCE_DIR/tests/cli/test_cli.sh" "$2" >"$work/log" 2>&1 || status=$?
        case $(tail -n 1 "$work/log") in
        '1 cases passed, 0 failed, 0 skipped') return 1 ;;
        '0 cases passed, 1 failed, 0 skipped') return 0 ;;
        esac
        return 2
    fi
    libraries=${LD_LIBRARY_PATH:-}
    case $1 in test_cuda_*) libraries=$BUILD_DIR/gpusim${libraries:+:$libraries} ;; esac
    (cd "$SOURCE_DIR/tests" && LD_LIBRARY_PATH=$libraries TEST_ONLY="*${2:-}*" "$work/$1" ${2:+"$2"}) >"$work/log" 2>&1 || status=$?
    if grep -q 'Running 0 test' "$work/log"; then return 2; fi
    if [ $status -eq 0 ]; then return 1; fi
    if [ $status -eq 77 ]; then return 3; fi
    if [ $sanitized -eq 1 ] && grep -qE 'Sanitizer|runtime error' "$work/log"; then return 0; fi
    if [ $status -ge 128 ] || grep -q 'Sanitizer' "$work/log"; then return 2; fi
    if grep -q 'beyond their bounds' "$work/log"; then return 0; fi
    if grep -qs 'golden_run' "$SOURCE_DIR/tests/golden/$1.c"; then return 2; fi
    if grep -qE '\[  FAILED  \]|error: Failure!' "$work/log"; then return 0; fi
    return 2
}

program() { # TEST OBJECT-OR-NOTHING: links $work/TEST
    link=$(link_command "$1")
    case $link in *@OUT@*) ;; *) die "no link command for $1: build it first" ;; esac
    (cd "$BUILD_DIR" && eval "$(printf "%s\n" "$link" | sed "s|@BEFORE@|$2|; s|@OUT@|$work/$1|")")
}

# lacks FILE: this machine has not the instructions that FILE is compiled for, so nothing runs it.
lacks() {
    case $1 in
    *_avx2.c) instructions=avx2 ;;
    *_avx512.c) instructions=avx512dq ;;
    *_avx512_bf16.c | *_amx.c) instructions=avx512_bf16 ;; # tiles are made up for (tests/common/tiles.h)
    *)
        case $name in *" (avx512dq)") instructions=avx512dq ;; *) return 1 ;; esac
        ;;
    esac
    ! grep -qw "$instructions" /proc/cpuinfo
}

# What git says the last commits changed, in two files: names, and new lines of the list.
recent=
if [ -n "${MUTANTS_RECENT:-}" ] && [ -z "${LIKENESS_TEST_FULL:-}" ]; then
    since=HEAD~$MUTANTS_RECENT
    if git -C "$SOURCE_DIR" diff --name-only "$since" -- >"$work/changed" 2>/dev/null &&
        git -C "$SOURCE_DIR" diff -U0 "$since" -- "$list" >"$work/patch" 2>/dev/null; then
        sed -n 's/^+\([^+]\)/\1/p' "$work/patch" >"$work/added"
        recent=1
    fi
fi

n=0 bad=0 skipped=0 older=0 good=" "
fail() {
    echo "$name: $*"
    bad=$((bad + 1))
}

one_mutant() {
    unit=$file
    case $file in *.h) unit=$(cd "$SOURCE_DIR" && grep -l "#include \"$file\"" "$(dirname "$file")"/*.c | head -n 1) ;; esac
    source=$work/$file
    object=$work/mutant.o
    rm -rf "${work:?}/${file%%/*}"
    mkdir -p "$(dirname "$source")"
    rc=0
    mutate "$old" "$new" <"$SOURCE_DIR/$file" >"$source" || rc=$?
    case $rc in
    0) ;;
    2) fail "\"$old\" is not in $file" && return ;;
    *) fail "\"$old\" is in $file more than once" && return ;;
    esac
    if cmp -s "$SOURCE_DIR/$file" "$source"; then fail "$file did not change" && return; fi
    compile=$(compile_command "$unit")
    if [ -z "$compile" ]; then fail "$unit is not in compile_commands.json" && return; fi
    if [ "$unit" != "$file" ]; then source=$SOURCE_DIR/$unit; fi
    compile=$(printf "%s\n" "$compile" | sed "s|@IN@|$source|; s|@OUT@|$object|; s| -o | -g0 -iquote $work -o |")
    if ! (cd "$BUILD_DIR" && eval "$compile") >"$work/log" 2>&1; then
        fail "does not compile" && cat "$work/log" && return
    fi
    program "$test" "$object" || die "$name: does not link"
    rc=0
    run_test "$test" "$case" || rc=$?
    case $rc in
    0) echo "$name: noticed: $(sed -n '/beyond their bounds/{n;s/^ *//;p;q;}; /^ERROR: /{p;q;}; /runtime error/{p;q;}' "$work/log")" ;;
    1)
        if lacks "$unit"; then
            echo "$name: SKIP: this machine has no $instructions" && skipped=$((skipped + 1))
        else
            fail "NOT NOTICED by $test \"$case\""
        fi
        ;;
    3) # as it does without the mutant, in a build without CUDA kernels
        why=$(sed -n '/^SKIP: /{p;q;}' "$work/log") rc=0
        program "$test" "" || die "$test does not link"
        run_test "$test" "$case" || rc=$?
        if [ $rc -eq 3 ]; then echo "$name: $why" && skipped=$((skipped + 1)); else fail "skipped: $why"; fi
        ;;
    *) fail "failed other than by a stage or an assertion" && tail -n 20 "$work/log" ;;
    esac
}

wanted() {
    if [ $# -eq 1 ]; then return 0; fi
    subject=$1
    shift
    for part; do
        case $subject in *"$part"*) return 0 ;; esac
    done
    return 1
}

# Fields are separated by " | ".
total=$(grep -c '^[^#]' "$list") at=0
while IFS= read -r line; do
    case $line in '' | '#'*) continue ;; esac
    at=$((at + 1))
    [ $((1 + (at - 1) * ${quarter#*/} / total)) -eq "${quarter%/*}" ] || continue
    field() { printf "%s\n" "$line" | awk -F ' [|] ' -v i="$1" 'NF != 5 { exit 1 } { print $i }'; }
    name=$(field 1) || die "mutants.txt: expected NAME | FILE | OLD | NEW | TEST CASE, got: $line"
    wanted "$name" "$@" || continue
    if [ -n "$recent" ] && ! grep -qxF -e "$(field 2)" "$work/changed" && ! grep -qxF -e "$line" "$work/added"; then
        older=$((older + 1))
        continue
    fi
    file=$(field 2) old=$(field 3) new=$(field 4) run=$(field 5)
    test=test_${run%% *} case=${run#"${run%% *}"}
    case=${case# }
    case $#$good in
    0* | *" <$run> "*) ;;
    *)
        program "$test" "" || die "$test does not link"
        rc=0
        run_test "$test" "$case" || rc=$?
        [ $rc -eq 1 ] || [ $rc -eq 3 ] || { cat "$work/log" && die "the unbroken code fails $test \"$case\""; }
        good="$good<$run> "
        ;;
    esac
    n=$((n + 1))
    one_mutant
done <"$list"

rm -rf "$work"
[ $older -eq 0 ] ||
    echo "SKIP: $older mutants of files that the last $MUTANTS_RECENT commits did not change; tools/test --full has all"
echo "$n mutants, $bad not as required, $skipped skipped"
[ $((n + older)) -gt 0 ] && [ "$bad" -eq 0 ]
