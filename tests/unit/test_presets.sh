#!/bin/sh
# CMakePresets.json: cmake reads it, CONTRIBUTING names each preset, and a preset sets what CMakeLists.txt knows.
set -u
cd "$SOURCE_DIR" || exit 1
bad=0
names=$(cmake --list-presets | sed -nE 's/^ *"([a-z]+)".*/\1/p')
[ "$(echo $names)" = "dev cuda clang asan fuzz static" ] || { echo "presets: $names"; bad=1; }
for name in $names; do
    grep -q "\`$name\` (\|\`$name\`, " CONTRIBUTING.md || { echo "CONTRIBUTING.md does not name the preset $name"; bad=1; }
done
for option in $(grep -o '"LIKENESS_[A-Z]*"' CMakePresets.json | tr -d '"' | sort -u); do
    grep -q "option($option " CMakeLists.txt kernels/cuda/runtime/modules.cmake || { echo "no option $option"; bad=1; }
done
exit $bad
