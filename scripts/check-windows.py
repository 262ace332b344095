#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing is left out for Windows in silence.

Every test that Linux has (build/debug) and Windows has not (build/windows) is in tests/windows/not-run.txt, and every
entry there stands for at least one such test. Every part of the system layer in tests/windows/compiled-only.txt has a
test that shows that Wine cannot run it, and the other way round; docs/platforms.md names the same parts. A line of a
list is "NAME  reason"; in not-run.txt NAME is a regular expression for whole names.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ROOT / "tests" / "windows"


def tests(build):
    listed = subprocess.run(["ctest", "--test-dir", ROOT / "build" / build, "--show-only=json-v1"], check=True,
                            capture_output=True, text=True).stdout
    return {test["name"] for test in json.loads(listed)["tests"]}


def entries(name):
    lines = (LISTS / name).read_text().splitlines()
    pairs = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}, [pair[0] for pair in pairs if len(pair) != 2]


def main():
    wrong = []
    native, windows = tests("debug"), tests("windows")
    not_run, bare = entries("not-run.txt")
    wrong += [f"not-run.txt: {name} has no reason" for name in bare]
    missing = native - windows
    for name in sorted(missing):
        if not any(re.fullmatch(pattern, name) for pattern in not_run):
            wrong.append(f"{name} does not run on Windows, and not-run.txt does not say why")
    for pattern in not_run:
        if not any(re.fullmatch(pattern, name) for name in missing):
            wrong.append(f"not-run.txt: {pattern}: every such test runs, or there is none; remove the line")
    compiled, bare = entries("compiled-only.txt")
    wrong += [f"compiled-only.txt: {name} has no reason" for name in bare]
    shown = set(re.findall(r"cmocka_unit_test\((\w+)\)", (LISTS / "test_windows_compiled_only.c").read_text()))
    told = (ROOT / "docs" / "platforms.md").read_text()
    for name in sorted(shown ^ set(compiled)):
        wrong.append(f"{name} is in one of compiled-only.txt and test_windows_compiled_only.c, and not in the other")
    wrong += [f"docs/platforms.md does not name {name}" for name in sorted(compiled) if f"`{name}`" not in told]
    for line in wrong:
        print(f"windows: {line}")
    if not wrong:
        print(f"windows: {len(windows)} tests run; {len(missing)} of Linux's do not, {len(compiled)} parts are compiled only,"
              " each with its reason")
    return 1 if wrong else 0


sys.exit(main())
