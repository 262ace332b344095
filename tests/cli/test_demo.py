#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command `opennuma demo`: its JSON, its text, its exit statuses. usage: test_demo.py COMMAND DEVICE [Demo.test_...]"""
import json
import os
import shlex
import subprocess
import sys
import unittest

COMMAND = sys.argv.pop(1)
DEVICE = sys.argv.pop(1)
RUNNER = shlex.split(os.environ.get("ONUMA_TEST_RUNNER", ""))
CHECKS = ["initialize", "allocate", "operate", "alias", "shared_access", "release"]


def demo(*arguments, **options):
    return subprocess.run([*RUNNER, COMMAND, "demo", *arguments], capture_output=True, text=True, timeout=500, **options)


class Demo(unittest.TestCase):
    def test_json(self):
        result = demo("--device", DEVICE, "--json")
        told = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0, told)
        self.assertEqual(told["device"], DEVICE)
        self.assertEqual([c["name"] for c in told["checks"]], CHECKS)
        for check in told["checks"]:
            self.assertIs(check["ok"], True, check)
            self.assertTrue(check["detail"])
        sizes = [row["bytes"] for row in told["transfer"]]
        self.assertEqual(sizes, [4096 * 4 ** i for i in range(len(sizes))])
        self.assertGreaterEqual(len(sizes), 7)
        for row in told["transfer"]:
            for direction in "to_device", "to_host":
                self.assertGreater(row[direction]["default_us"], 0)
                self.assertGreaterEqual(row[direction]["opennuma_us"], 0)
        work = {row["name"]: row for row in told["workload"]}
        self.assertEqual(set(work), {"cnn", "transformer", "vector_add", "reduce_sum", "matmul"})
        for row in work.values():
            self.assertGreater(row["default_us"], 0)
            self.assertGreater(row["opennuma_us"], 0)
            self.assertLessEqual(row["max_error"], row["allowed_error"])
        for network in "cnn", "transformer":
            self.assertEqual(work[network]["correct"], work[network]["expected_correct"])
            self.assertGreater(work[network]["correct"], 0.97 * work[network]["images"])
            self.assertLess(work[network]["opennuma_bytes"], work[network]["default_bytes"])

    def test_a_fault_fails_in_words(self):
        result = demo("--device", DEVICE, "--fault", "kernel")
        self.assertEqual(result.returncode, 1)
        line = next(x for x in result.stdout.splitlines() if x.split()[:1] == ["operate"])
        self.assertIn("FAILED", line)
        self.assertIn("NOT everything held: 5 of 6 checks", result.stdout)

    def test_bad_requests(self):
        for arguments in (["--device", "opencl:99"], ["--fault", "nosuch"], ["--nosuch"], ["operand"], ["--device"]):
            result = demo(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertTrue(result.stderr.startswith("opennuma: "), result.stderr)
            self.assertEqual(result.stdout, "")

    def test_bad_configuration(self):
        result = demo(env=os.environ | {"OPENNUMA_CONF": "nosuch:1"})
        self.assertEqual(result.returncode, 2)

    def test_help(self):
        result = demo("--help")
        self.assertEqual(result.returncode, 0)
        for word in "--device", "--fault", "--json":
            self.assertIn(word, result.stdout)


if __name__ == "__main__":
    unittest.main()
