#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold the documents against what they speak of.

- A code block after `<!-- file: PATH -->` is that file, whole, but for its licence line and `#!`.
- docs/configuration.md has the table that `opennuma info --config` gives (the release build's).
- Relative links lead somewhere, and paths named in `code` exist.
- The newest version in CHANGELOG.md is the header's.

With --write, blocks and table are brought up to date.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ROOT / "build" / "release" / "opennuma"
BLOCK = re.compile(r"(<!-- file: (\S+) -->\n```\w*\n)(.*?)(```\n)", re.DOTALL)
TABLE = re.compile(r"(<!-- opennuma info --config -->\n)(.*?)(<!-- end -->)", re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PATH = re.compile(r"`((?:src|include|cli|tests|scripts|docs|examples|cmake|models|\.ci)/[\w./-]*)`")


def file_text(path):
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if "SPDX-License-Identifier" not in line and not line.startswith("#!"))


def config_table():
    output = subprocess.run([COMMAND, "info", "--config", "--json"], check=True, capture_output=True, text=True).stdout
    rows = ["| key | default | values | meaning |", "|---|---|---|---|"]
    for key in json.loads(output)["config"]:
        values = key["type"].replace("|", " \\| ")
        rows.append(f"| `{key['name']}` | `{key['default']}` | {values} | {key['help']} |")
    return "\n".join(rows) + "\n"


def renewed(text):
    text = BLOCK.sub(lambda match: match[1] + file_text(match[2]) + match[4], text)
    return TABLE.sub(lambda match: match[1] + config_table() + match[3], text)


def dangling(path, text):
    for target in LINK.findall(text):
        if not re.match(r"\w+:", target) and not (path.parent / target).exists():
            yield f"{path.relative_to(ROOT)}: the link to {target} leads nowhere"
    for target in PATH.findall(text):
        if not (ROOT / target).exists():
            yield f"{path.relative_to(ROOT)}: there is no {target}"


def header_version():
    header = (ROOT / "include/opennuma/opennuma.h").read_text(encoding="utf-8")
    return ".".join(re.findall(r"#define ONUMA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))


def main():
    found = []
    documents = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
    for path in documents:
        text = path.read_text(encoding="utf-8")
        fresh = renewed(text)
        if fresh != text and "--write" in sys.argv:
            path.write_text(fresh, encoding="utf-8")
        elif fresh != text:
            found.append(f"{path.relative_to(ROOT)}: a block or table differs from its source (scripts/check-docs.py --write)")
        found += dangling(path, text)
    version = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if not version or version[1] != header_version():
        found.append(f"CHANGELOG.md: its newest version is not the header's {header_version()}")
    print("\n".join(found) or f"docs: {len(documents)} documents agree with what they speak of")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
