# SPDX-License-Identifier: Apache-2.0
"""info and replay on a real driver. Which one, and how it shares memory, comes with the environment
(tests/stack/CMakeLists.txt)."""
import os
import sys

import harness

DEVICE = os.environ.get("OPENNUMA_TEST_DEVICE", "opencl:0")


class DeviceTest(harness.CommandTest):
    def environment(self, **changes):
        return dict(os.environ) | changes

    def run_command(self, *arguments, **options):
        done = super().run_command(*arguments, **options)
        sys.stderr.write(done.stderr.decode())  # ctest looks for Oclgrind's reports
        return done

    def replay(self, trace, *options):
        done = self.run_command("replay", trace, "--device", DEVICE, "--json", *options)
        self.assertEqual(done.returncode, harness.HELD, done.stderr.decode())
        result = self.one_object(done.stdout.decode())
        self.assertEqual((result["errors"], result["end_reserved"]), (0, 0))
        self.assertGreaterEqual(result["peak_reserved"], result["peak_requested"])
        return result

    def test_info(self):
        done = self.run_command("info", "--json")
        self.assertEqual(done.returncode, harness.HELD, done.stderr.decode())
        devices = {d["id"]: d for d in self.one_object(done.stdout.decode())["devices"]}
        device = devices[DEVICE]
        self.assertEqual(device["shared_via"], os.environ["ONUMA_TEST_WAY"])
        self.assertIn("shared", device["kinds"])
        self.assertGreater(device["memory_total"], 0)

    def test_recorded(self):
        """Two streams, later uses and 17,000 operations, verified through the CPU."""
        result = self.replay(harness.TRACES / "prefetch_streams.csv.gz", "--verify", "--scale", "0.004")
        self.assertEqual((result["ops"], result["live_at_end"]), (17480, 3))

    def test_later_uses(self):
        lines = []
        for i in range(40):
            lines += [f"a,{i},{4096 + i * 1000},{i % 3},{i}", f"f,{i},0,{i % 3},{i}"]
            if i % 2:
                lines.append(f"r,{i - 1},0,0,{i}")
        result = self.replay(self.file("later.csv", "\n".join(lines)), "--verify")
        self.assertEqual(result["live_at_end"], 0)

    def test_too_large(self):
        """The scale that is advised fits."""
        path = self.file("large.csv", "\n".join(f"a,{i},{1 << 40},0,{i}" for i in range(8)))
        said = self.refuse("replay", path, "--device", DEVICE, status=harness.FAILED, saying=[DEVICE, "--scale "])
        self.replay(path, "--scale", said.split("--scale ")[1].strip())

    def test_range_refused(self):
        path = self.file("small.csv", "a,1,100,0,0\n")
        self.refuse("replay", path, "--device", DEVICE, "--source", "range", saying=DEVICE)


harness.main()
