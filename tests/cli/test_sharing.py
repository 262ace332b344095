# SPDX-License-Identifier: Apache-2.0
"""What info and the doctor say of sharing, on a real driver, honest and made to misbehave by a layer: that it is so.

usage: test_sharing.py COMMAND; LAYERS is the folder of tests/layers, the driver comes with the environment
"""
import os
import pathlib

import harness

LAYERS = pathlib.Path(os.environ["LAYERS"])
STACK = os.environ["ONUMA_TEST_STACK"]
BEST = {"pocl": "svm_fine", "intel": "usm", "rusticl": "import"}[STACK]


class SharingTest(harness.CommandTest):
    def environment(self, **changes):
        caches = os.environ["XDG_CACHE_HOME"]  # what Mesa compiled stays where it was
        return dict(os.environ) | {"XDG_CACHE_HOME": str(self.folder), "MESA_SHADER_CACHE_DIR": caches,
                                   "OPENNUMA_CONF": "opencl.patience:300s"} | changes  # busy is not hung

    def layer(self, name, settings, **changes):
        return {"OPENCL_LAYERS": str(LAYERS / f"layer_{name}.so"), f"LAYER_{name.upper()}": settings} | changes

    def told(self, environment=None, status=harness.HELD):
        """The doctor's findings on sharing, with the device as the doctor has it, and the line of info's text."""
        done = self.run_command("doctor", "--json", *harness.PATIENT, env=environment or {})
        self.assertEqual(done.returncode, status, done.stdout.decode() + done.stderr.decode())
        report = self.one_object(done.stdout.decode())
        findings = [(f["severity"], f["lacks"]) for f in report["findings"] if f["about"] == "sharing"]
        device = next(d for d in report["devices"] if d["id"] == "opencl:0")
        for finding in report["findings"]:
            if finding["about"] == "sharing":
                self.assertIn(device["sharing_detail"] or device["proof"], finding["evidence"])
        text = self.run_command("info", env=environment or {}).stdout.decode()
        return findings, device, [line for line in text.splitlines() if line.startswith("opencl:0 ")][1]

    def assert_told(self, told, wanted):
        """Exactly these findings, each by its severity and the words of it."""
        self.assertEqual(len(told), len(wanted), told)
        for (severity, lacks), (wanted_severity, words) in zip(told, wanted):
            self.assertEqual(severity, wanted_severity, lacks)
            self.assertIn(words, lacks)

    def test_honest(self):
        findings, device, line = self.told()
        self.assert_told(findings, [])
        self.assertEqual((device["shared_via"], device["proof"], device["import_zero_copy"]), (BEST, "measured", True))
        self.assertRegex(line, r" proved by a kernel (in an earlier run|just now) .* zero-copy ")

    def test_imports_that_copy(self):
        findings, device, line = self.told(self.layer("copies", "svm:1"))
        self.assert_told(findings, [("slows", "perhaps copied at each map")])
        self.assertEqual((device["shared_via"], device["import_zero_copy"]), (BEST, False))
        self.assertIn(" perhaps copied ", line)

    def test_a_way_that_was_turned_down(self):
        findings, device, line = self.told(self.layer("delays", "fine:1,usm:1,granule:64"))
        mapped = ("slows", "with map and unmap; what should be faster was tried")
        self.assert_told(findings, ([] if STACK == "rusticl" else [mapped]) + [("slows", "perhaps copied at each map")])
        self.assertFalse(device["coherent"])
        self.assertIn(" no, mapped ", line)

    def test_imports_that_fail(self):
        if BEST == "import":
            self.check_none_works(self.layer("corrupts", "when:map,at:odd"))
            return
        findings, device, line = self.told(self.layer("corrupts", "when:map,at:odd"))
        self.assert_told(findings, [("slows", "cannot be imported")])
        self.assertEqual((device["shared_via"], device["import_zero_copy"]), (BEST, False))
        self.assertIn(" refused ", line)

    def check_none_works(self, environment):
        findings, device, line = self.told(environment, status=harness.FAILED)
        self.assert_told(findings, [("blocks", "no way to share memory")])
        self.assertEqual((device["shared_via"], device["proof"]), ("", "failed"))
        self.assertIn(" fails, there is no shared memory ", line)

    def test_none_works(self):
        self.check_none_works(self.layer("corrupts", "when:kernel_out,at:first"))

    def check_idle(self, settings, words, note):
        environment = self.layer("idles", settings, OPENNUMA_CONF="opencl.patience:1s")
        findings, device, line = self.told(environment, status=harness.FAILED)
        self.assert_told(findings, [("blocks", words)])
        self.assertEqual((device["shared_via"], device["proof"]), ("", "failed"))
        self.assertIn(note, device["sharing_notes"])
        self.assertIn(" fails, there is no shared memory ", line)

    def test_kernels_that_do_not_run(self):
        self.check_idle("kernel:skip", "runs no kernels", "no_kernels")

    def test_kernels_that_never_end(self):
        self.check_idle("kernel:hang", "does not end the work", "hangs")

    def test_maps_that_never_end(self):
        self.check_idle("map:hang", "does not end the work", "hangs")

    def test_no_compiler(self):
        findings, device, line = self.told(self.layer("idles", "compiler:fails"))
        self.assert_told(findings, [("slows", "compiles no kernels")])
        self.assertEqual((device["proof"], device["coherent"]), ("unprovable", False))
        self.assertIn(" cannot be proved here ", line)

    def test_sizes_that_are_refused(self):
        findings, device, _ = self.told(self.layer("refuses", "above:20000000"))
        self.assert_told(findings, [("note", "refuses sizes that it states")])
        self.assertEqual((device["shared_via"], device["import_zero_copy"]), (BEST, True))

    def test_not_looked(self):
        findings, device, line = self.told(self.layer("copies", "svm:1", OPENNUMA_CONF="opencl.probe:off"))
        self.assert_told(findings, [("note", "its driver's word")])
        self.assertEqual((device["shared_via"], device["proof"], device["import_zero_copy"]), (BEST, "assumed", False))
        self.assertRegex(line, r" the driver's word alone .* unknown ")

    if STACK != "intel":  # which offers them all
        def test_a_way_that_is_not_offered(self):
            findings, device, line = self.told({"OPENNUMA_CONF": "opencl.share:usm"}, status=harness.FAILED)
            self.assert_told(findings, [("blocks", "opencl.share in OPENNUMA_CONF names")])
            self.assertEqual((device["shared_via"], device["proof"]), ("", "failed"))
            self.assertIn(" not by the way that is set", line)


harness.main()
