#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build the Python package as a wheel and try it: types, tests on each OpenCL stack, and, as a stranger would, the wheel in an
# empty environment outside the project. docs/testing.md tells more. scripts/setup.sh test installs what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
stacks=$(realpath -m "${OPENNUMA_STACKS:-$root/build/stacks}")
tools=$stacks/python
cmp -s scripts/python-packages.txt "$tools/requirements.txt" ||
    { echo "python: $tools is missing or old; scripts/setup.sh test installs it"; exit 1; }
python=$tools/bin/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip=("$python" -m pip --quiet --disable-pip-version-check)

"${pip[@]}" wheel --no-deps --no-build-isolation --no-index --config-settings build-dir=build/wheel --config-settings cmake.define.ONUMA_WERROR=ON \
    -w "$work" .
wheel=$(echo "$work"/opennuma-*.whl)
echo "python: built $(basename "$wheel")"
"${pip[@]}" install --no-deps --no-index --target "$work/site" "$wheel"

echo "python: types"
"$python" -m mypy --strict --cache-dir build/mypy-cache python/opennuma
(cd "$work" && PYTHONPATH=$work/site MYPYPATH=$work/site "$python" -m mypy.stubtest opennuma._native \
    --allowlist "$root/tests/python/stubtest-allowlist.txt" --ignore-unused-allowlist)

run_tests() { PYTHONPATH=$work/site timeout 600 "$python" -m pytest -q -p no:cacheprovider "$@"; }
export PYOPENCL_NO_CACHE=1 XDG_CACHE_HOME=$work/cache
echo "python: tests on PoCL"
OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd run_tests tests/python
kernels=tests/python/test_opencl.py
echo "python: kernels with imported pages"
OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd OPENNUMA_CONF=opencl.share:import run_tests $kernels
echo "python: kernels on Rusticl"
OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd RUSTICL_ENABLE=llvmpipe run_tests $kernels
echo "python: kernels on Intel's runtime"
OCL_ICD_VENDORS=$stacks/intel/intel.icd run_tests $kernels

# The wheel as it would be given away: for glibc 2.17 and everything later.
echo "python: the wheel for all systems, in an empty environment"
scripts/cross-libraries.sh glibc217 cmake/toolchains/glibc217.cmake zlib cjson opencl-headers
# Debian's Python.h includes a header by the name of the machine, from a folder that must stay hidden from the cross compiler.
headers=$root/build/python-headers machine=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("MULTIARCH"))')
mkdir -p "$headers/$machine"
ln -sfn "/usr/include/$machine/python3.11" "$headers/$machine/python3.11"
"${pip[@]}" wheel --no-deps --no-build-isolation --no-index --config-settings build-dir=build/wheel217 \
    --config-settings cmake.define.CMAKE_TOOLCHAIN_FILE="$root/cmake/toolchains/glibc217.cmake" \
    --config-settings cmake.define.CMAKE_C_FLAGS="-isystem $headers" -w "$work/unnamed" .
PATH=$tools/bin:$PATH auditwheel repair --plat manylinux_2_17_x86_64 -w "$work/named" "$work"/unnamed/opennuma-*.whl >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
wheel=$(echo "$work"/named/opennuma-*.whl)
echo "python: built $(basename "$wheel")"
"$python" -m venv "$work/empty"
"$work/empty/bin/python" -m pip --quiet --disable-pip-version-check install "$(sed -n 's/^\(numpy==[^ ]*\).*/\1/p' scripts/python-packages.txt)" "$wheel"
(
    cd "$work"
    export OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd
    empty/bin/opennuma info --json | grep -q '"opencl:0"' || { echo "python: the installed command finds no device"; exit 1; }
    for example in shared_array numpy_pool weights; do
        empty/bin/python "$root/examples/python/$example.py" || { echo "python: examples/python/$example.py failed"; exit 1; }
    done
    for example in torch_train torch_opencl; do
        PYTHONPATH=$work/site "$python" "$root/examples/python/$example.py" ||
            { echo "python: examples/python/$example.py failed"; exit 1; }
    done
)
