# SPDX-License-Identifier: Apache-2.0
"""doctor: each finding, by breaking the thing itself. BROKEN holds the libraries of tests/cli/broken."""
import os
import pathlib
import resource
import shutil

import harness

SEVERITIES = {"blocks", "slows", "note"}
POCL = pathlib.Path("/etc/OpenCL/vendors/pocl.icd")
MESA = pathlib.Path("/etc/OpenCL/vendors/mesa.icd")
RUSTICL = pathlib.Path("/etc/OpenCL/vendors/rusticl.icd")
BROKEN = pathlib.Path(os.environ.get("BROKEN", "build/debug/tests/cli/broken"))
HANG_S = "1"
ELF32 = b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x03\x00\x01\x00\x00\x00" + bytes(100)


class DoctorCase(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.vendors = self.folder / "vendors"
        self.vendors.mkdir()

    def environment(self, **changes):
        plain = {k: v for k, v in super().environment().items()
                 if not k.startswith(("OCL_", "OPENCL_", "POCL_", "RUSTICL_", "CL_CONFIG_"))}
        return plain | self.environment_with_drivers() | {"OCL_ICD_VENDORS": str(self.vendors)} | changes

    def icd(self, name, content):
        path = self.vendors / name
        path.write_bytes(content if isinstance(content, bytes) else (str(content) + "\n").encode())
        return path

    def healthy(self):
        shutil.copy(POCL, self.vendors / "zz-pocl.icd")

    def report(self, *arguments, status=None, **env):
        patience = () if "--timeout" in arguments else harness.PATIENT
        done = self.run_command("doctor", "--json", *patience, *arguments, env=env)
        self.assertEqual(done.stderr, b"")
        report = self.one_object(done.stdout.decode())
        self.check_shape(report, done.returncode)
        if status is not None:
            self.assertEqual(done.returncode, status, report)
        return report

    def check_shape(self, report, status):
        self.assertEqual(status, harness.HELD if report["ok"] else harness.FAILED)
        self.assertEqual(report["ok"], all(b["ok"] for b in report["backends"]))
        self.assertEqual(report["ok"], all(f["severity"] != "blocks" for f in report["findings"]))
        for backend in report["backends"]:
            self.assertEqual(backend["ok"], not backend["lacks"])
            self.assertEqual(backend["ok"], not backend["remedy"])
        for finding in report["findings"]:
            self.assertEqual(set(finding), {"about", "severity", "lacks", "evidence", "remedy"})
            self.assertIn(finding["severity"], SEVERITIES)
            for text in finding.values():
                self.assertTrue(text, finding)

    def find(self, report, words, severity=None, evidence=(), remedy=()):
        found = [f for f in report["findings"] if words in f["lacks"]]
        self.assertTrue(found, f"nothing says {words!r}: {report['findings']}")
        finding = found[0]
        if severity:
            self.assertEqual(finding["severity"], severity, finding)
        for part, wanted in (("evidence", evidence), ("remedy", remedy)):
            for text in [wanted] if isinstance(wanted, str) else wanted:
                self.assertIn(text, finding[part])
        return finding


class WholeTest(DoctorCase):
    def test_healthy(self):
        self.healthy()
        report = self.report(status=harness.HELD)
        self.assertEqual([b["name"] for b in report["backends"]], ["cuda", "opencl", "level_zero", "host"])
        self.assertEqual([d["id"] for d in report["devices"]], ["opencl:0", "host"])
        for device in report["devices"]:
            self.assertEqual(set(device), {"id", "name", "driver", "shared_via", "proof", "coherent", "import_zero_copy",
                                           "sharing_detail", "sharing_notes"})

    def test_probing(self):
        self.healthy()
        self.assertEqual(self.report("--no-probe")["devices"][0]["proof"], "none")

    def test_text(self):
        self.healthy()
        self.icd("a.icd", "/nonexistent/lib\x1b[31m.so")
        done = self.run_command("doctor", *harness.PATIENT)
        text = done.stdout.decode()
        self.assertRegex(text, r"(?m)^host +ok$")
        self.assertRegex(text, r"(?m)^opencl +ok$")
        self.assertRegex(text, r"(?m)^opencl +note +.*which is not there$")
        self.assertRegex(text, r"(?m)^ +evidence +dlopen")
        self.assertRegex(text, r"(?m)^ +remedy +reinstall")
        self.assertRegex(text, r"(?m)^opencl:0 +\w+ +")
        self.assertNotIn("\x1b", text)
        os.remove(self.vendors / "zz-pocl.icd")
        text = self.run_command("doctor").stdout.decode()
        self.assertNotRegex(text, r"(?m)^opencl +ok$")
        self.assertRegex(text, r"(?m)^opencl +blocks ")


class VendorsTest(DoctorCase):
    def test_empty_folder(self):
        report = self.report(status=harness.FAILED)
        self.find(report, f"OCL_ICD_VENDORS={self.vendors} holds no driver", "blocks", evidence=str(self.vendors),
                  remedy="unset OCL_ICD_VENDORS")

    def test_folder_absent(self):
        for path in ("/nonexistent", "/nonexistent/a.icd", "/nonexistent/a.so"):
            report = self.report(status=harness.FAILED, OCL_ICD_VENDORS=path)
            self.find(report, f"OCL_ICD_VENDORS={path} holds no driver", "blocks", remedy="unset OCL_ICD_VENDORS")

    def test_one_file_and_one_library(self):
        self.assertEqual(self.report(OCL_ICD_VENDORS=str(POCL))["backends"][1]["ok"], True)
        self.assertEqual(self.report(OCL_ICD_VENDORS="pocl.icd")["backends"][1]["ok"], True)
        library = POCL.read_text().strip()
        self.assertEqual(self.report(OCL_ICD_VENDORS=library)["backends"][1]["ok"], True)
        report = self.report(OCL_ICD_VENDORS=str(BROKEN / "needs_what_is_absent.so"), status=harness.FAILED)
        self.find(report, "needs the library libabsent.so, which is not there", "blocks")

    def test_other_variables(self):
        self.healthy()
        report = self.report(OCL_ICD_FILENAMES="/nonexistent.so", status=harness.HELD)
        self.find(report, "OCL_ICD_FILENAMES is set and this OpenCL loader does not read it", "note", remedy="OCL_ICD_VENDORS")
        report = self.report(OPENCL_LAYERS="/nonexistent/layer.so", status=harness.HELD)
        self.find(report, "layer /nonexistent/layer.so cannot be loaded", "note", remedy="unset OPENCL_LAYERS")
        report = self.report(OPENCL_LAYERS=f"/nonexistent/layer.so:{BROKEN}/aborts_at_load.so", status=harness.FAILED)
        self.find(report, "aborts_at_load.so takes down every program", "blocks", remedy="unset OPENCL_LAYERS")


class FilesTest(DoctorCase):
    def bad(self, content, words, evidence=(), remedy=()):
        """Alone it blocks; beside a driver that works it is worth a note."""
        path = self.icd("a.icd", content)
        self.find(self.report(status=harness.FAILED), words, "blocks", evidence, remedy)
        self.healthy()
        self.find(self.report(status=harness.HELD), words, "note", evidence, remedy)
        os.remove(self.vendors / "zz-pocl.icd")
        return path

    def test_library_absent(self):
        self.bad("/nonexistent/libdriver.so", "names the library /nonexistent/libdriver.so, which is not there",
                 evidence="No such file", remedy=["sudo rm ", "a.icd"])
        self.bad("libnosuchdriver.so.1", "names the library libnosuchdriver.so.1, which is not there")

    def test_dependency_absent(self):
        self.bad(BROKEN / "needs_what_is_absent.so", "needs the library libabsent.so, which is not there",
                 evidence="libabsent.so: cannot open", remedy=["install what provides it", "libabsent.so"])

    def test_damaged_library(self):
        for name, content, words in (("text.so", b"hello world\n" * 20, "invalid ELF header"),
                                     ("empty.so", b"", "file too short"), ("other.so", ELF32, "wrong ELF class")):
            with self.subTest(name):
                library = self.file(name, content)
                self.bad(library, f"the driver {library} of ", evidence=words, remedy="reinstall its package")

    def test_cut_library(self):
        """Its segments reach beyond the end of the file: the dynamic loader itself crashes."""
        library = self.file("cut.so", (BROKEN / "hangs_when_asked.so").read_bytes()[:600])
        self.icd("a.icd", library)
        self.find(self.report(status=harness.FAILED), "cut.so takes down every program", "blocks",
                  evidence="signal 7", remedy="a.icd")

    def test_not_a_driver(self):
        self.bad("libz.so.1", "libz.so.1 of ", evidence="it has no clGetExtensionFunctionAddress")
        self.find(self.report(), "is no OpenCL driver")

    def test_odd_files(self):
        library = POCL.read_text().strip()
        self.bad(f"{library}\r\n".encode(), "ends its line as Windows does", evidence=library,
                 remedy=["sed -i", "a.icd"])
        self.bad(f"  {library}\n".encode(), "holds more than a library's name", remedy=f"echo {library}")
        self.bad(f"\ufeff{library}\n".encode(), "holds more than a library's name", remedy=f"echo {library}")
        self.bad(b"", "names no library: it is empty", remedy="rm ")
        self.bad(b"\n", "names no library", remedy="rm ")
        self.bad(f"\n{library}\n".encode(), "names no library", remedy="rm ")
        self.bad("./libdriver.so", "depends on the folder that a program is started in", remedy="whole path")
        self.bad("lib\x00driver.so", "names the library lib, which is not there")

    def test_unreadable(self):
        (self.vendors / "a.icd").mkdir()
        self.find(self.report(status=harness.FAILED), "a.icd cannot be read", "blocks", evidence="Is a directory")

    def test_what_loaders_accept(self):
        self.icd("a.icd", POCL.read_text().rstrip())
        self.report(status=harness.HELD)
        self.icd("a.icd", POCL.read_bytes().rstrip() + b"\nsecond line\n")
        self.report(status=harness.HELD)


class DriversTest(DoctorCase):
    def test_no_device(self):
        shutil.copy(MESA, self.vendors)
        self.find(self.report(status=harness.FAILED), "libMesaOpenCL.so.1 loads and gives no device", "blocks",
                  evidence="0 devices")

    def test_rusticl(self):
        shutil.copy(RUSTICL, self.vendors)
        self.find(self.report(status=harness.FAILED), "Rusticl is installed and drives nothing", "blocks",
                  evidence="RUSTICL_ENABLE is not set", remedy="export RUSTICL_ENABLE=iris")
        report = self.report(RUSTICL_ENABLE="llvmpipe", status=harness.HELD)
        self.find(report, "RUSTICL_ENABLE is set", "note")

    def deadly(self, name, words, evidence, *arguments):
        """It is found and named, alone and beside one that works, and the doctor outlives it."""
        path = self.icd("a.icd", BROKEN / f"{name}.so")
        for healthy in (False, True):
            if healthy:
                self.healthy()
            report = self.report(*arguments, status=harness.FAILED)
            self.find(report, words, "blocks", evidence=evidence, remedy=str(path))
            self.assertFalse(report["backends"][1]["ok"])
            self.assertTrue(report["backends"][2]["ok"])

    def test_aborts_at_load(self):
        self.deadly("aborts_at_load", "aborts_at_load.so takes down every program",
                    ["signal 6", "while it was loaded", "last words: the device's firmware is of another version"])

    def test_exits_at_load(self):
        self.deadly("exits_at_load", "exits_at_load.so takes down every program", ["ended the process with exit status", "while it was loaded"])

    def test_crashes_when_asked(self):
        self.deadly("crashes_when_asked", "crashes_when_asked.so takes down every program",
                    ["signal 11", "in clIcdGetPlatformIDsKHR"])

    def test_hangs(self):
        for name, stage in (("hangs_at_load", "while it was loaded"), ("hangs_when_asked", "in clIcdGetPlatformIDsKHR")):
            with self.subTest(name):
                self.icd("a.icd", BROKEN / f"{name}.so")
                report = self.report("--timeout", HANG_S, status=harness.FAILED)
                self.find(report, f"{name}.so hangs every program", "blocks", evidence=[f"within {HANG_S} s", stage])

    def test_loader_is_damaged(self):
        for content, words in ((b"no library\n" * 50, "invalid ELF header"), (b"", "file too short")):
            self.file("libOpenCL.so.1", content)
            report = self.report(LD_LIBRARY_PATH=str(self.folder), status=harness.FAILED)
            self.find(report, "the OpenCL loader is there but cannot be loaded", "blocks", evidence=words,
                      remedy="unset LD_LIBRARY_PATH")

    def test_loader_crashes(self):
        shutil.copy(BROKEN / "aborts_at_load.so", self.folder / "libOpenCL.so.1")
        report = self.report(LD_LIBRARY_PATH=str(self.folder), status=harness.FAILED)
        self.find(report, "loading the OpenCL loader (libOpenCL.so.1) takes the program down", "blocks", evidence="signal 6")


class LevelZeroTest(DoctorCase):
    """Intel's driver without hardware, or no Level Zero at all."""
    CHIP = {"NEOReadDebugKeys": "1", "SetCommandStreamReceiver": "1", "AUBDumpCaptureFileName": "/dev/null",
            "ProductFamilyOverride": "tgllp", "DisableDeepBind": "1"}

    def test_works(self):
        self.healthy()
        report = self.report(status=harness.FAILED, **self.CHIP)
        self.assertEqual([b["name"] for b in report["backends"]], ["cuda", "opencl", "level_zero", "host"])
        self.find(report, "Intel's driver pretends a GPU that is not there", "blocks", remedy="unset NEOReadDebugKeys",
                  evidence="SetCommandStreamReceiver=1")
        device = next(d for d in report["devices"] if d["id"] == "level_zero:0")
        self.assertEqual((device["shared_via"], device["proof"]), ("usm", "assumed"))
        self.assertIn("runs no kernels", device["sharing_detail"])
        self.assertEqual(device["sharing_notes"], ["no_kernels"])

    def test_absent(self):
        self.healthy()
        report = self.report(status=harness.HELD)
        self.assertEqual([b["name"] for b in report["backends"] if b["ok"]], ["cuda", "opencl", "level_zero", "host"])
        self.assertNotIn("level_zero", [f["about"] for f in report["findings"]])  # no Intel graphics are here to miss it

    def test_loader_is_damaged(self):
        self.healthy()
        self.file("libze_loader.so.1", b"no library\n" * 50)
        report = self.report(LD_LIBRARY_PATH=str(self.folder), status=harness.FAILED)
        finding = self.find(report, "the Level Zero loader libze_loader.so.1 is there but does not load", "blocks",
                            evidence="invalid ELF header", remedy="libze1")
        self.assertEqual(finding["about"], "level_zero")
        self.assertEqual([b["ok"] for b in report["backends"]], [True, True, False, True])


class SettingsTest(DoctorCase):
    def test_configuration_is_wrong(self):
        self.healthy()
        report = self.report(OPENNUMA_CONF="no_such_key:1", status=harness.FAILED)
        self.find(report, "OPENNUMA_CONF is wrong", "blocks", evidence="no_such_key", remedy="unset OPENNUMA_CONF")
        self.assertEqual([b["ok"] for b in report["backends"]], [False, False, False, False])
        self.assertEqual(report["devices"][0]["id"], "opencl:0")

    def test_configuration_leaves_drivers_out(self):
        report = self.report(OPENNUMA_CONF="backends:host", status=harness.FAILED)
        self.find(report, "OPENNUMA_CONF=backends:host: no driver is loaded", "blocks", remedy="take backends:host out")

    def test_configuration_slows(self):
        self.healthy()
        for conf in ("check:hazards", "track:full"):
            self.find(self.report(OPENNUMA_CONF=conf, status=harness.HELD), "OPENNUMA_CONF is set", "slows", evidence=conf)
        self.find(self.report(OPENNUMA_CONF="log:none"), "OPENNUMA_CONF is set", "note")

    def test_variables(self):
        self.healthy()
        values = {"POCL_DEBUG": ("0", "slows"), "POCL_DEVICES": ("pthread", "note"), "LIBGL_ALWAYS_SOFTWARE": ("1", "slows"),
                  "POCL_MAX_PTHREAD_COUNT": ("1", "slows"), "ZE_ENABLE_VALIDATION_LAYER": ("1", "slows"),
                  "CUDA_VISIBLE_DEVICES": ("1", "note"), "OCL_ICD_PLATFORM_SORT": ("none", "note"),
                  "CL_CONFIG_CPU_TBB_NUM_WORKERS": ("1", "note"), "OCL_ICD_VENDORS": (str(self.vendors), "note")}
        report = self.report(status=harness.HELD, **{name: value for name, (value, _) in values.items()})
        for name, (value, severity) in values.items():
            self.find(report, f"{name} is set", severity, evidence=f"{name}={value}", remedy=f"unset {name}")
        self.assertNotIn("RUSTICL_ENABLE", str(report))

    def test_preloaded(self):
        self.healthy()
        if self.sanitizer():
            return  # its run-time library must come first of all
        self.find(self.report(LD_PRELOAD="libz.so.1", status=harness.HELD), "LD_PRELOAD is set", "note", evidence="libz.so.1")

    def sanitizer(self):
        return "this command was built with" in str(self.report()["findings"])

    def test_intel_debug_keys(self):
        self.healthy()
        report = self.report(NEOReadDebugKeys="1", status=harness.HELD)
        self.find(report, "NEOReadDebugKeys is set", "slows")
        report = self.report(NEOReadDebugKeys="1", SetCommandStreamReceiver="1", status=harness.FAILED)
        self.find(report, "pretends a GPU that is not there", "blocks", evidence="SetCommandStreamReceiver=1",
                  remedy="unset NEOReadDebugKeys")
        self.assertNotIn("NEO", str(self.report(NEOReadDebugKeys="0", SetCommandStreamReceiver="1")))

    def limited(self, kind, bytes_):
        done = self.run_command("doctor", "--json", preexec_fn=lambda: resource.setrlimit(kind, (bytes_, bytes_)))
        return self.one_object(done.stdout.decode())

    def test_limits(self):
        self.healthy()
        self.find(self.limited(resource.RLIMIT_MEMLOCK, 64 << 10), "memory that a process may lock is limited", "note",
                  evidence="64.0 KiB")
        if self.sanitizer():
            return  # it reserves terabytes
        self.find(self.limited(resource.RLIMIT_AS, 8 << 30), "the address space of each process is limited", "slows",
                  evidence="8.00 GiB", remedy="ulimit -v unlimited")


harness.main()
