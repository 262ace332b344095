#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the figures and pictures of docs/performance.md from what `opennuma bench alloc --json` gives.

    scripts/performance.py              measure here (scripts/setup.sh bench first), keep the results, write the page
    scripts/performance.py --from FILE  take results measured on another machine (scripts/bench-bundle.sh)
    scripts/performance.py --draw       only write the page again from the results kept in docs/performance/
    scripts/performance.py --check      only see whether the page agrees with them; exit status 1 if not

The prose of the page is written by hand; what stands between its marks comes from here.
"""
import argparse
import json
import math
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
KEPT = ROOT / "docs" / "performance"
COMMAND = [ROOT / "build" / "release" / "opennuma", "bench", "alloc", "--peers", "--json"]
BLOCK = re.compile(r"(<!-- performance: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

SMALL = ["lifo-64", "lifo-1K", "lifo-64K"]
LARGE = ["lifo-1M", "lifo-16M"]
PEERS = ["mimalloc", "jemalloc", "glibc", "umf-disjoint", "umf-disjoint-tuned", "umf-scalable", "umf-jemalloc"]
# What must hold: a test, those it is compared with (their best counts), and the most that the ratio may be.
TARGETS = (
    [(name, ["glibc"], 1.0) for name in SMALL] + [(name, ["mimalloc"], 2.5) for name in SMALL]
    + [(name, ["mimalloc", "jemalloc"], 0.25) for name in LARGE] + [(name, ["glibc"], 0.5) for name in LARGE]
    + [(f"{name}-touched", PEERS, 1.0) for name in LARGE]
    + [(name, PEERS, 0.7) for name in ("rand-1", "rand-2")]
    + [(f"{name}-touched", PEERS, 1.0) for name in ("rand-1", "rand-2")]
    + [(name, PEERS, 0.5) for name in ("prodcons-1K", "prodcons-rand")]
    + [("lookup", PEERS, 0.25)]
)
SCALING_TARGET = 0.85


def nanoseconds(value):
    for unit in ("ns", "us", "ms"):
        if abs(value) < 999.5:
            break
        value /= 1000
    return f"{value:.{2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0}f} {unit}"


class Results:
    """One run of the bench."""

    def __init__(self, found):
        self.found = found
        self.allocators = [allocator["name"] for allocator in found["allocators"]]
        self.tests = {test["name"]: {r["allocator"]: r for r in test["results"]} for test in found["tests"]}
        self.raw = {test["name"]: test for test in found["tests"]}

    def best(self, name, among):
        """The fastest of these in a test, and its median."""
        there = [(result["median"], allocator) for allocator, result in self.tests[name].items() if allocator in among]
        return min(there) if there else None

    def scalings(self):
        """(threads, allocator: scaling) of the tests with most threads, by name of the test."""
        return {name: {a: r["scaling"] for a, r in results.items() if "scaling" in r} for name, results in self.tests.items()
                if any("scaling" in r for r in results.values())}


# ---------------------------------------------------------------------- tables

def machine_text(results):
    machine, found = results.found["machine"], results.found
    versions = "; ".join(f"{a['name']} {a['version']}" for a in found["allocators"])
    clock = "the clock" if found["clock"] == "wall" else "CPU time"
    busy = max(test["wall_to_cpu"] or 0 for test in found["tests"] if test["threads"] == 1)
    lines = [f"Measured on {machine['processor']}, {machine['processors']} processors, {machine['system']}; medians of "
             f"{found['repeat']}, by {clock}. By the clock tests with one thread took up to {busy:.2f} times their CPU time: "
             + ("others hardly used the machine." if busy < 1.1 else "others used the machine meanwhile.") + f" {versions}."]
    if found["lacking"]:
        lines.append(f"Left out, since PyPI's UMF is built without: {found['lacking']}.")
    return "\n\n".join(lines) + "\n"


def targets_table(results):
    rows = ["| test | opennuma | compared with | | ratio | at most | |", "|---|---|---|---|---|---|---|"]
    for name, among, bound in TARGETS:
        best = results.best(name, among) if name in results.tests else None
        if not best or best[0] <= 0:
            continue
        ours = results.tests[name]["opennuma"]["median"]
        ratio = ours / best[0]
        rows.append(f"| {name} | {nanoseconds(ours)} | {best[1]} | {nanoseconds(best[0])} | {ratio:.2f} | {bound} | "
                    f"{'held' if ratio <= bound else '**missed**'} |")
    scalings = results.scalings()
    most = max(scalings, key=lambda n: (results.raw[n]["threads"], not n.endswith("touched")), default=None)
    if most and results.raw[most]["threads"] >= 16:
        value = scalings[most]["opennuma"]
        rows.append(f"| {most}: scaling | | the loop that shares nothing | | {value:.2f} | at least {SCALING_TARGET} | "
                    f"{'held' if value >= SCALING_TARGET else '**missed**'} |")
    return "\n".join(rows) + "\n"


def medians_table(results):
    columns = [*results.allocators, *(["null"] if any("null" in t for t in results.tests.values()) else [])]
    rows = ["| test | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, test in results.tests.items():
        cells = [nanoseconds(test[c]["median"]) if c in test else "" for c in columns]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def scaling_table(results):
    scalings = results.scalings()
    rows = ["| test | " + " | ".join(results.allocators) + " |", "|---" * (len(results.allocators) + 1) + "|"]
    rows += [f"| {name} | " + " | ".join(f"{by[a]:.2f}" for a in results.allocators) + " |" for name, by in scalings.items()]
    return "\n".join(rows) + "\n"


# -------------------------------------------------------------------- pictures

COLOURS = {"opennuma": "#c0392b", "mimalloc": "#2980b9", "jemalloc": "#16a085", "glibc": "#555555", "libc": "#555555",
           "umf-disjoint": "#d4ac0d", "umf-disjoint-tuned": "#ca6f1e", "umf-scalable": "#8e44ad", "umf-jemalloc": "#7f8c8d"}
FONT = 'font-family="Helvetica, Arial, sans-serif" font-size="12"'


def picture(width, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" {FONT}>\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def text(x, y, words, anchor="start", colour="#222"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def line(x1, y1, x2, y2, colour="#ddd", width=1.0):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def dot(x, y, allocator):
    radius = 6 if allocator == "opennuma" else 4
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{COLOURS[allocator]}"><title>{allocator}</title></circle>'


def legend(names, x, y):
    parts = []
    for name in names:
        parts += [dot(x, y - 4, name), text(x + 9, y, name)]
        x += 24 + 7 * len(name)
    return parts


def times_picture(results, names):
    """A row for each test; along it, on a logarithmic scale, each allocator's median with its least and most."""
    left, right, row, top = 150, 30, 34, 60
    width, bottom = 900, top + row * len(names)
    shown = {n: {a: r for a, r in results.tests[n].items() if a in COLOURS and r["median"] > 0} for n in names}
    values = [max(r[k], 0.5) for by in shown.values() for r in by.values() for k in ("min", "max")]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def at(value):
        return left + (width - left - right) * (math.log10(max(value, 10.0 ** low)) - low) / (high - low)

    parts = legend([a for a in results.allocators if a in COLOURS], left, 20)
    for power in range(low, high + 1):
        parts += [line(at(10.0 ** power), top - 12, at(10.0 ** power), bottom), text(at(10.0 ** power), top - 16, nanoseconds(10.0 ** power), "middle", "#777")]
    for i, name in enumerate(names):
        y = top + row * i + row / 2
        parts += [text(left - 12, y + 4, name, "end"), line(left, y, width - right, y, "#eee")]
        for a, r in sorted(shown[name].items(), key=lambda item: item[0] == "opennuma"):
            parts += [line(at(r["min"]), y, at(r["max"]), y, COLOURS[a], 1.5), dot(at(r["median"]), y, a)]
    return picture(width, bottom + 16, parts)


