# SPDX-License-Identifier: Apache-2.0
"""Results that cannot be written are an error, whatever the reason."""
import os
import subprocess
import threading

import harness

COMMANDS = [["--help"], ["--version"], ["info"], ["info", "--json"], ["info", "--config"], ["doctor", "--json"],
            ["replay", "--help"], ["replay", "--simulate", harness.TRACES / "prefetch_streams.csv.gz"]]
# On Windows the reason is gone by the time that a buffered write is found to have failed.
REASONS = {"full": ["No space left"], "closed": ["Broken pipe"]} if not harness.WINDOWS else {"full": [], "closed": []}


class OutputTest(harness.CommandTest):
    def test_full_disk(self):
        for command in COMMANDS:
            with self.subTest(command), open("/dev/full", "wb") as full:
                self.refuse(*command, stdout=full, saying=["cannot write standard output", *REASONS["full"]])

    def test_closed_pipe(self):
        for command in COMMANDS:
            with self.subTest(command):
                reading, writing = os.pipe()
                os.close(reading)
                try:
                    self.refuse(*command, stdout=writing, saying=["cannot write standard output", *REASONS["closed"]])
                finally:
                    os.close(writing)

    def closed(self, descriptors, *command):
        closing = " ".join(f"{d}{'<' if d == 0 else '>'}&-" for d in descriptors)
        return subprocess.run(["sh", "-c", f'exec "$0" "$@" {closing}', harness.binary, *map(str, command)],
                              env=self.environment(), capture_output=True, timeout=harness.TIMEOUT_S)

    @harness.not_on_windows  # Wine does not start without its standard streams
    def test_closed_output(self):
        for command in COMMANDS:
            with self.subTest(command):
                done = self.closed([1], *command)
                self.assertEqual(done.returncode, harness.BAD_REQUEST)
                self.assertIn(b"cannot write standard output", done.stderr)

    @harness.not_on_windows
    def test_other_streams_closed(self):
        trace = self.file("t.csv", "a,1,4096,0,0\nf,1,4096,0,1\n")
        done = self.closed([0, 2], "replay", trace, "--json")
        self.assertEqual(done.returncode, harness.HELD)
        self.assertEqual(self.one_object(done.stdout.decode())["ops"], 2)
        self.assertEqual(self.closed([0, 1, 2], "info").returncode, harness.BAD_REQUEST)

    @harness.not_on_windows  # Wine draws the console anew, character by character
    def test_progress_on_terminal_alone(self):
        import pty  # which Windows' Python lacks
        trace = harness.TRACES / "prefetch_streams.csv.gz"
        terminal, child_end = pty.openpty()
        pieces = []
        reader = threading.Thread(target=harness.read_terminal, args=(terminal, pieces))
        reader.start()
        done = self.run_command("replay", "--simulate", "--json", trace, stderr=child_end)
        os.close(child_end)
        reader.join()
        os.close(terminal)
        shown = b"".join(pieces).decode()
        self.assertEqual(self.one_object(done.stdout.decode())["errors"], 0)
        self.assertIn("replay 0%", shown)
        self.assertTrue(shown.endswith("\r\x1b[K"), shown)
        self.succeed("replay", "--simulate", trace)

    def test_status_survives(self):
        """A bad request stays one when the output is fine, and becomes one when it is not."""
        with open("/dev/full", "wb") as full:
            done = self.run_command("replay", "/nonexistent", stdout=full)
        self.assertEqual(done.returncode, harness.BAD_REQUEST)
        self.assertIn(b"/nonexistent: cannot open: No such file", done.stderr)


harness.main()
