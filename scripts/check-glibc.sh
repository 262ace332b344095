#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-glibc.sh LIBRARY...: no shared library or program given needs a newer glibc than 2.17, as the manylinux2014
# platform of Python wheels promises, or another library than those of glibc. ONUMA_GLIBC sets another version.
set -euo pipefail
export LC_ALL=C
allowed=${ONUMA_GLIBC:-2.17}
[ $# -gt 0 ] || { sed -n '3,4s/^# //p' "$0" >&2; exit 2; }
status=0
for file in "$@"; do
    # Each version that the dynamic linker will ask for, from lines like "0x0010:   Name: GLIBC_2.3.4  Flags: none".
    needs=$(readelf --version-info --wide "$file" | sed -n '/Version needs section/,$s/.*Name: \([A-Z]*_[0-9A-Za-z.]*\).*/\1/p' | sort -uV)
    [ -n "$needs" ] || { echo "glibc: $file: no needs of versions in it; is it a dynamic ELF file?"; status=1; continue; }
    newest=$(sed -n 's/^GLIBC_\([0-9.]*\)$/\1/p' <<<"$needs" | sort -V | tail -1)
    if [ "$(printf '%s\n%s\n' "$allowed" "$newest" | sort -V | tail -1)" != "$allowed" ]; then
        echo "glibc: $file needs glibc $newest, newer than $allowed, for:"
        readelf --dyn-syms --wide "$file" | grep -F "@GLIBC_$newest" | awk '{ print "    " $8 }'
        status=1
    fi
    foreign=$(grep -v '^GLIBC_[0-9.]*$' <<<"$needs" || true)
    [ -z "$foreign" ] || { echo "glibc: $file needs what is no part of any glibc's interface: $foreign"; status=1; }
    others=$(readelf --dynamic --wide "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux-[a-z0-9-]*)\.so\.[0-9]$' || true)
    [ -z "$others" ] || { echo "glibc: $file needs libraries besides glibc's: $others"; status=1; }
    [ "$status" != 0 ] || echo "glibc: $file needs glibc $newest"
done
exit $status
