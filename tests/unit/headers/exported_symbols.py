# SPDX-License-Identifier: Apache-2.0
"""The shared library exports exactly the functions that opennuma.h declares."""
import re
import subprocess
import sys

nm, library, header = sys.argv[1:]
text = re.sub(r"/\*.*?\*/", "", open(header, encoding="utf-8").read(), flags=re.S)
declared = set(re.findall(r"\bONUMA_API\b(?!_)[^;{]*?\b(onuma_\w+)\s*\(", text))
listing = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
exported = {line.split()[-1].split("@")[0] for line in listing.splitlines() if line.split()[-2] not in "A"}
sanitizer = {name for name in exported if name.startswith(("__asan", "__ubsan", "__tsan", "__odr_asan", "__gcov", "mangle_path"))}
missing, surplus = declared - exported, exported - declared - sanitizer
for name in sorted(missing):
    print(f"declared, not exported: {name}")
for name in sorted(surplus):
    print(f"exported, not declared: {name}")
print(f"{len(declared)} functions declared, {len(exported)} symbols exported")
sys.exit(1 if missing or surplus or len(declared) < 40 else 0)
