#!/bin/sh
# The archive that cpack makes runs from any folder, and needs no C library newer than 2.34; the Debian package names what
# it depends on.
set -eu
scratch=$TEST_TMPDIR/package
rm -rf "$scratch"
mkdir -p "$scratch/elsewhere"
cd "$scratch"
cpack -G TGZ --config "$BUILD_DIR/CPackConfig.cmake" -B "$scratch" >log 2>&1 || { cat log && exit 1; }
tar -xzf likeness-*.tar.gz -C elsewhere
program=$(echo "$scratch"/elsewhere/likeness-*/bin/likeness)
for file in share/doc/likeness/LICENSE share/doc/likeness/CITATION.cff share/man/man1/likeness.1 lib/liblikeness.a; do
    [ -s "${program%/bin/likeness}/$file" ] || { echo "not packed: $file" && exit 1; }
done
cd /
printf 'x,y\n1,1\n2,2\n1,2\n' >"$scratch/k.csv"
"$program" stats kappa "$scratch/k.csv" --x x --y y | grep -q 'kappa  *0.4$' || { echo "the packed program fails" && exit 1; }

# What this system's C library has newer versions of comes in by newer headers: seen where that is Debian 12's.
if [ "$(getconf GNU_LIBC_VERSION)" = "glibc 2.36" ] && ! grep -q '^LIKENESS_SANITIZE:BOOL=ON' "$BUILD_DIR/CMakeCache.txt"; then
    newer=$(objdump -T "$program" | grep -oE 'GLIBC_2\.(3[5-9]|[4-9][0-9])\) .*' || true)
    [ -z "$newer" ] || { echo "needs a newer C library than 2.34: $newer" && exit 1; }
fi

command -v dpkg-shlibdeps >/dev/null || { echo "no dpkg-shlibdeps: no Debian package" && exit 0; }
cd "$scratch"
cpack -G DEB --config "$BUILD_DIR/CPackConfig.cmake" -B "$scratch" >log 2>&1 || { cat log && exit 1; }
dpkg-deb -f likeness_*.deb Depends | grep -q 'libc6' || { dpkg-deb -f likeness_*.deb && exit 1; }
