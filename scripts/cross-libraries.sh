#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Build the libraries that the command and the tests use for a machine other than this one, from the source packages of
# the distribution that runs here (Debian, Ubuntu): no package has them built for Windows, musl or other processors.
#
#   scripts/cross-libraries.sh NAME TOOLCHAIN LIBRARY...
#
#   NAME       what the machine is called here; the result is build/deps/NAME/{include,lib}
#   TOOLCHAIN  a CMake toolchain file (cmake/*.cmake), which should have that folder in CMAKE_FIND_ROOT_PATH
#   LIBRARY    of: cmocka cjson zlib, each static, and safe to link into shared libraries; opencl-headers and
#              level-zero-headers, which are copied from this machine; musl-loader, musl's for 64-bit Arm, by Debian's cross compiler
#
#   scripts/cross-libraries.sh windows cmake/mingw-w64.cmake cmocka cjson opencl-headers
#   scripts/cross-libraries.sh --sources cmocka cjson zlib      only fetch and unpack
#
# Nothing is built that is already there and whose recipe and toolchain file have not changed. apt-get does the fetching,
# with lists and folders of our own under build/deps/source: the machine's own are read and not touched, no right of root is
# needed, and every file is checked against the archive's signature as always.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."
deps=$PWD/build/deps
sources=$deps/source

say() { printf 'cross-libraries: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# ------------------------------------------------------------------ sources

# The places that the machine's packages come from, as places of their sources.
source_lists() {
    local ID= ID_LIKE= VERSION_CODENAME= origin keyring lists
    # shellcheck disable=SC1091
    . /etc/os-release
    case " $ID $ID_LIKE " in
        *" ubuntu "*) origin=Ubuntu keyring=ubuntu ;;
        *)            origin=Debian keyring=debian ;;
    esac
    keyring=/usr/share/keyrings/$keyring-archive-keyring.gpg
    [ -e "$keyring" ] || die "$keyring is missing, so nothing fetched could be trusted"
    # In the machine's order, which is not that of the alphabet: of two places with one version, apt takes the first.
    # shellcheck disable=SC2016 # apt-get's own placeholders
    lists=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' \
        "Origin: $origin" 2>/dev/null | awk '!seen[$0]++')
    if [ -z "$lists" ]; then # an image without lists: what every such system has
        if [ "$origin" = Ubuntu ]; then lists="http://archive.ubuntu.com/ubuntu $VERSION_CODENAME main universe"
        else lists="http://deb.debian.org/debian $VERSION_CODENAME main"; fi
    fi
    sed "s|^|deb-src [signed-by=$keyring] |" <<<"$lists"
}

apt() {
    apt-get -q -o Dir::Etc::SourceList="$sources/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State="$sources/state" -o Dir::State::Status=/var/lib/dpkg/status -o Dir::Cache="$sources/cache" \
        -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

# The unpacked source of one library, with the distribution's patches: build/deps/source/NAME.
fetch() {
    local library=$1 unpacked
    [ -d "$sources/$library" ] && return 0
    command -v apt-get >/dev/null || die "sources come through apt-get, which this system lacks"
    command -v dpkg-source >/dev/null || die "dpkg-source is missing: apt-get install dpkg-dev"
    mkdir -p "$sources"/{state/lists/partial,cache/archives/partial}
    if [ ! -e "$sources/updated" ]; then
        say "fetching the list of source packages"
        source_lists >"$sources/sources.list"
        apt -o APT::Update::Error-Mode=any update >"$sources/log" 2>&1 || { cat "$sources/log" >&2; die "apt-get update failed"; }
        touch "$sources/updated"
    fi
    say "fetching the source of $library"
    rm -rf "$sources/unpacking"
    mkdir "$sources/unpacking"
    (cd "$sources/unpacking" && apt source "$library") >"$sources/log" 2>&1 ||
        { rm -f "$sources/updated"; cat "$sources/log" >&2; die "apt-get source $library failed"; }
    unpacked=$(find "$sources/unpacking" -mindepth 1 -maxdepth 1 -type d)
    mv "$unpacked" "$sources/$library"
    rm -rf "$sources/unpacking"
}

# -------------------------------------------------------------------- build
# Those libraries, all in one go.
build() {
    local work=$deps/$name/build/out
    rm -rf "$work"
    mkdir -p "$work"
    {
        cmake -G Ninja -S cmake/foreign -B "$work" -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DCMAKE_BUILD_TYPE=Release \
            -DONUMA_SOURCES="$sources" -DONUMA_PREFIX="$deps/$name" \
            -DONUMA_LIBRARIES="$(tr ' ' ';' <<<"$*")" && cmake --build "$work"
    } >"$work.log" 2>&1 || { tail -30 "$work.log" >&2; die "$* do not build for $name; all that was said is in $work.log"; }
    rm -rf "$work"
    say "built for $name: $*"
}

# musl's loader, which is also its C library, for a processor that this machine has no package of it for.
build_musl_loader() {
    local work=$deps/$name/build/musl
    rm -rf "$work"
    mkdir -p "$work" "$deps/$name/lib"
    (
        cd "$work" && "$sources/musl/configure" --target=aarch64-linux-musl CC=aarch64-linux-gnu-gcc --disable-static &&
            make -j "$(nproc)" lib/libc.so
    ) >"$work/log" 2>&1 || { tail -30 "$work/log" >&2; die "musl does not build for $name; all it said is in $work/log"; }
    cp "$work/lib/libc.so" "$deps/$name/lib/ld-musl-aarch64.so.1"
    rm -rf "$work"
    say "built musl's loader for $name"
}

# They are the same for every machine, but the folder that they are in here has this machine's other headers too.
copy_headers() {
    local file=$1 package=$2 folder
    for folder in /usr/include /usr/local/include; do
        [ -e "$folder/$file" ] || continue
        mkdir -p "$deps/$name/include"
        cp -rL "$folder/${file%%/*}" "$deps/$name/include/"
        return 0
    done
    die "$file is missing: apt-get install $package"
}

[ $# -ge 2 ] || { sed -n '3,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$deps"
exec 9>"$deps/.lock"
flock 9
if [ "$1" = --sources ]; then
    for library in "${@:2}"; do fetch "$library"; done
    exit 0
fi
[ $# -ge 3 ] || { sed -n '3,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }
name=$1
toolchain=$(realpath "$2")
made=$(cat "$toolchain" cmake/toolchains/{cross,zig}.cmake "$0" cmake/foreign/CMakeLists.txt | sha256sum)
built=()
for library in "${@:3}"; do
    [ "$(cat "$deps/$name/$library.stamp" 2>/dev/null)" = "$made" ] && continue
    case $library in
        opencl-headers)     copy_headers CL/cl.h opencl-c-headers ;;
        level-zero-headers) [ "$(uname -m)" != x86_64 ] || copy_headers level_zero/ze_api.h libze-dev ;;
        musl-loader)        fetch musl; build_musl_loader ;;
        cmocka|cjson|zlib)  fetch "$library"; built+=("$library"); continue ;;
        *)                  die "no recipe for $library" ;;
    esac
    echo "$made" >"$deps/$name/$library.stamp"
done
[ ${#built[@]} = 0 ] || build "${built[@]}"
for library in "${built[@]}"; do echo "$made" >"$deps/$name/$library.stamp"; done
