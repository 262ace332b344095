# SPDX-License-Identifier: Apache-2.0
"""doctor on machines of other kinds: the whole command in a mount namespace, where parts of the system are other ones.

What is put in place is what a kernel or a distribution would put there: files of /sys and /proc, device nodes
(plain files, which a user may open or not), folders of libraries without a loader. Nothing inside the command knows of it.
Needs the right to make a mount namespace: as root, or where users may (sysctl kernel.unprivileged_userns_clone).
"""
import os
import pathlib
import shutil
import subprocess

import harness

POCL = pathlib.Path("/etc/OpenCL/vendors/pocl.icd")


def namespace():
    """The command that makes a mount namespace here."""
    for command in (["unshare", "-m"], ["unshare", "-rm"]):
        if subprocess.run([*command, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False).returncode == 0:
            return command
    raise SystemExit("test_doctor_machine: no mount namespace can be made here; run as root, or allow users to make them "
                     "(docker run --cap-add SYS_ADMIN --security-opt apparmor=unconfined)")


NAMESPACE = namespace()


class MachineCase(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.mounts = []  # (what, over what)
        self.before = "true"  # what the shell does just before it becomes the command
        vendors = self.folder / "vendors"
        vendors.mkdir()
        shutil.copy(POCL, vendors)
        os.chmod(self.folder, 0o755)

    def put(self, over, content):
        """The file `over`, which exists, holds this."""
        self.mounts.append((self.file(f"put{len(self.mounts)}", content), over))

    def tree(self, over, files):
        """The folder `over` holds these alone: name -> text, or -> a link's target if the name ends in @, or None, a folder."""
        root = self.folder / f"tree{len(self.mounts)}"
        root.mkdir()
        for name, content in files.items():
            path = root / name.rstrip("@")
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.mkdir(exist_ok=True)
            elif name.endswith("@"):
                path.symlink_to(content)
            else:
                path.write_text(content)
        self.mounts.append((root, over))
        return root

    def report(self, *arguments, **env):
        lines = [f"mount --bind '{what}' '{over}'" for what, over in self.mounts]
        script = "set -e\n" + "\n".join(lines) + f"\n{self.before}\n" + 'exec "$0" doctor --json "$@"\n'
        environment = self.environment(**{"OPENNUMA_CONF": "", "OCL_ICD_VENDORS": str(self.folder / "vendors"),
                                          "ASAN_OPTIONS": "detect_leaks=0",
                                          "TSAN_OPTIONS": "ignore_noninstrumented_modules=1"} | env)
        environment = {k: v for k, v in environment.items() if v is not None}
        done = subprocess.run([*NAMESPACE, "sh", "-c", script, str(pathlib.Path(harness.binary).resolve()),
                               *harness.PATIENT, *arguments],
                              env=environment, capture_output=True, timeout=harness.TIMEOUT_S, check=False)
        self.assertIn(done.returncode, (harness.HELD, harness.FAILED), done.stderr.decode())
        report = self.one_object(done.stdout.decode())
        self.assertEqual(done.returncode, harness.HELD if report["ok"] else harness.FAILED)
        return report

    def find(self, report, words, severity, evidence="", remedy=""):
        found = [f for f in report["findings"] if words in f["lacks"]]
        self.assertTrue(found, f"nothing says {words!r}: {report['findings']}")
        self.assertEqual(found[0]["severity"], severity, found[0])
        self.assertIn(evidence, found[0]["evidence"])
        self.assertIn(remedy, found[0]["remedy"])

    def chip(self, vendor, device, driver="", node="renderD128", class_="0x030000"):
        """A machine with one such chip on its bus."""
        slot = "0000:00:02.0"
        files = {f"{slot}/class": class_ + "\n", f"{slot}/vendor": vendor + "\n", f"{slot}/device": device + "\n"}
        if driver:
            files[f"{slot}/driver@"] = f"../../../bus/pci/drivers/{driver}"
        if node:
            files[f"{slot}/drm/{node}"] = None
        self.tree("/sys/bus/pci/devices", files)

    def nodes(self, mode=0o666, names=("renderD128",)):
        """/dev with these in dri."""
        dev = self.folder / "dev"
        (dev / "dri").mkdir(parents=True)
        for name in ("null", "zero", "urandom", "random", "shm", "tty", "full", "ptmx", "pts"):
            (dev / name).symlink_to(f"{self.folder}/realdev/{name}")
        (self.folder / "realdev").mkdir()
        for name in names:
            (dev / "dri" / name).write_text("")
            os.chmod(dev / "dri" / name, mode)
        self.before = f"mount --rbind /dev '{self.folder}/realdev'\nmount --bind '{dev}' /dev"


class LoaderTest(MachineCase):
    """The folder of libraries is one of links to the real ones, all but the loader."""
    def farm(self, loader=None):
        real = pathlib.Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
        farm, original = self.folder / "farm", self.folder / "original"
        farm.mkdir()
        original.mkdir()
        for entry in real.iterdir():
            if not entry.name.startswith("libOpenCL.so"):
                (farm / entry.name).symlink_to(original / entry.name)
        if loader is not None:
            (farm / "libOpenCL.so.1").write_bytes(loader)
        self.mounts = [(real, original), (farm, real)]
        self.assertTrue((real / "libOpenCL.so.1").exists(), "the loader that is to be missed is not there")

    def test_absent(self):
        self.farm()
        report = self.report()
        self.find(report, "no OpenCL loader (libOpenCL.so.1) is installed", "blocks", "libOpenCL.so.1: cannot open",
                  "ocl-icd")
        self.assertEqual([b["ok"] for b in report["backends"]], [True, False, True, True])

    def test_damaged(self):
        self.farm(b"not a library " * 40)
        self.find(self.report(), "the OpenCL loader is there but cannot be loaded", "blocks", "invalid ELF header", "ocl-icd")

    def test_of_another_class(self):
        elf32 = b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x03\x00\x01\x00\x00\x00" + bytes(100)
        self.farm(elf32)
        self.find(self.report(), "for another kind of program", "blocks", "wrong ELF class", "ocl-icd")

    def test_no_driver(self):
        self.tree("/etc/OpenCL/vendors", {})
        report = self.report(OCL_ICD_VENDORS=None)
        self.find(report, "the OpenCL loader is installed and no driver with it", "blocks", "/etc/OpenCL/vendors", "pocl")


class GraphicsTest(MachineCase):
    def test_drivers_missing(self):
        for vendor, device, driver, words in (
                ("0x8086", "0x46a6", "i915", "intel-opencl-icd"), ("0x1002", "0x1638", "amdgpu", "RUSTICL_ENABLE=radeonsi"),
                ("0x10de", "0x1c82", "nvidia", "nvidia"), ("0x10de", "0x1c82", "nouveau", "RUSTICL_ENABLE=nouveau"),
                ("0x8086", "0x5916", "i915", "legacy1"), ("0x8086", "0x0166", "i915", "runs OpenCL on the CPU")):
            with self.subTest(device=device, driver=driver):
                self.setUp()
                self.put("/etc/os-release", "ID=debian\n")
                self.chip(vendor, device, driver)
                self.nodes()
                report = self.report()
                self.find(report, f"graphics {vendor[2:]}:{device[2:]} at PCI 0000:00:02.0", "blocks",
                          "/dev/dri/renderD128 can be opened", words)
                self.assertFalse(report["backends"][1]["ok"])
                self.assertEqual(report["backends"][0]["ok"], driver != "nvidia")

    def test_other_chips_are_left_alone(self):
        self.chip("0x1234", "0x1111", class_="0x030000", node="")
        self.assertTrue(self.report()["ok"])

    def test_no_kernel_driver(self):
        self.chip("0x8086", "0x46a6", node="")
        self.find(self.report(), "no kernel driver has taken the Intel graphics 8086:46a6", "blocks", "has no driver")

    def test_refused_on_the_command_line(self):
        for word in ("nomodeset", "i915.modeset=0", "module_blacklist=i915,xe", "modprobe.blacklist=i915"):
            with self.subTest(word):
                self.setUp()
                self.chip("0x8086", "0x46a6", node="")
                self.put("/proc/cmdline", f"root=/dev/sda1 quiet {word}\n")
                self.find(self.report(), "no kernel driver has taken", "blocks", f"started with {word}", "update-grub")

    def test_blacklisted(self):
        for line in ("blacklist amdgpu", "install amdgpu /bin/false"):
            with self.subTest(line):
                self.setUp()
                self.chip("0x1002", "0x1638", node="")
                self.put("/proc/cmdline", "quiet\n")
                os.makedirs("/etc/modprobe.d", exist_ok=True)
                self.tree("/etc/modprobe.d", {"no-graphics.conf": f"# why\n{line}\n"})
                self.find(self.report(), "no kernel driver has taken", "blocks", "/etc/modprobe.d/no-graphics.conf",
                          "sudo modprobe amdgpu")

    def test_set_aside_for_a_virtual_machine(self):
        self.chip("0x8086", "0x56a0", "vfio-pci", node="")
        self.find(self.report(), "has no device node", "blocks", "vfio-pci made no render node", "virtual machine")

    def test_no_node(self):
        self.chip("0x8086", "0x46a6", "i915")
        self.nodes(names=())
        self.find(self.report(), "has no device node", "blocks", "/dev/dri/renderD128 does not exist")

    def test_no_permission(self):
        """Root may open anything, so it gives that power up. (Somebody else might not reach the command at all.)"""
        self.chip("0x8086", "0x46a6", "i915")
        self.nodes(mode=0o000)
        self.before += '\nexec setpriv --bounding-set=-all --inh-caps=-all "$0" doctor --json "$@"'
        self.find(self.report(), "/dev/dri/renderD128 may not be opened by the user", "blocks", "Permission denied", "chmod 660")


class SurroundingsTest(MachineCase):
    def test_containers(self):
        self.put("/proc/1/cgroup", "0::/\n")
        for variable, words in (("lxc", "lxc config device add"), ("podman", "podman run --device /dev/dri")):
            if pathlib.Path("/.dockerenv").exists():
                words = "docker run --device /dev/dri"
            report = self.report(container=variable)
            self.find(report, "this is a container", "note", "/dev/dri does not exist", words)

    def test_container_without_the_chips_node(self):
        self.chip("0x8086", "0x46a6", "i915")
        self.nodes(names=())
        self.find(self.report(container="docker"), "has no device node", "blocks", "this is a container", "--device /dev/dri --group-add")

    def test_windows(self):
        self.put("/proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n")
        self.find(self.report(), "Windows passes no graphics on", "blocks", "/dev/dxg does not exist", "wsl --update")

    def test_memory(self):
        self.put("/proc/sys/vm/overcommit_memory", "2\n")
        self.put("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n")
        self.put("/proc/meminfo", "MemTotal: 16000000 kB\nMemFree: 8000000 kB\nMemAvailable: 8000000 kB\nSwapTotal: 0 kB\n")
        report = self.report(OPENNUMA_CONF="host.large_pages:on")
        self.find(report, "host.large_pages in OPENNUMA_CONF has no effect", "note", "host CPU", "take the setting out")
        host = next(device for device in report["devices"] if device["id"] == "host")
        self.assertEqual(host["sharing_notes"], ["small_pages"])
        self.find(report, "the kernel promises no more memory than it has", "slows", "is 2", "vm.overcommit_memory=0")
        self.find(report, "huge pages are off", "slows", "[never]", "tee /sys/kernel")
        self.find(report, "there is no swap", "note", "SwapTotal")
        self.put("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\nSwapTotal: 1000 kB\n")
        report = str(self.report(OPENNUMA_CONF=""))
        self.assertNotIn("there is no swap", report)
        self.assertNotIn("host.large_pages", report)

    def test_control_group(self):
        self.put("/proc/self/cgroup", "0::/app.slice\n")
        self.tree("/sys/fs/cgroup", {"app.slice/memory.max": "1073741824\n"})
        # /proc/self is another for each process, so the file goes into the shell's own, which becomes the command.
        what, _ = self.mounts.pop(0)
        self.before = f"mount --bind '{what}' /proc/$$/cgroup"
        self.find(self.report(), "a control group gives less memory", "note", "1.00 GiB of", "MemoryMax=")


harness.main()
