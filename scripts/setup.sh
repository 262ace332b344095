#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Install what building, demonstrating or testing OpenNUMA needs and this machine lacks.
#
#   scripts/setup.sh [--check] build|demo|bench|test
#
#   build   a compiler, CMake and the headers: enough for `make`
#   demo    that, and an OpenCL device if there is none yet (PoCL, which runs on the CPU)
#   bench   build, and the allocators that `opennuma bench alloc --peers` compares with (build/stacks/peers)
#   test    all that, and the test libraries, four OpenCL stacks, the linters
#   --check only say what is missing; exit status 1 if anything is
#
# Looking first costs a fraction of a second, so the make targets run this every time. On Debian and
# Ubuntu it installs: as root, or through sudo where that asks for no password. Else it prints the
# command to give. On other systems it names the packages.
#
# OPENNUMA_STACKS: where Intel's runtime and the like go (build/stacks), to share them between clones.
set -euo pipefail
umask 022
root=$(cd "$(dirname "$0")/.." && pwd)
stacks=$(realpath -m "${OPENNUMA_STACKS:-$root/build/stacks}")

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

check=
[ "${1:-}" = --check ] && { check=yes; shift; }
set_name=${1:-test}
case $set_name in
    build) sets=" build " ;;
    demo)  sets=" build demo " ;;
    bench) sets=" build bench " ;;
    test)  sets=" build demo bench test " ;;
    *)     sed -n '3,19s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

# ------------------------------------------------------------------ probes
# Each answers one question about this machine, quickly and without side effects.

command_runs() { command -v "$1" >/dev/null && "$1" --version >/dev/null 2>&1; }

# What these two say differs between versions. Debian and Ubuntu all have 14, which CI uses; others do with what they have.
clang_tool_runs() {
    command_runs "$1-14" || { [ "$(system_kind)" != debian ] && command_runs "$1"; }
}

cmake_new_enough() {
    command -v cmake >/dev/null || return 1
    local version
    version=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
    [ -n "$version" ] && [ "$(printf '%s\n3.25\n' "$version" | sort -V | head -1)" = 3.25 ]
}

header_exists() {
    local directory
    for directory in /usr/include /usr/local/include /usr/include/"$(uname -m)"-linux-gnu; do
        [ -e "$directory/$1" ] && return 0
    done
    return 1
}

# The loader by the name that the library opens.
library_exists() {
    local directory
    for directory in /usr/lib /usr/lib64 /usr/local/lib /usr/lib/"$(uname -m)"-linux-gnu; do
        [ -e "$directory/$1" ] && return 0
    done
    ldconfig -p 2>/dev/null | grep -qF "$1 "
}

musl_loader_exists() { [ -e "/lib/ld-musl-$(uname -m).so.1" ]; }

# Debian's package of the 64-bit half puts no command on PATH.
wine_exists() { command -v wine64 >/dev/null || command -v wine >/dev/null || [ -x /usr/lib/wine/wine64 ]; }

icd_exists() { [ -e "/etc/OpenCL/vendors/$1" ]; }

# Mesa's drivers show no device on most machines unless they are asked to, so they do not count.
opencl_device_likely() {
    [ -n "${OCL_ICD_VENDORS:-}${OCL_ICD_FILENAMES:-}" ] && return 0
    local icd
    for icd in /etc/OpenCL/vendors/*.icd; do
        case $icd in */mesa.icd|*/rusticl.icd|*'/*.icd') ;; *) return 0 ;; esac
    done
    return 1
}

# The fuzz targets link clang's own runtime, which Debian packs apart.
clang_has_runtime() {
    [ -e "$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a" 2>/dev/null)" ]
}

# The package's name has the version of the clang that is or will be installed; apt-cache knows nothing on an image
# without package lists, and then Debian 12's is assumed, until the second look at what is missing.
clang_runtime_package() {
    local version
    version=$(clang -dumpversion 2>/dev/null | cut -d. -f1)
    [ -n "$version" ] || version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p')
    echo "libclang-rt-${version:-14}-dev"
}

# Newer systems pack the Level Zero half of Intel's driver apart; see above for images without package lists.
level_zero_driver_package() {
    if apt-cache show libze-intel-gpu1 >/dev/null 2>&1; then echo libze-intel-gpu1; else echo intel-opencl-icd; fi
}

# Intel's GPUs, and so Level Zero, are found beside x86-64 alone.
on_x86_64() { if [ "$(uname -m)" = x86_64 ]; then echo "$1"; fi; }

