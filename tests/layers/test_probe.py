# SPDX-License-Identifier: Apache-2.0
"""The sharing probe on a real driver, honest and made to misbehave by a layer: what it finds, that it finds the same
from the cache, that no finding vouches for another driver, and that the demo runs by what remains.

usage: test_probe.py COMMAND FOLDER_OF_LAYERS; the driver comes with the environment (tests/stack/CMakeLists.txt)
"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import harness  # noqa: E402

LAYERS = pathlib.Path(sys.argv.pop(2))
STACK = os.environ["ONUMA_TEST_STACK"]
BEST = {"pocl": "svm_fine", "intel": "usm", "rusticl": "import", "oclgrind": "import"}[STACK]
COHERENT = BEST != "import"
# The demo computes for a minute where kernels run on a slow driver. There `demo_*_copies` and the like have it, by the
# way that is found here.
DEMO = STACK == "pocl"


class ProbeTest(harness.CommandTest):
    def environment(self, **changes):
        caches = os.environ["XDG_CACHE_HOME"]  # what Mesa compiled stays where it was
        return dict(os.environ) | {"XDG_CACHE_HOME": str(self.folder), "MESA_SHADER_CACHE_DIR": caches,
                                   "OPENNUMA_CONF": "opencl.patience:300s"} | changes  # busy is not hung

    def layer(self, name, settings="", **changes):
        return {"OPENCL_LAYERS": str(LAYERS / f"layer_{name}.so"), f"LAYER_{name.upper()}": settings} | changes

    def look(self, environment=None):
        done = self.run_command("info", "--json", env=environment or {})
        sys.stderr.write(done.stderr.decode())
        self.assertEqual(done.returncode, harness.HELD, done.stderr.decode())
        return next(d for d in self.one_object(done.stdout.decode())["devices"] if d["id"] == "opencl:0")

    def same_twice(self, environment=None):
        """Measured, and then the same from the cache; returns it."""
        first, second = self.look(environment), self.look(environment)
        if first["proof"] == "measured":
            self.assertEqual(second["proof"], "cached")
        else:
            self.assertEqual((first["proof"], second["proof"]), ("failed", "failed"), first["sharing_detail"])
        for name in ("shared_via", "coherent", "kinds", "import_zero_copy", "sharing_detail", "sharing_notes", "max_block"):
            self.assertEqual(first[name], second[name], name)
        return first

    def demo(self, environment):
        done = self.run_command("demo", "--device", "opencl:0", "--json", env=environment)
        self.assertEqual(done.returncode, harness.HELD, done.stdout.decode() + done.stderr.decode())

    # ---- honest

    def test_honest(self):
        found = self.same_twice()
        self.assertEqual((found["shared_via"], found["coherent"]), (BEST, COHERENT))
        self.assertTrue(found["import_zero_copy"])
        self.assertIn("shared", found["kinds"])
        self.assertIn(f"{BEST} proved", found["sharing_detail"])
        self.assertEqual(found["sharing_notes"], [])

    def test_each_way(self):
        ways = {"pocl": ["svm_fine", "svm_coarse", "import"], "intel": ["usm", "svm_fine", "svm_coarse", "import"]}
        for way in ways.get(STACK, ["import"]):
            with self.subTest(way):
                found = self.same_twice({"OPENNUMA_CONF": f"opencl.share:{way}"})
                self.assertEqual(found["shared_via"], way)
                self.assertEqual(found["coherent"], way in ("usm", "svm_fine"))

    def test_settings(self):
        off = self.look({"OPENNUMA_CONF": "opencl.probe:off"})
        self.assertEqual((off["proof"], off["shared_via"], off["import_zero_copy"]), ("assumed", BEST, False))
        self.assertFalse((self.folder / "opennuma").exists())
        for _ in range(2):
            self.assertEqual(self.look({"OPENNUMA_CONF": "opencl.probe:always"})["proof"], "measured")
        self.assertEqual(self.look()["proof"], "cached")

    # ---- the cache

    def cached_file(self):
        files = list((self.folder / "opennuma").iterdir())
        self.assertEqual(len(files), 1, files)
        return files[0]

    def test_cache_is_private_and_renewed(self):
        self.look()
        file = self.cached_file()
        self.assertEqual((file.stat().st_mode & 0o7777, file.parent.stat().st_mode & 0o7777), (0o600, 0o700))
        good = file.read_bytes()
        for spoil in (lambda: file.write_bytes(good[:-1]), lambda: file.write_bytes(good.replace(b"=yes", b"=no", 1)),
                      lambda: file.chmod(0o666), lambda: (file.unlink(), os.mkfifo(file)),
                      lambda: (file.unlink(), file.symlink_to("/dev/zero")), lambda: file.parent.chmod(0o777)):
            spoil()
            self.assertEqual(self.look()["proof"], "measured")
            self.assertEqual(self.look()["proof"], "cached")  # it was written anew
            self.assertEqual(file.stat(follow_symlinks=False).st_mode & 0o177777, 0o100600)
            self.assertEqual(file.read_bytes(), good)

    def test_places_without_a_cache(self):
        for home in ({"XDG_CACHE_HOME": "/nonexistent/a/b"}, {"XDG_CACHE_HOME": "/proc"}, {"XDG_CACHE_HOME": "", "HOME": ""},
                     {"XDG_CACHE_HOME": "relative", "HOME": "also relative"}):
            with self.subTest(home):
                self.assertEqual(self.look(home)["proof"], "measured")

    # ---- made to misbehave

    def misbehave(self, name, settings, via, zero_copy=False, coherent=False, demo=True, says="", notes=(), **changes):
        """Nothing that was found without the layer vouches for it, and nothing that was found with it for the driver."""
        honest = self.look()
        environment = self.layer(name, settings, **changes)
        found = self.same_twice(environment)
        self.assertEqual((found["shared_via"], found["coherent"], found["import_zero_copy"]), (via, coherent, zero_copy),
                         found["sharing_detail"])
        self.assertEqual("shared" in found["kinds"], via != "")
        self.assertIn(says, found["sharing_detail"])
        self.assertEqual(found["sharing_notes"], list(notes))
        self.assertEqual(self.look()["sharing_detail"], honest["sharing_detail"])
        if demo and via and DEMO:
            self.demo(environment)
        return found

    def test_copies(self):
        self.misbehave("copies", "svm:1", BEST, coherent=COHERENT, says="imports are perhaps copied")

    def test_copies_large_memory_only(self):
        self.misbehave("copies", "svm:1,from:1048576", BEST, coherent=COHERENT, demo=False, says="imports are perhaps copied")

    def test_copies_forced(self):
        self.misbehave("copies", "svm:1", "import", OPENNUMA_CONF="opencl.share:import", says="import proved with map")

    def test_delays(self):
        what_remains = "import" if STACK == "rusticl" else "svm_fine"
        found = self.misbehave("delays", "fine:1,usm:1,granule:64", what_remains,
                               notes=["slower"] if what_remains != "import" else [])
        self.assertIn("proved with map and unmap", found["sharing_detail"])
        if STACK == "intel":
            self.assertIn("usm: ", found["sharing_detail"])

    def test_corrupts_one_byte(self):
        cases = [(when, at) for when in ("kernel_out", "kernel_in") for at in ("first", "last", "odd", "page")]
        for when, at in cases if STACK == "pocl" else cases[::3]:
            with self.subTest(when=when, at=at):
                found = self.misbehave("corrupts", f"when:{when},at:{at}", "", notes=["no_imports"])
                self.assertEqual(found["proof"], "failed")

    def test_corrupts_maps_only(self):
        for when in ("map", "unmap"):
            with self.subTest(when):
                self.misbehave("corrupts", f"when:{when},at:odd", "" if BEST == "import" else BEST, coherent=COHERENT,
                               says="import: ", notes=["no_imports"])

    # ---- idle

    def no_way(self, environment, note, says):
        """Nothing is shared, nobody waits for ever, and no program's data gets there."""
        found = self.look(environment)
        self.assertEqual((found["proof"], found["shared_via"], found["kinds"], found["import_zero_copy"]),
                         ("failed", "", ["device"], False))
        self.assertIn(note, found["sharing_notes"])
        self.assertIn(says, found["sharing_detail"])
        done = self.run_command("demo", "--device", "opencl:0", "--json", env=environment)
        self.assertEqual(done.returncode, harness.FAILED, done.stderr.decode())
        checks = self.one_object(done.stdout.decode())["checks"]
        self.assertFalse(next(c for c in checks if c["name"] == "initialize")["ok"])

    def test_runs_no_kernels(self):
        environment = self.layer("idles", "kernel:skip")
        self.no_way(environment, "no_kernels", "runs no kernels")
        self.same_twice(environment)

    def test_never_ends(self):
        for settings, what in (("kernel:hang", "a kernel"), ("kernel:hang,after:9", "a kernel"),
                               ("map:hang", "clEnqueueMapBuffer"), ("unmap:hang,after:5", "clEnqueueUnmapMemObject"),
                               ("copy:hang,kernel:skip", "a copy to the device")):
            with self.subTest(settings):
                self.no_way(self.layer("idles", settings, OPENNUMA_CONF="opencl.patience:1s"), "hangs",
                            f"{what} on ")

    def test_never_ends_a_map_of_svm(self):
        if BEST == "import":
            return  # there is no SVM
        for settings, what in (("map:hang", "clEnqueueSVMMap"), ("unmap:hang", "clEnqueueSVMUnmap")):
            with self.subTest(settings):
                conf = "opencl.patience:1s,opencl.share:svm_coarse"
                self.no_way(self.layer("idles", settings, OPENNUMA_CONF=conf), "hangs", f"{what} on ")

    def test_has_no_compiler(self):
        for compiler in ("none", "fails"):
            with self.subTest(compiler):
                environment = self.layer("idles", f"compiler:{compiler}")
                for _ in range(2):
                    found = self.look(environment)
                    self.assertEqual((found["proof"], found["coherent"], found["import_zero_copy"]),
                                     ("unprovable", False, False))
                    self.assertEqual(found["shared_via"], "import" if BEST == "import" else "svm_coarse")
                    self.assertIn("unproved, so always with map and unmap", found["sharing_detail"])

    def test_refuses_below_what_it_states(self):
        """The demo's largest blocks are then the largest that the device says it gives."""
        found = self.misbehave("refuses", "above:20000000", BEST, zero_copy=True, coherent=COHERENT, says="refuses",
                               notes=["less"])
        self.assertLessEqual(found["max_block"], 20000000)
        self.assertGreaterEqual(found["max_block"], 8 << 20)


harness.main()
