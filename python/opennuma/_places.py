# SPDX-License-Identifier: Apache-2.0
"""Where the parts of the package that are not Python lie."""
from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def library() -> Path:
    """The C library's file, for ctypes or a linker."""
    return _HERE / "lib" / "libopennuma.so"


def include_folder() -> Path:
    """The folder of the C headers: compile with -I of it and include <opennuma/opennuma.h>."""
    return _HERE / "include"


def command() -> Path:
    """The program behind the `opennuma` command."""
    return _HERE / "bin" / "opennuma"
