#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House rules for files: the licence line, a length that one sitting can read, no leftovers, clean white space."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = {".c", ".h", ".cc", ".cpp", ".py", ".sh", ".cmake", ".cl"}
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LONGEST = 700
BINARY = {".gz", ".safetensors", ".png"}
LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|^\s*#\s*if\s+0\b")


def tracked_files():
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout.split("\0")
    return [Path(name) for name in names if name and (ROOT / name).is_file()]


def problems(path):
    if path.suffix in BINARY or {"data", "seeds"} & set(path.parts) or path.name == "LICENSE":
        return
    lines = (ROOT / path).read_text(encoding="utf-8").split("\n")
    code = path.suffix in CODE or path.name in ("CMakeLists.txt", "Makefile") or path.as_posix() == ".ci/run"
    if code:
        if not any(LICENCE in line for line in lines[:2]):
            yield f"{path}:1: no licence line ({LICENCE}) in the first two lines"
        if len(lines) - 1 > LONGEST:
            yield f"{path}: {len(lines) - 1} lines, more than {LONGEST}: which second idea moved in?"
        if path.name != Path(__file__).name:
            for number, line in enumerate(lines, 1):
                if LEFTOVER.search(line):
                    yield f"{path}:{number}: a leftover: {line.strip()}"
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield f"{path}:{number}: white space at the end"
    if lines[-1] != "":
        yield f"{path}: no newline at the end"


def main():
    files = tracked_files()
    found = [problem for path in files for problem in problems(path)]
    print("\n".join(found) or f"files: {len(files)} in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
