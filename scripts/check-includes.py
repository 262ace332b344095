#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold the direction of includes: the folders are the architecture (docs/architecture.md).

A layer may include its own headers, the public ones, and those of the layers listed beside it here.
Drivers' headers are for backends alone, the operating system's for src/os alone.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Layer: the layers of src/ whose headers it may include.
LAYERS = {
    "base": [],
    "os": ["base"],
    "track": ["os", "base"],
    "backend": ["os", "base"],
    "pool": ["track", "os", "base"],
    "sync": ["pool", "track", "backend", "os", "base"],
    "policy": ["sync", "pool", "track", "backend", "os", "base"],
    "api": ["policy", "sync", "pool", "track", "backend", "os", "base"],
    "interop": [],
}

# Folders outside src/: may they see its headers?
OUTSIDE = {
    "cli": False,
    "bench": False,
    "examples": False,
    "python": False,
    "tests/unit": True,
    "tests/model": True,
    "tests/fault": True,
    "tests/fuzz": True,
    "tests/stack": True,
    "tests/level_zero": True,
    "tests/layers": False,
    "tests/cli": False,
    "tests/cuda": True,
    "tests/gpu": False,
    "tests/package": False,
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
DRIVER = re.compile(r"(CL|level_zero|vulkan|hip|sycl)/|cuda|nvml")
SYSTEM = re.compile(r"(windows|winsock2|unistd|dlfcn|pthread|sched|poll|fcntl|threads)\.h$|(sys|linux)/")


def allowed_layers(path):
    """The layers of src/ that the file may include, or None for a folder without rules."""
    parts = path.parts
    if parts[0] == "src":
        return [parts[1], *LAYERS[parts[1]]] if parts[1] in LAYERS else []
    for folder, sees_source in OUTSIDE.items():
        if path.as_posix().startswith(folder + "/"):
            return list(LAYERS) if sees_source else []
    return None


def target_layer(path, name):
    """The layer of src/ that an include names, or None. Quoted names are tried beside the file first, as compilers do."""
    for base in (path.parent, Path("src")):
        candidate = (ROOT / base / name).resolve()
        if candidate.exists() and candidate.is_relative_to(ROOT / "src"):
            return candidate.relative_to(ROOT / "src").parts[0]
    return None


def violations(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    allowed = allowed_layers(path)
    in_source = path.parts[0] == "src"
    for match in INCLUDE.finditer(text):
        style, name = match.groups()
        where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
        layer = target_layer(path, name)
        if layer and allowed is not None and layer not in allowed:
            yield f"{where}: may not include {name}: it belongs to {layer}/, which is not below this folder"
        if in_source and layer is None and style == '"' and not name.startswith("opennuma/"):
            yield f"{where}: no such header in src/: {name}"
        if in_source and DRIVER.match(name) and path.parts[1] not in ("backend", "interop"):
            yield f"{where}: may not include {name}: drivers are for src/backend/ alone"
        if in_source and SYSTEM.match(name) and path.parts[1] != "os":
            yield f"{where}: may not include {name}: the operating system is for src/os/ alone"


def main():
    folders = ["include", "src", "cli", "bench", "examples", "python", "tests"]
    files = [path.relative_to(ROOT) for folder in folders for path in sorted((ROOT / folder).rglob("*.[chC]*"))]
    files = [path for path in files if path.suffix in (".c", ".h", ".cc", ".cpp", ".hpp")]
    unknown = [path for path in files if path.parts[0] == "src" and path.parts[1] not in LAYERS]
    found = [f"{path}: a layer that scripts/check-includes.py does not know" for path in unknown]
    found += [line for path in files for line in violations(path)]
    print("\n".join(found) or f"includes: {len(files)} files, every arrow points down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
