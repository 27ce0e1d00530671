#!/bin/sh
# One kernel file's fatbin for drivers that are older than nvcc: older_drivers.sh NVCC PTXAS SOURCE OUT FLAG...
# Machine code comes from PTXAS, of CUDA 12: drivers before R580 do not load that of CUDA 13, which has another ELF ABI
# (8; 7 before). nvcc 13 writes PTX of version 9.0, which they do not read either. The kernels use nothing that 8.0, of
# R525, has not; what a pragma of 8.3 tells ptxas about loads is left out.
set -eu
nvcc=$1 ptxas=$2 source=$3 out=$4
shift 4
"$nvcc" "$@" -arch=compute_80 -ptx "$source" -o "$out.new"
sed -e 's/^\.version .*/.version 8.0/' -e '/\.pragma "used_bytes_mask/d' "$out.new" >"$out.ptx"
for sm in 80 90; do
    "$ptxas" -arch=sm_$sm --fmad false --generate-line-info --warn-on-spills --warning-as-error "$out.ptx" -o "$out.$sm"
done
"$(dirname "$(readlink -f "$nvcc")")/fatbinary" --create="$out" -64 -compress=false --image3=kind=elf,sm=90,file="$out.90" \
    --image3=kind=ptx,sm=80,file="$out.ptx" --image3=kind=elf,sm=80,file="$out.80"
rm "$out.new" "$out.ptx" "$out.80" "$out.90"
