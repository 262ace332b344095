# SPDX-License-Identifier: Apache-2.0
"""bench alloc: every test runs, with counts that measure nothing; what it says is whole, and a bad request is refused."""
import os

import harness

QUICK = ("--repeat", "1", "--milliseconds", "0.001", "--threads", "2")
ONCE = [f"lifo-{size}" for size in ("64", "1K", "64K", "1M", "16M")] + ["rand-1", "rand-2", "prodcons-1K", "prodcons-rand"]
TESTS = ONCE + [f"{name}-touched" for name in ONCE] + ["lookup"]


class BenchTest(harness.CommandTest):
    def measure(self, *arguments, **options):
        return self.succeed_json("bench", "alloc", *QUICK, *arguments, **options)

    def check_test(self, test, expected):
        names = [result["allocator"] for result in test["results"]]
        self.assertEqual(names, expected)
        self.assertEqual(test["unit"], "ns")
        for result in test["results"]:
            for figures in (result, result["wall"], result["cpu"]):
                self.assertLessEqual(figures["min"], figures["median"])
                self.assertLessEqual(figures["median"], figures["max"])
            if not test["name"].startswith("prodcons") or result["allocator"] == "null":
                self.assertGreater(result["wall"]["min"], 0)
        if "best_peer" in test:
            best = names.index(test["best_peer"])
            self.assertEqual(min(r["median"] for r in test["results"][1:] if r["allocator"] != "null"),
                             test["results"][best]["median"])

    def test_all(self):
        found = self.measure()
        self.assertEqual([test["name"] for test in found["tests"]], TESTS)
        allocators = [allocator["name"] for allocator in found["allocators"]]
        self.assertEqual(allocators[0], "opennuma")
        self.assertIn(allocators[1:], [["glibc"], ["libc"]])
        self.assertEqual((found["repeat"], found["depth"], found["clock"], found["lacking"]), (1, 1, "wall", ""))
        self.assertEqual(sorted(found["machine"]), ["processor", "processors", "system"])
        for test in found["tests"]:
            name = test["name"]
            family = name.split("-")[0]
            self.check_test(test, ["opennuma"] if name == "lookup" else allocators + ["null"] * (family == "prodcons"))
            self.assertEqual(test["threads"], 2 if family == "prodcons" or name.startswith("rand-2") else 1)
            self.assertEqual("share_nothing" in test, family == "rand")
            self.assertEqual("scaling" in test["results"][0], name.startswith("rand-2"))

    def test_names_choose(self):
        def names(only):
            return [test["name"] for test in self.measure("--only", only)["tests"]]
        self.assertEqual(names("lifo-64"), ["lifo-64", "lifo-64-touched"])
        self.assertEqual(names("rand-1-touched,lifo-1M"), ["lifo-1M", "lifo-1M-touched", "rand-1-touched"])
        self.assertEqual(names("prodcons"), [name for name in TESTS if name.startswith("prodcons")])

    def test_one_allocator(self):
        (test,) = self.measure("--only", "lifo-1K-touched", "--allocator", "opennuma")["tests"]
        self.check_test(test, ["opennuma"])
        self.assertNotIn("best_peer", test)
        self.assertIsNone(test["results"][0]["to_best_peer"])

    def test_clock(self):
        (test,) = self.measure("--only", "lifo-64-touched", "--repeat", "3", "--clock", "cpu", "--allocator", "opennuma")["tests"]
        (result,) = test["results"]
        self.assertEqual(result["median"], result["cpu"]["median"])
        (test,) = self.measure("--only", "lifo-64-touched", "--repeat", "3", "--allocator", "opennuma")["tests"]
        (result,) = test["results"]
        self.assertEqual(result["median"], result["wall"]["median"])

    def test_depth(self):
        self.assertEqual(self.measure("--only", "lifo-64-touched", "--depth", "100")["depth"], 100)

    def test_text(self):
        text = self.succeed("bench", "alloc", *QUICK, "--only", "prodcons-1K-touched")
        for words in ["opennuma 0", "prodcons-1K-touched", "null", "to best peer"]:
            self.assertIn(words, text)

    def test_refused(self):
        for arguments, saying in [(["--only", "lifo-65"], '"lifo-65"'), (["--only", "lif"], '"lif"'), (["--only", ""], '""'),
                                  (["--repeat", "1.5"], "--repeat cannot be 1.5"), (["--repeat", "1e9"], "whole number"),
                                  (["--depth", "257"], "256"), (["--threads", "513"], "512"), (["--threads", "0.5"], "0.5"),
                                  (["--milliseconds", "1e6"], "60000"), (["--clock", "sun"], "wall|cpu"),
                                  (["--allocator", "hoard"], '"hoard"'), (["extra"], '"extra"')]:
            with self.subTest(arguments):
                self.refuse("bench", "alloc", *arguments, saying=saying)

    def test_peers_missing(self):
        remedy = "leave out --peers" if harness.WINDOWS else "scripts/setup.sh bench"
        self.refuse("bench", "alloc", "--peers-from", self.folder, saying=remedy)
        if not harness.WINDOWS:
            self.refuse("bench", "alloc", "--peers", env={"OPENNUMA_STACKS": str(self.folder)}, saying=remedy)
            self.file("libmimalloc.so.3", "no library")
            self.refuse("bench", "alloc", "--peers-from", self.folder, saying=["libmimalloc.so.3", remedy])


class PeersTest(harness.CommandTest):
    """Run by a ctest of its own: the libraries are those that scripts/setup.sh bench has installed."""

    def test_peers(self):
        found = self.succeed_json("bench", "alloc", *QUICK, "--only", "lifo-64,rand-2,prodcons-rand,lookup", "--peers",
                                  env={"OPENNUMA_STACKS": os.environ["ONUMA_TEST_STACKS"]})
        umf = ["umf-disjoint", "umf-disjoint-tuned", "umf-scalable"]
        if found["lacking"] != "umf-jemalloc": # PyPI's wheel is built without
            self.assertEqual(found["lacking"], "")
            umf.append("umf-jemalloc")
        allocators = ["opennuma", "mimalloc", "jemalloc", *umf, "glibc"]
        self.assertEqual([allocator["name"] for allocator in found["allocators"]], allocators)
        for test in found["tests"]:
            names = [result["allocator"] for result in test["results"]]
            self.assertEqual(names, ["opennuma", *umf] if test["name"] == "lookup" else
                             allocators + ["null"] * test["name"].startswith("prodcons"))
            self.assertNotIn(test["best_peer"], ["opennuma", "null"])


harness.main()
