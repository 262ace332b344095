#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run tests of the debug build under valgrind's memcheck: no error and nothing lost. Drivers' own reports are filtered by
tests/sanitizers/valgrind.supp, which has none of ours.

    scripts/check-valgrind.py             all that are chosen here
    scripts/check-valgrind.py NAME...     these tests, chosen or not

Chosen are the unit tests, a short run of the model, and pools on PoCL. What is left out is left out here, with the reason.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "valgrind"
TIMEOUT_S = 600
ERRORS = 99

OTHERS = {"model_short", "api_leaks_pocl_import", "api_block_pocl_svm_coarse"}

NO_RANGE = "valgrind has no room for tens of GiB of reserved addresses; the pools of all others live without, as designed"
LEFT_OUT = {
    "backend_host": NO_RANGE,
    "os_memory": NO_RANGE + "; and it hands protected pages to the kernel to see that it refuses them",
    "os_fork_memory": NO_RANGE,
    "os_shared": "it hands protected pages to the kernel, as os_memory does",
    "policy_source": NO_RANGE,
    "policy_budget": NO_RANGE,
    "policy_decay": NO_RANGE,
    "policy_decay_fork": NO_RANGE,
    "policy_pressure": NO_RANGE,
    "api_pool": NO_RANGE,
    "api_decay": "it measures the process's memory, which is valgrind's too",
    "os_lock": "its litmus test spins, and valgrind runs one thread at a time",
    "pool_schedules": "it goes through every order of steps: many minutes",
    "api_fork": "a child has lost what the parent's other threads hold, which is right and looks like a leak",
    "api_threads": "as api_fork; and it measures the process's memory, which is valgrind's too",
    "api_runtime": "it loads every driver there is, beside each other, which takes minutes",
}
VALGRIND = ["valgrind", "--quiet", "--fair-sched=try", f"--error-exitcode={ERRORS}", "--leak-check=full",
            "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite", "--num-callers=40",
            f"--suppressions={ROOT}/tests/sanitizers/valgrind.supp"]


def chosen(names):
    listed = subprocess.run(["ctest", "--preset", "debug", "--show-only=json-v1"], cwd=ROOT, check=True, capture_output=True)
    for test in json.loads(listed.stdout)["tests"]:
        facts = {p["name"]: p["value"] for p in test.get("properties", [])}
        program = pathlib.Path(test.get("command", ["none"])[0])
        ours = program.name.startswith("test_") and ROOT in program.parents
        unit = "unit" in facts.get("LABELS", []) and test["name"] not in LEFT_OUT
        if test["name"] in names if names else ours and (unit or test["name"] in OTHERS):
            yield test["name"], test["command"], facts


def environment(facts):
    changed = dict(os.environ)
    for assignment in facts.get("ENVIRONMENT", []):
        name, _, value = assignment.partition("=")
        changed[name] = value
    for change in facts.get("ENVIRONMENT_MODIFICATION", []):
        name, _, operation = change.partition("=")
        changed[name] = operation.removeprefix("set:")
    if "OPENNUMA_CONF" in changed:  # the probe would have PoCL compile a kernel, which takes minutes here
        changed["OPENNUMA_CONF"] += ",opencl.probe:off"
    return changed


def run(test):
    name, command, facts = test
    log = LOGS / f"{name}.log"
    begin = time.monotonic()
    with open(log, "wb") as file:
        try:
            status = subprocess.run([*VALGRIND, *command], cwd=facts.get("WORKING_DIRECTORY", ROOT), env=environment(facts),
                                    stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                    timeout=TIMEOUT_S).returncode
        except subprocess.TimeoutExpired:
            status = f"nothing within {TIMEOUT_S} s"
    print(f"valgrind: {name}: {'ok' if status == 0 else f'FAILED ({status}), see {log}'}, "
          f"{time.monotonic() - begin:.0f} s", flush=True)
    return name, status


def main():
    LOGS.mkdir(parents=True, exist_ok=True)
    names = set(sys.argv[1:])
    tests = list(chosen(names))
    missing = (names or OTHERS) - {name for name, _, _ in tests}
    if missing:
        print(f"valgrind: no such test in the debug build: {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as crew:
        failed = [name for name, status in crew.map(run, tests) if status != 0]
    for name in failed:
        print(f"\n--- {name}\n" + (LOGS / f"{name}.log").read_text(errors="replace")[-6000:])
    print(f"valgrind: {len(tests)} tests, {len(failed)} failed; {len(LEFT_OUT)} are left out, with reasons in {sys.argv[0]}")
    return 1 if failed else 0


sys.exit(main())
