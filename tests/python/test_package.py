# SPDX-License-Identifier: Apache-2.0
"""What is in the package, and what importing it does."""
import ctypes
import json
import subprocess
import sys

from conftest import run_python

import opennuma


def test_import_loads_no_driver_and_no_other_package():
    assert run_python("""
import sys, opennuma
maps = open("/proc/self/maps").read()
print("OpenCL" in maps, [name for name in ("numpy", "torch", "pyopencl") if name in sys.modules])
opennuma.devices()
print("OpenCL" in open("/proc/self/maps").read())
""") == "False []\nTrue\n"


def test_command_is_the_package_own():
    done = subprocess.run([sys.executable, "-m", "opennuma", "info", "--json"], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["version"] == opennuma.__version__ == opennuma.version()
    assert [device["id"] for device in told["devices"]] == [device.id for device in opennuma.devices()]


def test_library_is_the_one_in_use():
    library = ctypes.CDLL(str(opennuma.library()))
    library.onuma_version.restype = ctypes.c_char_p
    assert library.onuma_version().decode() == opennuma.version()
    info = ctypes.create_string_buffer(256)
    ctypes.c_size_t.from_buffer(info).value = 48 # sizeof(onuma_block_info)
    array = opennuma.empty(10)
    library.onuma_block_get_info.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    assert library.onuma_block_get_info(array.pointer, info) == 0
    assert ctypes.c_void_p.from_buffer(info, 8).value == array.block.pointer


def test_headers_are_there():
    assert "onuma_alloc" in (opennuma.include_folder() / "opennuma" / "opennuma.h").read_text()


def test_everything_named_has_a_docstring():
    for name in opennuma.__all__:
        thing = getattr(opennuma, name)
        assert thing.__doc__, name
        for member in vars(thing) if isinstance(thing, type) else ():
            if not member.startswith("_"):
                assert getattr(thing, member).__doc__, f"{name}.{member}"