# PATH may have a python3 that lacks these modules; the system's own is looked at too.
python_with_venv() {
    local candidate
    for candidate in /usr/bin/python3 python3; do
        if command -v "$candidate" >/dev/null && "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

# Those of the Python that environments are made with.
python_headers_exist() {
    local python
    python=$(python_with_venv) || return 1
    [ -e "$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ]
}

# ------------------------------------------------------------------- needs
# set | probe | Debian and Ubuntu | Fedora | Arch
needs() {
    cat <<TABLE
build|command_runs make|make|make|make
build|command_runs cc|gcc libc6-dev|gcc|gcc
build|cmake_new_enough|cmake|cmake|cmake
build|command_runs ninja|ninja-build|ninja-build|ninja
build|header_exists zlib.h|zlib1g-dev|zlib-ng-compat-devel|zlib
build|header_exists cjson/cJSON.h|libcjson-dev|cjson-devel|cjson
build|header_exists CL/cl.h|opencl-c-headers|opencl-headers|opencl-headers
$(on_x86_64 "build|header_exists level_zero/ze_api.h|libze-dev|oneapi-level-zero-devel|level-zero-headers")
demo|library_exists libOpenCL.so.1|ocl-icd-libopencl1|OpenCL-ICD-Loader|ocl-icd
demo|opencl_device_likely|pocl-opencl-icd|pocl|pocl
bench|command_runs g++|g++|gcc-c++|gcc
bench|python_with_venv|python3 python3-venv|python3|python
bench|library_exists libjemalloc.so.2|libjemalloc2|jemalloc|jemalloc
bench|library_exists libatomic.so.1|libatomic1|libatomic|gcc-libs
bench|library_exists libstdc++.so.6|libstdc++6|libstdc++|gcc-libs
test|command_runs git|git|git|git
test|command_runs gcc|gcc|gcc|gcc
test|command_runs g++|g++|gcc-c++|gcc
test|command_runs clang|clang|clang|clang
test|clang_has_runtime|$(clang_runtime_package)|compiler-rt|compiler-rt
test|clang_tool_runs clang-format|clang-format-14|clang-tools-extra|clang
test|clang_tool_runs clang-tidy|clang-tidy-14|clang-tools-extra|clang
test|command_runs pkg-config|pkg-config|pkgconf-pkg-config|pkgconf
test|header_exists cmocka.h|libcmocka-dev|libcmocka-devel|cmocka
test|icd_exists pocl.icd|pocl-opencl-icd|pocl|pocl
test|icd_exists rusticl.icd|mesa-opencl-icd|mesa-libOpenCL|opencl-mesa
$(on_x86_64 "test|library_exists libze_validation_layer.so.1|libze1|oneapi-level-zero|level-zero-loader")
$(on_x86_64 "test|library_exists libze_loader.so|libze-dev|oneapi-level-zero-devel|level-zero-loader")
$(on_x86_64 "test|library_exists libze_intel_gpu.so.1|$(level_zero_driver_package)|intel-level-zero|intel-compute-runtime")
test|command_runs oclgrind|oclgrind|oclgrind|oclgrind
test|command_runs clinfo|clinfo|clinfo|clinfo
test|library_exists libOpenCL.so|ocl-icd-opencl-dev|OpenCL-ICD-Loader-devel|ocl-icd
test|python_with_venv|python3 python3-venv|python3|python
test|python_headers_exist|python3-dev|python3-devel|python
test|command_runs valgrind|valgrind|valgrind|valgrind
test|command_runs dpkg-source|dpkg-dev|dpkg-dev|dpkg
test|command_runs aarch64-linux-gnu-gcc|gcc-aarch64-linux-gnu libc6-dev-arm64-cross|gcc-aarch64-linux-gnu|aarch64-linux-gnu-gcc
test|command_runs aarch64-linux-gnu-g++|g++-aarch64-linux-gnu|gcc-c++-aarch64-linux-gnu|aarch64-linux-gnu-gcc
test|command_runs qemu-aarch64|qemu-user|qemu-user|qemu-user
test|musl_loader_exists|musl|musl-libc|musl
test|command_runs x86_64-w64-mingw32-gcc|gcc-mingw-w64-x86-64|mingw64-gcc|mingw-w64-gcc
test|command_runs x86_64-w64-mingw32-g++|g++-mingw-w64-x86-64|mingw64-gcc-c++|mingw-w64-gcc
test|wine_exists|wine wine64|wine|wine
TABLE
}

# Prints the packages of one column (3 Debian, 4 Fedora, 5 Arch) whose probe says no.
missing_packages() {
    local set probe debian fedora arch
    needs | while IFS='|' read -r set probe debian fedora arch; do
        [[ $sets == *" $set "* ]] || continue
        # shellcheck disable=SC2086 # a probe is a function and its argument
        $probe >/dev/null && continue
        case $1 in 3) echo "$debian" ;; 4) echo "$fedora" ;; 5) echo "$arch" ;; esac
    done | tr ' ' '\n' | sort -u | tr '\n' ' ' | sed 's/ $//'
}

