# SPDX-License-Identifier: Apache-2.0
"""Names, forms and values of commands and options; help and version."""
import re

import harness

COMMANDS = ["info", "demo", "replay", "bench", "doctor"]
BENCHES = ["alloc", "generate", "live", "replay", "sync"]


class OptionsTest(harness.CommandTest):
    def test_help(self):
        text = self.succeed("--help")
        self.assert_golden("help", text)
        self.assertEqual(self.succeed("-h"), text)
        listed = re.findall(r"^  (\w+) ", text, re.MULTILINE)
        self.assertEqual(listed, COMMANDS)

    def test_help_of_commands(self):
        for command in COMMANDS:
            with self.subTest(command):
                text = self.succeed(command, "--help")
                self.assert_golden(f"help-{command}", text)
                self.assertIn("--json", text)
                self.assertLessEqual(max(map(len, text.splitlines())), 120)

    def test_help_of_benches(self):
        listed = re.findall(r"^  (\w+) ", self.succeed("bench", "--help"), re.MULTILINE)
        self.assertEqual(listed, BENCHES)
        for bench in BENCHES:
            with self.subTest(bench):
                text = self.succeed("bench", bench, "--help")
                self.assert_golden(f"help-bench-{bench}", text)
                self.assertIn("--json", text)
                self.assertLessEqual(max(map(len, text.splitlines())), 120)

    def test_bench_unknown(self):
        self.refuse("bench", saying="NAME")
        self.refuse("bench", "aloc", saying=['"aloc"', 'did you mean "alloc"'])
        self.refuse("bench", "--json", saying="bench --help")

    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"\Aopennuma \d+\.\d+\.\d+\n\Z")

    def test_command_missing(self):
        self.refuse(saying="--help")

    def test_command_unknown(self):
        self.refuse("inof", saying=['"inof"', 'did you mean "info"'])
        self.refuse("re", saying='did you mean "replay"')
        self.refuse("completely-different", saying=['"completely-different"', "--help"])
        self.refuse("", saying="--help")
        self.refuse("--json", saying=["--json", "a command comes first"])

    def test_option_unknown(self):
        self.refuse("info", "--jsn", saying=["--jsn", "did you mean --json"])
        self.refuse("replay", "x", "--verfy=1", saying=["--verfy", "did you mean --verify"])
        self.refuse("info", "-j", saying="did you mean --json")
        self.refuse("info", "--zzzzzzzzzz", saying="info --help")
        self.refuse("info", "--" + "j" * 5000, saying="info --help")

    def test_option_values(self):
        self.refuse("info", "--json=yes", saying=["--json takes no value", '"yes"'])
        self.refuse("replay", "x", "--device", saying="--device needs a value: --device ID")
        self.refuse("replay", "x", "--source", "heap", saying=['"heap"', "range|segments"])
        self.refuse("replay", "x", "--source=", saying="range|segments")
        for scale in ["0", "-1", "nan", "inf", "1e999", "", "1x", "x"]:
            with self.subTest(scale):
                self.refuse("replay", "x", f"--scale={scale}", saying=["--scale", f'"{scale}"'])

    def test_operands(self):
        self.refuse("replay", saying="FILE")
        self.refuse("replay", "a", "b", saying='"b"')
        self.refuse("info", "x", saying='"x"')
        self.refuse("replay", "--", "--json", "x", saying='"x"')
        self.refuse("replay", "--", "--json", saying="--json: cannot open")

    def test_both_forms(self):
        trace = self.file("t.csv", "a,1,4096,0,0\nf,1,4096,0,1\n")
        apart = self.succeed_json("replay", trace, "--source", "segments", "--scale", "2")
        together = self.succeed_json("replay", "--source=segments", "--scale=2", trace)
        for result in (apart, together):
            self.assertEqual((result["source"], result["peak_requested"]), ("segments", 8192))
        last = self.succeed_json("replay", trace, "--scale=3", "--scale=1")
        self.assertEqual(last["peak_requested"], 4096)


harness.main()
