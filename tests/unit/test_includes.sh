#!/bin/sh
# Includes go one way: tools -> eval, bench -> models -> weights, kernels -> engine -> engine/base. The audit reads no
# weights and calls no op itself: models do. bench and eval are siblings; bench measures the statistics, so it may look.
set -eu
cd "$SOURCE_DIR"
bad=0
# check FOLDER ALLOWED...: project includes of FOLDER's files must begin with one of the folders allowed.
check() {
    folder=$1
    shift
    [ -d "$folder" ] || return 0
    found=$(find "$folder" -path tools/gpusim -prune -o \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -exec grep -Hn '^#include "' {} + |
        grep -vE "#include \"(gpusim\.h\"|($(echo "$@" | tr ' ' '|'))/)" || true)
    if [ -n "$found" ]; then
        echo "$folder may include only: $*; found:"
        echo "$found"
        bad=1
    fi
}
check engine engine
check engine/base engine/base
check engine/image engine/base engine/image
check kernels kernels engine
check weights weights engine
check models models weights kernels engine
check eval eval models engine
check eval/document eval/document eval/data engine
check eval/stats eval/stats eval/study engine
check eval/scores eval/scores eval/study engine
check eval/report eval/report eval/findings eval/document eval/human eval/judge eval/scores eval/stats eval/study eval/data engine
check eval/intake eval/intake eval/findings eval/design eval/document eval/report eval/scores eval/stats eval/study eval/data engine
check eval/findings eval/findings eval/design eval/document eval/stats eval/study eval/data engine
check eval/survey eval/survey eval/human eval/scores eval/study eval/data engine
check eval/hosted eval/hosted eval/net eval/document eval/study engine
check eval/net eval/net engine
check eval/t2i eval/t2i eval/hosted eval/document eval/scores eval/stats eval/study eval/data engine
check eval/design eval/design eval/hosted eval/judge eval/scores eval/study eval/t2i eval/data models engine
check bench bench eval/stats eval/study models weights kernels engine
check tools tools eval bench models weights kernels engine
check tools/gpusim/driver driver check counters ptx exec numerics
check tools/gpusim/check check counters exec numerics
check tools/gpusim/counters counters exec numerics
check tools/gpusim/ptx ptx exec numerics
check tools/gpusim/exec exec numerics
check tools/gpusim/numerics tools/gpusim/numerics
if grep -rnE 'lk_(tensor|device|arena)' engine/base; then
    echo "engine/base knows no tensor"
    bad=1
fi
# sources...: the files that the rules of size are about.
sources() {
    find . -path './build*' -prune -o -path ./.git -prune -o \( "$@" \) -print
}
long=$(sources -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' -o -name '*.py' |
    xargs wc -l | awk '$1 > 500 && $2 != "total"')
if [ -n "$long" ]; then
    echo "files over 500 lines: $long"
    bad=1
fi
crowded=$(sources -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' | grep -v '^./tests/' | sed 's|/[^/]*$||' |
    sort | uniq -c | awk '$1 > 40')
if [ -n "$crowded" ]; then
    echo "folders of more than 40 sources: $crowded"
    bad=1
fi
# Scratch files that a commit took along stand at the top level.
folders='bench engine eval kernels models tests tools weights'
files='ARCHITECTURE.md CHANGELOG.md CITATION.cff CMakeLists.txt CMakePresets.json CONTRIBUTING.md LICENSE README.md SECURITY.md'
strange=$(git ls-files 2>/dev/null | sed 's|/.*||' | sort -u |
    grep -vxE "\..*|$(echo $folders $files | tr ' ' '|')" || true)
if [ -n "$strange" ]; then
    echo "git keeps other files and folders at the top level than these:" $folders $files
    echo "found: $strange"
    bad=1
fi
exit $bad