system_kind() {
    local ID= ID_LIKE=
    # shellcheck disable=SC1091
    [ -r /etc/os-release ] && . /etc/os-release
    case " $ID $ID_LIKE " in
        *" debian "*|*" ubuntu "*) echo debian ;;
        *" fedora "*|*" rhel "*)   echo fedora ;;
        *" arch "*)                echo arch ;;
        *)                         echo other ;;
    esac
}

install_with_apt() {
    local packages=$1 elevate=()
    local options=(-y --no-install-recommends -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    local by_hand="apt-get update && apt-get install -y --no-install-recommends $packages"
    if [ "$(id -u)" != 0 ]; then
        if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
            elevate=(sudo -n)
        else
            say "these packages are missing; give this command as root, then run make again:"
            say "    $by_hand"
            exit 1
        fi
    fi
    local log="$root/build/setup.log"
    mkdir -p "$root/build"
    say "installing with apt-get (output in $log): $packages"
    # sudo drops the environment, so debconf's setting goes through env.
    {
        "${elevate[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
        # shellcheck disable=SC2086 # a list of packages
        "${elevate[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq "${options[@]}" $packages
    } </dev/null >"$log" 2>&1 || { tail -20 "$log" >&2; die "apt-get failed; its whole output is in $log"; }
    hash -r
}

install_packages() {
    local kind packages
    kind=$(system_kind)
    case $kind in
        fedora) packages=$(missing_packages 4) ;;
        arch)   packages=$(missing_packages 5) ;;
        *)      packages=$(missing_packages 3) ;;
    esac
    [ -n "$packages" ] || return 0
    [ -z "$check" ] || die "missing packages: $packages (scripts/setup.sh $set_name installs them)"
    case $kind in
        debian)
            install_with_apt "$packages"
            packages=$(missing_packages 3)
            [ -z "$packages" ] || install_with_apt "$packages"
            ;;
        fedora) die "please install these packages, then run make again: sudo dnf install $packages" ;;
        arch)   die "please install these packages, then run make again: sudo pacman -S $packages" ;;
        *)      die "please install what these packages of Debian hold, then run make again: $packages" ;;
    esac
    packages=$(missing_packages 3)
    [ -z "$packages" ] && return
    cmake_new_enough || say "CMake 3.25 or newer is needed and this system's package is older: pipx install cmake"
    die "installed, but still missing or not working: $packages"
}

# ------------------------------------------------------ what comes in wheels
# Whether all of a list is in a folder; the copy of the list there comes last, so it stands for a complete installation.
wheels_are_in() { cmp -s "$root/scripts/$2" "$1/requirements.txt"; }
complete() { cp "$root/scripts/$2" "$1/requirements.txt"; }

# From PyPI, with hashes, into an environment below a folder that nothing else sees. False where it was there already.
#   PROBE FOLDER LIST WHAT SIZE [ENVIRONMENT, below the folder]
install_wheels() {
    local probe=$1 folder=$2 list=$3 what=$4 size=$5 environment=$2${6:+/$6}
    "$probe" "$folder" "$list" && return 1
    [ -z "$check" ] || die "missing: $what in $folder (scripts/setup.sh $set_name installs it)"
    mkdir -p "$stacks"
    exec 9>"$stacks/.lock"
    flock 9
    "$probe" "$folder" "$list" && return 1
    say "installing $what (a download of $size, from PyPI) into $folder"
    rm -rf "$folder"
    # Where this function's status is asked for, -e does not hold.
    "$(python_with_venv)" -m venv "$environment" &&
        "$environment/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --only-binary :all: \
            --no-deps --require-hashes -r "$root/scripts/$list" </dev/null >&2 || die "$what could not be installed"
}

# ---------------------------------------------------- Intel's OpenCL for CPUs
# Not in Debian. The wheels hold plain libraries; the .icd file among them names a path on the machine
# that built it, so we write our own.
intel_is_in() {
    local library="$1/lib/libintelocl.so"
    [ "$(cat "$1/intel.icd" 2>/dev/null)" = "$library" ] && [ -e "$library" ] && wheels_are_in "$@"
}