def scaling_picture(results, touched):
    """Over the number of threads: how well each allocator scales, 1 being as well as a loop that shares nothing."""
    names = [n for n in results.tests if n.startswith("rand-") and n.endswith("touched") == touched]
    threads = [results.raw[n]["threads"] for n in names]
    by = {a: [results.tests[n][a].get("scaling", 1.0) for n in names] for a in results.allocators if a in COLOURS}
    left, top, width, height, right, foot = 60, 50, 900, 360, 30, 40
    most = max(1.2, max(v for values in by.values() for v in values) * 1.05)

    def x(i):
        return left + (width - left - right) * i / max(1, len(threads) - 1)

    def y(value):
        return top + (height - top - foot) * (1 - value / most)

    parts = legend(by, left, 20)
    step = 0.2 if most <= 2 else 0.5
    for i in range(int(most / step) + 1):
        parts += [line(left, y(i * step), width - right, y(i * step)), text(left - 8, y(i * step) + 4, f"{i * step:.1f}", "end", "#777")]
    parts += [text(x(i), height - foot + 18, f"{n} thread{'s' if n > 1 else ''}", "middle", "#777") for i, n in enumerate(threads)]
    for a, values in sorted(by.items(), key=lambda item: item[0] == "opennuma"):
        points = " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in enumerate(values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[a]}" stroke-width="{3 if a == "opennuma" else 1.5}"/>')
        parts += [dot(x(i), y(v), a) for i, v in enumerate(values)]
    return picture(width, height, parts)


# ------------------------------------------------------------------------ page

def written(results):
    """Every file that comes from the results, and what is to be in it."""
    blocks = {"machine": machine_text(results), "targets": targets_table(results), "medians": medians_table(results),
              "scaling": scaling_table(results)}
    touched = [name for name in results.tests if name.endswith("-touched")]
    pictures = {"untouched": times_picture(results, [n for n in results.tests if n not in touched]),
                "touched": times_picture(results, touched),
                "scaling": scaling_picture(results, False), "scaling-touched": scaling_picture(results, True)}
    page = PAGE.read_text(encoding="utf-8")
    page = BLOCK.sub(lambda m: m[1] + blocks.get(m[2], m[3]) + m[4], page)
    return {KEPT / f"alloc-{name}.svg": content for name, content in pictures.items()} | {PAGE: page}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="file", help="results measured elsewhere")
    parser.add_argument("--draw", action="store_true", help="from the results that are kept")
    parser.add_argument("--check", action="store_true", help="does the page agree with the results that are kept?")
    parser.add_argument("flags", nargs="*", help="after --: more flags for the bench")
    given = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    kept = KEPT / "alloc.json"
    if not given.draw and not given.check:
        fresh = (Path(given.file).read_text(encoding="utf-8") if given.file else
                 subprocess.run([*COMMAND, *given.flags], check=True, capture_output=True, text=True).stdout)
        kept.write_text(json.dumps(rounded(json.loads(fresh)), indent=1) + "\n", encoding="utf-8")
    files = written(Results(json.loads(kept.read_text(encoding="utf-8"))))
    stale = [path for path, content in files.items() if not path.exists() or path.read_text(encoding="utf-8") != content]
    if given.check:
        print("\n".join(f"{path.relative_to(ROOT)} does not agree with {kept.relative_to(ROOT)}; scripts/performance.py --draw"
                        for path in stale) or f"performance: {len(files)} files agree with their results")
        return 1 if stale else 0
    for path in stale:
        path.write_text(files[path], encoding="utf-8")
    return 0


def rounded(value):
    """Four significant digits are more than a measurement has."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.exit(main())
