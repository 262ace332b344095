# SPDX-License-Identifier: Apache-2.0
"""Bad files and bad calls, in tables: each gets one line that names what is wrong, status 2, and nothing on standard output."""
import gzip
import os
import pty
import resource
import signal
import socket
import subprocess
import threading
import time
import zlib

import harness

GOOD = b"a,1,4096,0,0\na,2,8192,1,5\nf,1,4096,0,9\nf,2,8192,1,10\n"
HEADER = b"op,id,bytes,stream,time_us\n"
BIG = 2**64


def packed(content):
    return gzip.compress(content, mtime=0)


def on_line(number, line):
    """A trace whose line `number` is this one."""
    return b"a,1,4096,0,0\n" + b"# comment\n" * (number - 2) + (line if isinstance(line, bytes) else line.encode()) + b"\n"


def bomb(text, megabytes):
    return packed(text * ((1 << 20) // len(text))) * megabytes


# What is in the file, and what is said of it (of several texts, each).
FILES = {
    "empty": (b"", "holds no operations"),
    "comments alone": (b"# a\n# b\n", "holds no operations"),
    "header alone": (HEADER, "holds no operations"),
    "blank lines alone": (b"\n \n\t\n", "holds no operations"),
    "packed emptiness": (packed(b""), "holds no operations"),
    "prose": (b"Dear reader,\nthis is no trace.\n", "line 1: neither gzip nor CSV"),
    "JSON": (b'{"op":"a","id":1}\n', "neither gzip nor CSV"),
    "XML": (b"<?xml version='1.0'?>\n<trace/>\n", "neither gzip nor CSV"),
    "a zip file": (b"PK\x03\x04" + bytes(60), "neither gzip nor CSV"),
    "an ELF file": (b"\x7fELF\x02\x01\x01" + bytes(57), "neither gzip nor CSV"),
    "a PNG file": (b"\x89PNG\r\n\x1a\n" + bytes(40), "neither gzip nor CSV"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(40), "neither gzip nor CSV"),
    "bzip2": (b"BZh91AY&SY" + bytes(range(40)), "neither gzip nor CSV"),
    "zlib without gzip": (zlib.compress(GOOD), "neither gzip nor CSV"),
    "all bytes": (bytes(range(256)) * 20, "neither gzip nor CSV"),
    "zero bytes": (bytes(4096), "neither gzip nor CSV"),
    "UTF-16": (GOOD.decode().encode("utf-16"), "neither gzip nor CSV"),
    "UTF-16 without a mark": (GOOD.decode().encode("utf-16-be"), "neither gzip nor CSV"),
    "UTF-32": (GOOD.decode().encode("utf-32"), "neither gzip nor CSV"),
    "one long line": (b"x" * 5_000_000, "neither gzip nor CSV: longer than 1024 bytes"),
    "a long line later": (on_line(3, b"a,2," + b"9" * 5000 + b",0,0"), "line 3: longer than 1024 bytes"),
    "packed prose": (packed(b"Dear reader,\n"), "neither gzip nor CSV"),
    "packed twice": (packed(packed(GOOD)), "neither gzip nor CSV"),
    "semicolons": (b"a;1;4096;0;0\n", "neither gzip nor CSV"),
    "tabs": (b"a\t1\t4096\t0\t0\n", "neither gzip nor CSV"),
    "wrong header": (b"op,id,size,stream,time\n" + GOOD, "the header must begin op,id,bytes,stream,time_us"),
    "short header": (b"op,id,bytes\n" + GOOD, "the header must begin"),
    "header twice": (HEADER + HEADER + GOOD, 'line 2: operation "op"'),
    "header at the end": (GOOD + HEADER, 'line 5: operation "op"'),
    "old line ends": (GOOD.replace(b"\n", b"\r"), "line 1"),
    "a zero byte inside": (on_line(4, b"a,2\x00,1,0,0"), "line 4: a zero byte"),
    "a zero byte at the end": (GOOD + b"\x00", "line 5: a zero byte"),
    "a mark in the middle": (on_line(3, b"\xef\xbb\xbfa,2,1,0,0"), 'line 3: operation "???a"'),
    # columns
    "no column": (on_line(3, "a"), "line 3: 1 columns"),
    "four columns": (on_line(3, "a,2,1,0"), "line 3: 4 columns"),
    "commas alone": (on_line(3, ",,,,"), 'operation ""'),
    "a thousand columns, wrong": (on_line(3, "z" + "," * 1000), 'operation "z"'),
    # operations
    "unknown operation": (on_line(3, "z,2,1,0,0"), 'operation "z" is none of a, f and r'),
    "capital operation": (on_line(3, "A,2,1,0,0"), 'operation "A"'),
    "operation by name": (on_line(3, "alloc,2,1,0,0"), 'operation "alloc"'),
    "blank before the operation": (on_line(3, " a,2,1,0,0"), 'operation " a"'),
    "quotes": (on_line(3, '"a","2","1","0","0"'), 'operation "'),
    "escape codes": (on_line(3, b"\x1b[31ma,2,1,0,0"), 'operation "?[31ma"'),
    "freed twice": (on_line(2, "f,1,4096,0,1") + b"f,1,4096,0,2\n", "line 3: id 1 is freed twice"),
    "freed before its allocation": (b"f,5,1,0,0\na,5,1,0,1\n", "line 1: id 5 was never allocated"),
    "freed and never allocated": (on_line(3, "f,7,4096,0,0"), "line 3: id 7 was never allocated"),
    "allocated twice": (on_line(3, "a,1,4096,0,0"), "line 3: id 1 is allocated twice"),
    "released while live": (on_line(3, "r,1,4096,0,0"), "id 1 has its r before its f"),
    "released twice": (GOOD + b"r,1,0,0,11\nr,1,0,0,12\n", "line 6: id 1 has its r twice"),
    "released and never allocated": (b"r,1,1,0,0\n", "id 1 was never allocated"),
    "more streams than are taken": (b"".join(b"a,%d,1,%d,0\n" % (i, i) for i in range(300)), "more than 256 streams"),
    "sizes beyond 2^64 together": (b"".join(b"a,%d,%d,0,0\n" % (i, 2**48) for i in range(70000)), "2^64 bytes are live"),
    # gzip
    "gzip header cut": (packed(GOOD)[:5], "line 1"),
    "gzip without a body": (packed(GOOD)[:10], "cut short"),
    "gzip cut in the body": (packed(GOOD)[:-12], "cut short"),
    "gzip cut in the sum": (packed(GOOD)[:-6], "cut short"),
    "gzip cut in the size": (packed(GOOD)[:-1], "cut short"),
    "gzip with a wrong sum": (packed(GOOD)[:-8] + bytes(4) + packed(GOOD)[-4:], "damaged"),
    "gzip with a wrong size": (packed(GOOD)[:-4] + b"\xff\xff\xff\x7f", "damaged"),
    "gzip of an unknown method": (b"\x1f\x8b\x07" + packed(GOOD)[3:], "damaged"),
    "gzip with reserved flags": (b"\x1f\x8b\x08\xff" + packed(GOOD)[4:], ""),
    "second member cut": (packed(GOOD) + packed(b"a,3,1,0,11\n")[:-5], "cut short"),
    "second member damaged": (packed(GOOD) + packed(b"a,3,1,0,11\n")[:-8] + bytes(8), "damaged"),
    # more than is taken
    "bomb of blank lines": (bomb(b"\n", 100), "more than 16777216 lines"),
    "bomb of short comments": (bomb(b"#\n", 100), "more than 16777216 lines"),
    "bomb of Windows' blank lines": (bomb(b"\r\n", 100), "more than 16777216 lines"),
    "bomb of zero bytes": (bomb(b"\0", 100), "neither gzip nor CSV: longer than"),
    "bomb of one line": (bomb(b"a", 100), "longer than 1024 bytes"),
}

NUMBERS = ["-1", "-9223372036854775808", "+1", "1.5", "1e3", "0x10", "nan", "inf", "-inf", "", " 1", "1 ", "1_000", "١", "true",
           str(BIG), str(10 * BIG), "9" * 400, "1\x00", "1\t", "--1", "1,"[:1] + "'"]
for index, name in enumerate(["id", "bytes", "stream", "time_us"], 1):
    for number in NUMBERS:
        fields = ["a", "2", "1", "0", "0"]
        fields[index] = number
        FILES[f"{name} is {number[:24]!r}"] = (on_line(3, ",".join(fields)),
                                               "line 3: " + ("a zero byte" if "\x00" in number else f"{name} "))
FILES["bytes beyond any memory"] = (on_line(3, f"a,2,{2**48 + 1},0,0"), "are more than any memory holds")

# What is taken, although it looks odd: how many operations are read.
ODD = {
    "Windows' line ends": (GOOD.replace(b"\n", b"\r\n"), 4),
    "no end of the last line": (GOOD[:-1], 4),
    "byte order mark": (b"\xef\xbb\xbf" + HEADER + GOOD, 4),
    "blank lines and comments": (b"\n# x\n\n" + GOOD.replace(b"\n", b"\n\n"), 4),
    "more columns": (GOOD.replace(b"\n", b",x,y,,\n"), 4),
    "many columns": (GOOD.replace(b"\n", b"," * 900 + b"\n"), 4),
    "time goes back": (b"a,1,1,0,100\nf,1,1,0,5\n", 2),
    "largest time": (b"a,1,1,0,%d\nf,1,1,0,0\n" % (BIG - 1), 2),
    "largest id and stream": (b"a,%d,1,%d,0\n" % (BIG - 1, BIG - 1), 1),
    "leading zeros": (b"a,0001,00004096,00,000\nf,1,,0,0\n", 2),
    "id used again": (b"a,1,1,0,0\nf,1,1,0,0\n" * 50, 100),
    "long comments": (b"#" + b"x" * 100000 + b"\n" + GOOD, 4),
    "many members": (b"".join(packed(bytes([byte])) for byte in GOOD), 4),
    "empty members between": (packed(b"") * 20 + packed(GOOD) + packed(b""), 4),
    "zeros behind gzip": (packed(GOOD) + bytes(512), 4),
    "garbage behind gzip": (packed(GOOD) + b"garbage", 4),
    "stored, not packed": (gzip.compress(GOOD, 0), 4),
}

# Arguments, and what is said.
CALLS = [
    ([], "which command"), (["--bogus"], "a command comes first"), (["replya"], 'did you mean "replay"'), ([""], "--help"),
    (["\x1b[31m"], "--help"), ([b"\xff\xfe"], "--help"), (["info", "demo"], '"demo" is one argument too many'),
    (["info", "--cofnig"], "did you mean --config"), (["info", "--json", "--json=1"], "takes no value"),
    (["info", "--" + "x" * 100000], "info --help"), (["doctor", "x"], "one argument too many"),
    (["doctor", "--timeout"], "needs a value"), (["doctor", "--timeout", "0"], "greater than 0"),
    (["doctor", "--timeout", "-1"], "greater than 0"), (["doctor", "--timeout", "nan"], "greater than 0"),
    (["doctor", "--timeout", "1e300"], "at most 86400"), (["doctor", "--probe"], "did you mean --no-probe"),
    (["demo", "--device", "opencl:999"], "opencl:999"), (["demo", "--device", "gpu"], "gpu"), (["demo", "--device="], 'there is no device ""'),
    (["demo", "--device", "x" * 5000], "device"), (["demo", "--device", "host\n"], "host"), (["demo", "--fast"], "demo has no option --fast"),
    (["replay"], "replay needs FILE"), (["replay", "GOOD", "GOOD"], "one argument too many"),
    (["replay", "GOOD", "--device", "opencl:99999999999999999999"], "opencl:99999999999999999999"),
    (["replay", "GOOD", "--device", "host:1"], "host:1"), (["replay", "GOOD", "--device", "HOST"], "HOST"),
    (["replay", "GOOD", "--source", "x"], "range|segments|auto"), (["replay", "GOOD", "--source", "range|segments"], "it is one of"),
    (["replay", "GOOD", "--config", "x"], '"x"'), (["replay", "GOOD", "--config", "log:loud"], "loud"),
    (["replay", "GOOD", "--config", "pool.cache:-1"], "pool.cache"), (["replay", "GOOD", "--config", "pool.cache:99999999999999999999g"], "pool.cache"),
    (["replay", "GOOD", "--config", "pool.segment:1.5m"], "pool.segment"), (["replay", "GOOD", "--config", ":"], "--config"[:0]),
    (["replay", "GOOD", "--config", "log:warn,,x:1"], ""), (["replay", "GOOD", "--config", "x" * 20000], ""),
    (["replay", "GOOD", "--scale", "0"], '"0"'), (["replay", "GOOD", "--scale", "-2"], '"-2"'), (["replay", "GOOD", "--scale", "nan"], '"nan"'),
    (["replay", "GOOD", "--scale", "inf"], '"inf"'), (["replay", "GOOD", "--scale", "1e400"], '"1e400"'),
    (["replay", "GOOD", "--scale", "1e-400"], '"1e-400"'), (["replay", "GOOD", "--scale", "1,5"], '"1,5"'),
    (["replay", "GOOD", "--scale", ""], '""'), (["replay", "GOOD", "--scale", "1e300", "--simulate"], "2^64"),
    (["replay", "GOOD", "--verify", "--simulate"], "drop one of them"), (["replay", "--", "--verify"], "cannot open"),
    (["replay", "/nonexistent/x"], "No such file"), (["replay", "/"], "Is a directory"), (["replay", "/dev/zero"], "neither gzip nor CSV"),
    (["replay", "/dev/null"], "holds no operations"), (["replay", "/dev/full"], "neither gzip nor CSV"), (["replay", ""], "cannot open"),
    (["replay", "GOOD/x"], "Not a directory"), (["replay", "x" * 5000], "File name too long"), (["replay", "/proc/self/mem"], "cannot read"),
    (["replay", "LOOP"], "Too many levels"), (["replay", "DANGLING"], "No such file"), (["replay", "SOCKET"], "cannot open"),
    (["replay", "-"], "holds no operations"),
]


class TableTest(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.good = self.file("good.csv", GOOD)

    def check_no_traces(self):
        self.assertEqual({p.name for p in self.folder.iterdir()} - {"good.csv", "bad"}, set())

    def test_files(self):
        for name, (content, words) in FILES.items():
            with self.subTest(name):
                path = self.file("bad", content)
                said = self.refuse("replay", path, "--json", "--simulate", saying=words)
                self.assertTrue(said.startswith(f"opennuma: {path}: "), said)
                self.assertLess(len(said), 600)
                self.assertTrue(said[:-1].isprintable(), said)
                self.check_no_traces()

    def test_any_cut(self):
        """A trace cut at any byte is whole, or is refused; one that is packed is refused wherever it is cut."""
        for size in range(len(GOOD)):
            done = self.run_command("replay", self.file("bad", GOOD[:size]), "--json", "--simulate")
            self.assertIn(done.returncode, (harness.HELD, harness.BAD_REQUEST))
            self.assertEqual(bool(done.stdout), done.returncode == harness.HELD)
            self.assertEqual(done.stderr.count(b"\n"), 0 if done.returncode == harness.HELD else 1)
        whole = packed(GOOD)
        for size in range(len(whole)):
            self.refuse("replay", self.file("bad", whole[:size]), saying="" if size < 11 else "cut short")

    def test_odd_files(self):
        for name, (content, operations) in ODD.items():
            with self.subTest(name):
                self.assertEqual(self.succeed_json("replay", self.file("bad", content), "--simulate")["ops"], operations)

    def special_files(self):
        os.symlink("loop", self.folder / "loop")
        os.symlink("/nonexistent/x", self.folder / "dangling")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.folder / "socket"))
        return {"GOOD": str(self.good), "GOOD/x": f"{self.good}/x", "LOOP": str(self.folder / "loop"),
                "DANGLING": str(self.folder / "dangling"), "SOCKET": str(self.folder / "socket")}

    def test_calls(self):
        paths = self.special_files()
        for call, words in CALLS:
            with self.subTest(str(call)[:80]):
                said = self.refuse(*[paths.get(a, a) for a in call], saying=words)
                self.assertTrue(said[:-1].isprintable(), said)

    def test_enough(self):
        self.assertGreaterEqual(len(FILES) + len(CALLS), 100)

    def test_unreadable(self):
        """Root may read anything, so it gives that power up. (Somebody else might not reach the command at all.)"""
        os.chmod(self.good, 0)
        runner = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
        self.refuse("replay", self.good, runner=runner, saying="cannot open: Permission denied")

    def test_settings(self):
        for conf in ("x:1", "log", "log:", ":", "log:loud", "log:warn,log", "opencl.share:usm2", "pool.cache:1x", "\xff\xfe:1",
                     "x" * 100000, "check:hazards,check"):
            for command in (["info"], ["demo", "--device", "host"], ["replay", self.good]):
                with self.subTest(conf=conf[:30], command=command[0]):
                    self.refuse(*command, "--json", env={"OPENNUMA_CONF": conf}, saying="OPENNUMA_CONF")


class SurroundingsTest(harness.CommandTest):
    """Terminals, locales, input and memory of any kind."""
    def setUp(self):
        super().setUp()
        self.good = self.file("good.csv", GOOD)

    def test_terminals_and_locales(self):
        plain = self.succeed("info", "--config")
        for name, value in (("TERM", "dumb"), ("TERM", ""), ("TERM", "../../../etc/passwd"), ("COLUMNS", "1"), ("COLUMNS", "-1"),
                            ("COLUMNS", "nan"), ("LC_ALL", "C"), ("LC_ALL", "xx_YY.utf-99"), ("LC_ALL", "de_DE.ISO-8859-1"),
                            ("LANG", "tr_TR.UTF-8"), ("HOME", "/nonexistent"), ("TMPDIR", "/nonexistent"), ("PATH", "")):
            with self.subTest(f"{name}={value}"):
                self.assertEqual(self.succeed("info", "--config", env={name: value}), plain)
                self.assertEqual(self.succeed_json("replay", self.good, env={name: value})["ops"], 4)

    def test_hardly_any_environment(self):
        done = subprocess.run([harness.binary, "replay", self.good, "--json"], env={"OPENNUMA_CONF": "backends:host"}, capture_output=True, timeout=60, check=True)
        self.assertEqual(self.one_object(done.stdout.decode())["ops"], 4)

    def test_input(self):
        with open(self.good, "rb") as stream:
            self.assertEqual(self.succeed_json("replay", "-", stdin=stream)["ops"], 4)
        reading, writing = os.pipe()
        os.write(writing, packed(GOOD)[:-3])
        os.close(writing)
        self.refuse("replay", "-", stdin=reading, saying="-: line 5: the gzip file is cut short")
        os.close(reading)
        done = subprocess.run(["sh", "-c", 'exec "$0" replay - --json <&-', harness.binary], env=self.environment(),
                              capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count(b"\n")), (harness.BAD_REQUEST, b"", 1))

    def test_fifo(self):
        path = self.folder / "fifo"
        os.mkfifo(path)
        writer = threading.Thread(target=lambda: path.write_bytes(GOOD))
        writer.start()
        self.assertEqual(self.succeed_json("replay", path)["ops"], 4)
        writer.join()

    def test_memory_runs_out(self):
        """Wherever it does: one line, status 1 or 2, and at most one object."""
        lines = b"".join(b"a,%d,%d,0,%d\n" % (i, 1 << 20, i) for i in range(400))
        trace = self.file("blocks.csv", lines)
        if b"built with" in self.run_command("doctor", "--json").stdout:
            return  # a sanitizer reserves more than any limit leaves
        ends = set()
        for megabytes in range(8, 560, 24):
            limit = megabytes << 20
            done = subprocess.run([harness.binary, "replay", trace, "--json"], capture_output=True, timeout=60, check=False,
                                  env=self.environment(),
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            if b"error while loading shared libraries" in done.stderr:
                continue  # the dynamic loader's own
            with self.subTest(megabytes):
                self.assertIn(done.returncode, (harness.HELD, harness.FAILED), done.stderr)
                self.assertEqual(done.stderr.count(b"\n"), 0 if done.returncode == harness.HELD else 1, done.stderr)
                if done.stdout:
                    self.one_object(done.stdout.decode())
                ends.add(done.returncode)
        self.assertIn(harness.FAILED, ends)


class InterruptTest(harness.CommandTest):
    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            reading, writing = os.pipe()
            process = subprocess.Popen([harness.binary, "replay", "-", "--json"], stdin=reading, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env=self.environment())
            os.write(writing, GOOD)
            time.sleep(0.1)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            os.close(reading)
            os.close(writing)
            self.assertEqual((process.returncode, out, err), (-number, b"", b""))

    def test_interrupted_while_it_draws(self):
        """The line that tells how far it is does not stay on the terminal; a shell sees status 130."""
        lines = b"".join(b"a,%d,1048576,0,%d\nf,%d,1048576,0,%d\n" % (i, i, i, i) for i in range(60000))
        trace = self.file("long.csv", lines)
        terminal, child_end = pty.openpty()
        shown = []
        reader = threading.Thread(target=harness.read_terminal, args=(terminal, shown))
        reader.start()
        process = subprocess.Popen(["sh", "-c", '"$0" "$@"; echo "status $?"', harness.binary, "replay", trace, "--verify"],
                                   stdout=subprocess.PIPE, stderr=child_end, env=self.environment(), start_new_session=True)
        while b"replay" not in b"".join(shown):
            time.sleep(0.01)
        pids = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout.split()
        os.kill(int(pids[0]), signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        os.close(child_end)
        reader.join()
        os.close(terminal)
        self.assertEqual(out, b"status 130\n")
        self.assertTrue(b"".join(shown).rstrip(b"\r\n").endswith(b"\r\x1b[K"), shown)


harness.main()