install_intel() {
    if [ "$(uname -m)" != x86_64 ]; then
        say "Intel's OpenCL runtime exists for x86-64 only; its tests cannot run here"
        return 0
    fi
    local intel="$stacks/intel" file twin
    install_wheels intel_is_in "$intel" intel-opencl.txt "Intel's OpenCL runtime" "240 MB" || return 0

    # The wheels carry each library two or three times, for want of symbolic links: 400 MB given back.
    for file in "$intel"/lib/*.so; do
        for twin in "$file".*; do
            case $twin in *.py) ;; *) cmp -s "$file" "$twin" && ln -f "$file" "$twin" ;; esac
        done
    done
    echo "$intel/lib/libintelocl.so" >"$intel/intel.icd"
    complete "$intel" intel-opencl.txt
    say "to use it: OCL_ICD_VENDORS=$intel/intel.icd"
}

# ------------------------------------------------------------- Zig's C compiler
# What it compiles of the C libraries it brings, it keeps beside itself; the wrappers see to that.
install_zig() {
    local zig="$stacks/zig" program tool
    install_wheels wheels_are_in "$zig" ziglang.txt "Zig's C compiler" "80 MB" || return 0
    program=$(echo "$zig"/lib/python3*/site-packages/ziglang/zig)
    for tool in cc c++ ar ranlib; do
        cat >"$zig/bin/zig-$tool" <<SCRIPT
#!/bin/sh
ZIG_GLOBAL_CACHE_DIR="$zig/cache" ZIG_LOCAL_CACHE_DIR="$zig/cache" exec "$program" $tool "\$@"
SCRIPT
        chmod +x "$zig/bin/zig-$tool"
    done
    complete "$zig" ziglang.txt
}

# ------------------------------------------------------ Python's packages
# For the tests of the Python package. The list names CPython 3.11's files, which is what CI has.
install_python_packages() {
    local python="$stacks/python" list="$root/scripts/python-packages.txt" interpreter
    local index=(--extra-index-url https://download.pytorch.org/whl/cpu)
    interpreter=$(python_with_venv)
    if [ "$("$interpreter" -c 'import platform, sys; print(*sys.version_info[:2], platform.machine())')" != "3 11 x86_64" ]; then
        say "the packages that the Python package is tested with are pinned for CPython 3.11 on x86-64; those tests cannot run here"
        return 0
    fi
    cmp -s "$list" "$python/requirements.txt" && return 0
    [ -z "$check" ] || die "missing: Python's packages in $python (scripts/setup.sh test installs them)"
    mkdir -p "$stacks"
    exec 9>"$stacks/.lock"
    flock 9
    cmp -s "$list" "$python/requirements.txt" && return 0
    say "installing PyTorch (for the CPU), pyopencl and what else the Python tests use (a download of 250 MB) into $python"
    rm -rf "$python"
    "$interpreter" -m venv "$python"
    local install=("$python/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --only-binary :all:
                   --require-hashes -r "$list")
    "${install[@]}" </dev/null >"$stacks/python.log" 2>&1 || "${install[@]}" "${index[@]}" </dev/null >&2
    cp "$list" "$python/requirements.txt"
}

# ------------------------------------------- the allocators to compare with
# One folder of libraries that may be carried to a machine without packages: `--peers-from` names it there. So what they
# link to lies beside them.
system_library() {
    local directory
    for directory in /usr/lib/"$(uname -m)"-linux-gnu /lib/"$(uname -m)"-linux-gnu /usr/lib64 /usr/lib /usr/local/lib; do
        [ -e "$directory/$1" ] && { echo "$directory/$1"; return 0; }
    done
    die "$1 is installed, but in none of the folders that are known"
}

install_peers() {
    local peers="$stacks/peers" name
    if [ "$(uname -m)" != x86_64 ]; then
        say "UMF's wheel exists for x86-64 only; opennuma bench alloc --peers cannot run here"
        return 0
    fi
    install_wheels wheels_are_in "$peers" bench-peers.txt "the allocators to compare with" "5 MB" environment || return 0
    for name in libmimalloc.so.3 libumf.so.1 libtbbmalloc.so.2 libhwloc.so.15; do
        cp -L "$(find "$peers/environment/lib" -name "$name" -print -quit)" "$peers/$name"
    done
    for name in libjemalloc.so.2 libatomic.so.1 libstdc++.so.6 libgcc_s.so.1; do
        cp -L "$(system_library "$name")" "$peers/$name"
    done
    rm -rf "$peers/environment"
    complete "$peers" bench-peers.txt
}

install_packages
if [[ $sets == *" bench "* ]]; then
    install_peers
fi
if [[ $sets == *" test "* ]]; then
    install_intel
    install_zig
    install_python_packages
fi
