# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: running it, checking what it says, and texts kept to compare with.

A test file ends with harness.main(). It is run as

    python3 test_x.py PATH/TO/opennuma [--update] [names of tests]

The variable ONUMA_TEST_RUNNER names what runs the command if this machine cannot (Wine, an emulator).
where --update rewrites the kept texts (golden/*.txt) instead of comparing. No driver is loaded
unless a test asks for it, so results do not depend on the machine.
"""
import argparse
import gzip
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TRACES = HERE.parent / "data" / "traces"
HELD, FAILED, BAD_REQUEST = 0, 1, 2
TIMEOUT_S = 240
PATIENT = ("--timeout", "200")  # for the doctor: a machine under load, or a sanitizer, is no driver that hangs

RUNNER = shlex.split(os.environ.get("ONUMA_TEST_RUNNER", ""))

WINDOWS = any(argument.endswith(".exe") for argument in sys.argv[1:2])

binary = None
update = False


def not_on_windows(test):
    """Takes the place of a skip, which would count as a pass: there the test is not there at all."""
    return None if WINDOWS else test


class CommandTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="opennuma-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def environment(self, **changes):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENNUMA_", "LC_", "LANG"))}
        kept.setdefault("XDG_CACHE_HOME", str(self.folder)) # ctest sets one for all tests of a build
        return kept | {"OPENNUMA_CONF": "backends:host"} | changes

    def environment_with_drivers(self, **changes):
        """What drivers leak, and the locks that a sanitizer does not see in them, are not ours to report."""
        return {"OPENNUMA_CONF": "", "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=1",
                "TSAN_OPTIONS": "ignore_noninstrumented_modules=1"} | changes

    def run_command(self, *arguments, **options):
        """Run with these arguments, by `runner` if given. A crash (an exit by signal) or a sanitizer's report fails the test."""
        environment = self.environment(**options.pop("env", {}))
        runner = options.pop("runner", RUNNER)
        done = subprocess.run([*runner, binary, *(a if isinstance(a, bytes) else str(a) for a in arguments)], env=environment, timeout=TIMEOUT_S,
                              **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | options)
        said = (done.stderr or b"").decode()
        self.assertIn(done.returncode, (HELD, FAILED, BAD_REQUEST), said)
        self.assertNotIn("Sanitizer", said)
        return done

    def succeed(self, *arguments, **options):
        """Run; it must hold and say nothing on standard error. Its text."""
        done = self.run_command(*arguments, **options)
        self.assertEqual(done.stderr.decode(), "")
        self.assertEqual(done.returncode, HELD, (arguments, done.stdout))
        return done.stdout.decode()

    def succeed_json(self, *arguments, **options):
        return self.one_object(self.succeed(*arguments, "--json", **options))

    def one_object(self, text):
        """The object that is all of the text, on one line, with every number finite."""
        self.assertEqual(text.count("\n"), 1)
        self.assertTrue(text.endswith("\n"))
        value = json.loads(text, parse_constant=lambda name: self.fail(f"{name} in JSON"))
        self.assertIsInstance(value, dict)
        return value

    def refuse(self, *arguments, saying, status=BAD_REQUEST, **options):
        """Run; it must end with that status, print nothing, and say one line that holds these words."""
        done = self.run_command(*arguments, **options)
        said = done.stderr.decode()
        self.assertEqual(done.returncode, status, said)
        self.assertEqual(done.stdout or b"", b"")
        self.assertEqual(said.count("\n"), 1, said)
        self.assertTrue(said.startswith("opennuma: "), said)
        for words in [saying] if isinstance(saying, str) else saying:
            self.assertIn(words, said)
        return said

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def gzip_file(self, name, content):
        return self.file(name, gzip.compress(content.encode() if isinstance(content, str) else content))

    def assert_golden(self, name, text):
        path = HERE / "golden" / f"{name}.txt"
        if update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        self.assertTrue(path.exists(), f"{path} is missing; run with --update")
        self.assertEqual(path.read_text(), text, f"{path} differs; if the new text is right, run with --update")


def read_terminal(terminal, shown):
    """Append all that comes to a terminal until its other end is closed. It may come in pieces, some after that end's exit."""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            return
        if not piece:
            return
        shown.append(piece)


def main():
    global binary, update
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--update", action="store_true")
    arguments, rest = parser.parse_known_args()
    binary, update = arguments.binary, arguments.update
    unittest.main(argv=[sys.argv[0], *rest])
