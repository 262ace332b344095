# SPDX-License-Identifier: Apache-2.0
"""replay on the host device: what it measures, what it verifies, and the files and requests it refuses."""
import gzip
import os
import xml.etree.ElementTree

import harness

MEMBERS = {"trace", "ops", "peak_requested", "peak_reserved", "ratio", "metadata_peak", "ns_per_op", "driver_calls",
           "live_at_end", "end_reserved", "errors"}
RECORDED = {"prefetch_streams.csv.gz": (17480, 995375655, 3), "gnn_varsize.csv.gz": (20814, 6257659688, 2)}
SMALL = "op,id,bytes,stream,time_us\na,1,1000,0,0\na,2,5000,1,3\nf,1,1000,0,5\na,3,0,0,6\nf,2,5000,1,9\nf,3,0,0,9\n"


class MeasureTest(harness.CommandTest):
    def check(self, result, held=True):
        self.assertLessEqual(MEMBERS, set(result))
        self.assertEqual(result["errors"], 0)
        self.assertEqual(result["end_reserved"], 0)
        self.assertGreaterEqual(result["peak_reserved"], result["peak_requested"])
        self.assertAlmostEqual(result["ratio"], result["peak_reserved"] / result["peak_requested"])
        self.assertGreater(result["driver_calls"], 0)
        self.assertGreater(result["metadata_peak"], 0)
        self.assertGreaterEqual(result["ns_per_op"], 0)

    def test_small(self):
        path = self.file("small.csv", SMALL)
        for source in ("range", "segments"):
            result = self.succeed_json("replay", path, "--source", source, "--verify")
            self.check(result)
            self.assertEqual(result["trace"], str(path))
            self.assertEqual((result["ops"], result["peak_requested"], result["live_at_end"]), (6, 6000, 0))

    def test_same_trace_in_any_wrapping(self):
        for name, content in [("crlf.csv", SMALL.replace("\n", "\r\n").encode()), ("cut.csv", SMALL.rstrip().encode()),
                              ("t.csv.gz", gzip.compress(SMALL.encode())), ("misnamed.csv", gzip.compress(SMALL.encode())),
                              ("two.gz", gzip.compress(SMALL[:40].encode()) + gzip.compress(SMALL[40:].encode()))]:
            with self.subTest(name):
                result = self.succeed_json("replay", self.file(name, content), "--verify")
                self.assertEqual((result["ops"], result["peak_requested"]), (6, 6000))

    def test_standard_input(self):
        path = self.gzip_file("small.csv.gz", SMALL)
        with open(path, "rb") as stream:
            self.assertEqual(self.succeed_json("replay", "-", stdin=stream)["ops"], 6)

    def test_live_at_end(self):
        path = self.file("live.csv", "a,1,100,0,0\na,2,200,1,0\na,3,300,0,1\nf,2,200,1,2\n")
        result = self.succeed_json("replay", path, "--verify")
        self.assertEqual((result["live_at_end"], result["end_reserved"], result["peak_requested"]), (2, 0, 600))

    def test_only_empty_blocks(self):
        result = self.succeed_json("replay", self.file("empty.csv", "a,1,0,0,0\na,2,0,0,0\nf,1,0,0,1\n"), "--verify")
        self.assertEqual((result["peak_requested"], result["ratio"], result["live_at_end"]), (0, None, 1))

    def test_scale(self):
        path = self.file("small.csv", SMALL)
        for scale, peak in [("0.5", 3000), ("2", 12000), ("0.0001", 2)]:
            self.assertEqual(self.succeed_json("replay", path, "--scale", scale)["peak_requested"], peak)

    def test_series(self):
        path = self.file("small.csv", SMALL)
        result = self.succeed_json("replay", path, "--series")
        self.assertEqual([point[:2] for point in result["series"]],
                         [[0, 0], [1, 1000], [2, 6000], [3, 5000], [4, 5000], [5, 0], [6, 0]])
        self.assertNotIn("series", self.succeed_json("replay", path))
        trace = harness.TRACES / "gnn_varsize.csv.gz"
        result = self.succeed_json("replay", trace, "--simulate", "--series")
        self.assertEqual(len(result["series"]), 481)
        self.assertEqual(result["series"][-1][0], result["ops"])
        for _, live, reserved in result["series"]:
            self.assertLessEqual(live, reserved)
            self.assertLessEqual(reserved, result["peak_reserved"])
        self.assertEqual(max(len(line) for line in self.succeed("replay", trace, "--simulate", "--series").split("\n")[-19:]), 85)

    def test_svg(self):
        path = self.folder / "picture.svg"
        self.succeed("replay", self.file("small.csv", SMALL), "--svg", path)
        root = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}path")), 3)
        self.refuse("replay", self.folder / "small.csv", "--svg", self.folder / "no" / "where.svg", saying="cannot be written")

    def test_decay(self):
        """Blocks that are freed at the end and then left alone go back without a call of the program."""
        trace = self.file("large.csv", "".join(f"a,{i},33554432,0,{i}\n" for i in range(8)))
        result = self.succeed_json("replay", trace, "--decay", "--config", "decay.floor:0")
        self.assertGreaterEqual(result["freed_reserved"], 8 << 25)
        self.assertLess(result["decayed_reserved"], result["freed_reserved"])
        self.refuse("replay", trace, "--decay", "--simulate", saying="--decay takes time")

    def test_limit(self):
        """In a range 5 % above the most that lives at once is enough for every allocation, and is never passed."""
        for name, (_, peak, _) in RECORDED.items():
            for kind in (["--simulate"], []):
                with self.subTest(name=name, kind=kind):
                    limit = int(peak / 8 * 1.05)
                    result = self.succeed_json("replay", harness.TRACES / name, "--scale", "0.125", "--source", "range",
                                               "--limit", limit, *kind)
                    self.assertEqual(result["errors"], 0)
                    self.assertLessEqual(result["peak_reserved"], limit)
        path = self.file("small.csv", SMALL)
        self.refuse("replay", path, "--limit", "1e19", saying="--limit 1e+19 is more bytes than there can be")
        self.assertIn("ONUMA_ERROR_LIMIT", self.run_command("replay", path, "--limit", "60000").stderr.decode())

    def test_file_name_beyond_ascii(self):
        path = self.file("n\u00e4chstes \u6f22\u5b57 \U0001f9ee.csv", SMALL)
        self.assertEqual(self.succeed_json("replay", path)["trace"], str(path))
        self.assertIn(str(path), self.succeed("replay", path))
        missing = path.with_suffix(".txt")
        self.refuse("replay", missing, saying=f"{missing}: cannot open: No such file or directory")

    @harness.not_on_windows  # where names are UTF-16
    def test_file_name_of_any_bytes(self):
        path = os.fsencode(self.folder) + b"/\xff\xfe\".csv"
        with open(path, "wb") as file:
            file.write(SMALL.encode())
        result = self.succeed_json("replay", path)
        self.assertTrue(result["trace"].endswith("/\ufffd\ufffd\".csv"))

    def test_text(self):
        text = self.succeed("replay", self.file("small.csv", SMALL))
        for line in ("operations      6", "peak requested  5.86 KiB", "end reserved    0 B", "errors          0"):
            self.assertIn(line + "\n", text)

    def test_recorded_verified(self):
        for name, (ops, peak, live) in RECORDED.items():
            for source in ("range", "segments"):
                with self.subTest(name=name, source=source):
                    result = self.succeed_json("replay", harness.TRACES / name, "--source", source, "--verify",
                                               "--scale", "0.001")
                    self.check(result)
                    self.assertEqual((result["ops"], result["live_at_end"]), (ops, live))
                    self.assertAlmostEqual(result["peak_requested"] / peak, 0.001, 4)

    def test_recorded_simulated(self):
        """At full size, on any machine; and what is measured but the time does not depend on the run."""
        for name, (ops, peak, live) in RECORDED.items():
            for source in ("range", "segments"):
                with self.subTest(name=name, source=source):
                    runs = [self.succeed_json("replay", harness.TRACES / name, "--source", source, "--simulate")
                            for _ in range(2)]
                    self.check(runs[0])
                    self.assertEqual((runs[0]["ops"], runs[0]["peak_requested"], runs[0]["live_at_end"]), (ops, peak, live))
                    for run in runs:
                        del run["ns_per_op"]
                    self.assertEqual(*runs)

    def test_simulated_terabyte(self):
        lines = [f"a,{i},50000000000,0,{i}" for i in range(20)]
        result = self.succeed_json("replay", self.file("huge.csv", "\n".join(lines)), "--simulate", "--source", "segments")
        self.check(result)
        self.assertEqual((result["peak_requested"], result["live_at_end"]), (10**12, 20))


