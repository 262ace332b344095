# SPDX-License-Identifier: Apache-2.0
"""bench sync: every test runs, with counts that measure nothing, and a bad request is refused."""
import harness

QUICK = ("--repeat", "3", "--milliseconds", "0.001")


class BenchSyncTest(harness.CommandTest):
    def test_all(self):
        found = self.succeed_json("bench", "sync", *QUICK)
        names = [test["name"] for test in found["tests"]]
        for name in ["acquire-release", "use-submitted", "use-many-submitted", "hand-over"]:
            self.assertIn(name, names)
        for size in ["256", "64K", "4M"]:
            self.assertEqual(names.index(f"alloc-free-{size}-queue"), names.index(f"alloc-free-{size}") + 1)
        for test in found["tests"]:
            self.assertEqual((test["threads"], test["unit"]), (1, "ns"))
            (result,) = test["results"]
            self.assertEqual(result["allocator"], "opennuma")
            self.assertGreater(result["min"], 0)
            self.assertLessEqual(result["min"], result["median"])
            self.assertLessEqual(result["median"], result["max"])

    def test_text(self):
        text = self.succeed("bench", "sync", *QUICK, "--clock", "cpu")
        for words in ["acquire-release", "median", "announced and marked"]:
            self.assertIn(words, text)

    def test_refused(self):
        for arguments, saying in [(["--repeat", "1.5"], "--repeat cannot be 1.5"), (["--repeat", "1e9"], "whole number"),
                                  (["--milliseconds", "1e6"], "60000"),
                                  (["--clock", "sun"], "wall|cpu"), (["extra"], '"extra"')]:
            with self.subTest(arguments):
                self.refuse("bench", "sync", *arguments, saying=saying)


harness.main()
