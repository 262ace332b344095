#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# scripts/wine.sh PROGRAM.exe [ARGUMENT...]: run a program of build/windows under Wine, as ctest does.
# scripts/wine.sh --make: only make Wine's folder, if it is not there yet.
# scripts/wine.sh --stop: end what Wine left running of its own.
#
# Wine's "C:" lies in build/wine and is made at the first call, which takes some 15 seconds. Nothing of the user's own
# Wine is read or written. Wine's server is started apart from the program and outlives it, so that the next program starts
# quickly, and so that nobody who waits for the end of this program's output waits for the server's.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
export WINEPREFIX=${OPENNUMA_WINE:-$root/build/wine}
export WINEARCH=win64 WINEDEBUG=${WINEDEBUG:--all}
export WINEDLLOVERRIDES="mscoree,mshtml="           # no offers to install .NET and a browser
export WINEPATH="Z:${root//\//\\}\\build\\windows" # where opennuma.dll is
export LC_ALL=C.UTF-8 # how Wine takes the names of files here
unset DISPLAY WAYLAND_DISPLAY

for wine in wine64 /usr/lib/wine/wine64 wine; do
    wine=$(command -v "$wine") && break
done || { echo "wine.sh: Wine is missing (scripts/setup.sh test installs it)" >&2; exit 127; }
server=$(dirname "$(readlink -f "$wine")")/wineserver
[ -x "$server" ] || server=wineserver

if [ "${1:-}" = --stop ]; then
    [ ! -d "$WINEPREFIX" ] || "$server" -k || true
    exit 0
fi
if [ ! -e "$WINEPREFIX/.made" ]; then
    mkdir -p "$WINEPREFIX"
    exec 9>"$WINEPREFIX/.lock"
    flock 9
    if [ ! -e "$WINEPREFIX/.made" ]; then
        "$wine" wineboot --init </dev/null >"$WINEPREFIX/wineboot.log" 2>&1 9>&- ||
            { cat "$WINEPREFIX/wineboot.log" >&2; echo "wine.sh: Wine cannot make its folder $WINEPREFIX" >&2; exit 127; }
        "$server" -w
        touch "$WINEPREFIX/.made"
    fi
    exec 9>&-
fi
[ "${1:-}" != --make ] || exit 0
# The first program brings Wine's services up, and they keep its output open for as long as they live: whoever reads that
# to its end would wait for them. So it is one that nobody reads. The server does not start where one runs already.
if "$server" -p30 </dev/null >/dev/null 2>&1; then
    "$wine" cmd /c exit </dev/null >/dev/null 2>&1 || true
fi
# Wine's loader, where no preloader comes with it (Debian), lies at 0x7d000000, and Linux lets its heap begin anywhere in the
# gibibyte behind it: one program in some hundred had it on the page that Windows' shared data must have (0x7ffe0000), and
# ended with status 1 and no word. With addresses that are not random the heap lies right behind the loader.
fixed=(setarch -R)
"${fixed[@]}" true 2>/dev/null || fixed=() # some containers refuse it
exec "${fixed[@]}" "$wine" "$@"