class QueuesTest(harness.CommandTest):
    """What may be reused when: blocks so large that each has memory of its own unless it takes another's.

    The library may ask a queue how far it is only when an allocation finds nothing free. WITNESS, on a stream
    of its own, is such an allocation, soon after the free; what the queue was given up to then counts.
    With pool.wait:0 nothing waits for a queue rather than grow, and the streams' lag shows.
    """
    SIZE = 64 << 20
    WITNESS = "a,9,SIZE,9,2"

    def peak(self, *lines, wait="0"):
        path = self.file("queues.csv", "\n".join(line.replace("SIZE", str(self.SIZE)) for line in lines))
        result = self.succeed_json("replay", path, "--simulate", "--source", "segments", "--config", f"pool.wait:{wait}")
        self.assertEqual(result["errors"], 0)
        return round(result["peak_reserved"] / self.SIZE)

    def test_same_stream_reuses_at_once(self):
        self.assertEqual(self.peak("a,1,SIZE,0,0", "f,1,SIZE,0,1", "a,2,SIZE,0,1"), 1)

    def test_other_stream_waits(self):
        self.assertEqual(self.peak("a,1,SIZE,0,0", "f,1,SIZE,0,1", self.WITNESS, "a,2,SIZE,1,900"), 3)

    def test_pool_waits_rather_than_grow(self):
        self.assertEqual(self.peak("a,1,SIZE,0,0", "f,1,SIZE,0,1", "a,2,SIZE,1,2", wait="1s"), 1)
        self.assertEqual(self.peak("a,1,SIZE,0,0", "f,1,SIZE,0,1", "a,2,SIZE,1,2"), 2)

    def test_other_stream_reuses_when_done(self):
        self.assertEqual(self.peak("a,1,SIZE,0,0", "f,1,SIZE,0,1", self.WITNESS, "a,2,SIZE,1,1100"), 2)

    def test_later_use_holds_the_block(self):
        self.assertEqual(self.peak("a,1,SIZE,0,0", "f,1,SIZE,0,1", self.WITNESS, "a,2,SIZE,0,5000", "r,1,SIZE,1,6000"), 3)

    def test_later_use_ends(self):
        self.assertEqual(self.peak("a,1,SIZE,0,0", "f,1,SIZE,0,1", self.WITNESS, "r,1,SIZE,1,4000", "a,2,SIZE,0,5000"), 2)

    def test_later_uses_end_in_another_order(self):
        begin = ["a,1,SIZE,0,0", "a,2,SIZE,0,0", "f,1,SIZE,0,1", "f,2,SIZE,0,1", self.WITNESS, "r,2,SIZE,1,4000"]
        end = ["r,1,SIZE,1,6000"]
        self.assertEqual(self.peak(*begin, "a,3,SIZE,0,5000", *end, "a,4,SIZE,0,7000"), 3)
        self.assertEqual(self.peak(*begin, "a,3,SIZE,0,5000", "a,4,SIZE,0,5900", *end), 4)


class RefuseTest(harness.CommandTest):
    def refuse_file(self, content, saying, name="bad.csv"):
        path = self.file(name, content)
        said = self.refuse("replay", path, "--json", saying=saying)
        self.assertTrue(said.startswith(f"opennuma: {path}: "), said)

    def test_unreadable(self):
        self.refuse("replay", "/nonexistent/t.csv", saying="/nonexistent/t.csv: cannot open: No such file or directory")
        self.refuse("replay", self.folder, saying=f"{self.folder}: cannot open: Permission denied" if harness.WINDOWS
                    else f"{self.folder}: line 1: cannot read: Is a directory")

    def test_not_a_trace(self):
        self.refuse_file("", "holds no operations")
        self.refuse_file("# nothing\n", "holds no operations")
        self.refuse_file("hello world\n", "line 1: neither gzip nor CSV")
        self.refuse_file(b"PK\x03\x04\0\0\0\0", "line 1: neither gzip nor CSV")
        self.refuse_file(bytes(range(256)) * 64, "line 1: neither gzip nor CSV")
        self.refuse_file("\n" * 5 + "x" * 100000, "line 6: neither gzip nor CSV")

    def test_damaged_gzip(self):
        whole = (harness.TRACES / "prefetch_streams.csv.gz").read_bytes()
        for size in (11, 1000, len(whole) - 9, len(whole) - 1):
            with self.subTest(size):
                self.refuse_file(whole[:size], "the gzip file is cut short", "cut.csv.gz")
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 0xFF
        done = self.run_command("replay", self.file("flipped.csv.gz", bytes(flipped)))
        self.assertEqual(done.returncode, harness.BAD_REQUEST)
        wrong_sum = whole[:-8] + b"\0\0\0\0" + whole[-4:]
        self.refuse_file(wrong_sum, "the gzip file is damaged", "sum.csv.gz")

    def test_bad_lines(self):
        for line, words in [("f,1,9,0,2", "id 1 is freed twice"), ("f,7,9,0,2", "id 7 was never allocated"),
                            ("a,2,-9,0,2", 'bytes "-9"'), ("a,2,99999999999999999999,0,2", "whole number"),
                            ("a,2,9223372036854775807,0,2", "more than any memory holds"), ("a,2", "2 columns"),
                            ("z,2,9,0,2", 'operation "z"')]:
            with self.subTest(line):
                self.refuse_file(f"a,1,9,0,0\nf,1,9,0,1\n{line}\n", ["line 3: ", words])

    def test_packed_emptiness(self):
        """More than a gibibyte of one comment in a file of a megabyte."""
        megabyte = gzip.compress(b"#" * (1 << 20), 9)
        self.refuse_file(megabyte * 1100, "more than 1073741824 bytes of text", "bomb.csv.gz")

    def test_bad_requests(self):
        path = self.file("small.csv", SMALL)
        self.refuse("replay", path, "--device", "opencl:99", saying="opencl:99")
        self.refuse("replay", path, "--device", "", saying="--device")
        self.refuse("replay", path, "--config", "nokey:1", saying="nokey")
        self.refuse("replay", path, "--config=backends:some", saying="some")
        self.refuse("replay", path, "--simulate", "--verify", saying="--verify needs memory")
        self.refuse("replay", path, "--scale", "1e300", "--simulate", saying=["--scale 1e+300", "2^64"])

    def test_too_large(self):
        lines = [f"a,{i},1000000000000,0,{i}" for i in range(20)]
        path = self.file("huge.csv", "\n".join(lines))
        said = self.refuse("replay", path, "--verify", status=harness.FAILED, saying=["18.2 TiB", "--scale "])
        scale = said.split("--scale ")[1].strip()
        self.assertLess(float(scale), 0.1)
        done = self.run_command("replay", path, "--json")
        self.assertEqual(done.returncode, harness.FAILED)
        result = self.one_object(done.stdout.decode())
        self.assertLessEqual(MEMBERS, set(result))
        self.assertEqual(result["peak_requested"], 20 * 10**12)
        self.assertLess(result["fitting_scale"], 0.1)
        fitting = self.succeed_json("replay", path, "--scale", scale)
        self.assertEqual(fitting["errors"], 0)


harness.main()
