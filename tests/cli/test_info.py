# SPDX-License-Identifier: Apache-2.0
"""info."""
import harness

TYPES = {"integrated", "discrete", "cpu", "host"}
PROOFS = {"none", "not_needed", "assumed", "unprovable", "cached", "measured", "failed"}


class InfoTest(harness.CommandTest):
    def check_shape(self, info):
        self.assertRegex(info["version"], r"\A\d+\.\d+\.\d+\Z")
        for backend in info["backends"]:
            self.assertIn(backend["status"], {"ok", "absent", "error"})
            self.assertTrue(backend["name"])
            self.assertIsInstance(backend["detail"], str)
        working = {b["name"] for b in info["backends"] if b["status"] == "ok"}
        for device in info["devices"]:
            self.assertIn(device["backend"], working)
            self.assertTrue(device["id"].startswith(device["backend"]))
            self.assertIn(device["type"], TYPES)
            self.assertTrue(device["name"])
            self.assertIn(device["proof"], PROOFS)
            for name in ("coherent", "import_zero_copy", "simulator"):
                self.assertIsInstance(device[name], bool)
            for name in ("driver", "shared_via", "physical", "sharing_detail"):
                self.assertIsInstance(device[name], str)
            self.assertLessEqual(set(device["kinds"]), {"host", "shared", "device"})
            self.assertTrue(device["kinds"])
            for name in ("memory_total", "memory_free", "alignment", "max_block"):
                self.assertIsInstance(device[name], int)
            self.assertEqual(device["alignment"] & (device["alignment"] - 1), 0)
        self.assertEqual(len({d["id"] for d in info["devices"]}), len(info["devices"]))

    def test_host_alone(self):
        info = self.succeed_json("info")
        self.check_shape(info)
        self.assertEqual([d["id"] for d in info["devices"]], ["host"])
        host = info["devices"][0]
        self.assertEqual(host["type"], "host")
        self.assertIn("shared", host["kinds"])
        self.assertEqual(host["proof"], "not_needed")
        self.assertGreater(host["memory_total"], 1 << 20)
        self.assertLessEqual(host["memory_free"], host["memory_total"])

    def test_whatever_this_machine_has(self):
        done = self.run_command("info", "--json", env=self.environment_with_drivers())
        self.assertEqual(done.returncode, harness.HELD, done.stderr.decode())
        info = self.one_object(done.stdout.decode())
        self.check_shape(info)
        self.assertEqual(info["devices"][-1]["id"], "host")

    @harness.not_on_windows
    def test_level_zero(self):
        """On Intel's driver without hardware, beside its OpenCL: two devices, one chip."""
        for chip, kind in (("tgllp", "integrated"), ("dg1", "discrete")):
            done = self.run_command("info", "--json", env=self.environment_with_drivers(
                NEOReadDebugKeys="1", SetCommandStreamReceiver="1", AUBDumpCaptureFileName="/dev/null",
                ProductFamilyOverride=chip, DisableDeepBind="1", OCL_ICD_VENDORS="/etc/OpenCL/vendors/intel.icd"))
            info = self.one_object(done.stdout.decode())
            self.check_shape(info)
            devices = {d["id"]: d for d in info["devices"]}
            self.assertEqual(list(devices), ["opencl:0", "level_zero:0", "host"])
            self.assertEqual(devices["level_zero:0"]["type"], kind)
            self.assertEqual(devices["level_zero:0"]["physical"], devices["opencl:0"]["physical"])
            self.assertEqual(devices["level_zero:0"]["kinds"], ["host", "shared", "device"])
            backend = next(b for b in info["backends"] if b["name"] == "level_zero")
            self.assertIn("version 1.3, between processes: memory", backend["detail"])

    def test_text_tells_the_same(self):
        text = self.succeed("info")
        info = self.succeed_json("info")
        self.assertIn(info["version"], text)
        for backend in info["backends"]:
            self.assertRegex(text, rf"(?m)^{backend['name']} +{backend['status']}\b")
        for device in info["devices"]:
            self.assertRegex(text, rf"(?m)^{device['id']} +{device['type']} +[0-9.]+ [KMGT]iB")
        self.assertFalse([line for line in text.splitlines() if line != line.rstrip()])

    def test_config(self):
        keys = self.succeed_json("info", "--config")["config"]
        self.assertIn("backends", [key["name"] for key in keys])
        text = self.succeed("info", "--config")
        for key in keys:
            self.assertEqual(set(key), {"name", "type", "default", "help"})
            self.assertRegex(text, rf"(?m)^{key['name']} ")
            self.assertIn(key["help"], text)

    def test_wrong_config(self):
        wrong = {"OPENNUMA_CONF": "no_such_key:1"}
        self.refuse("info", env=wrong, saying="no_such_key")
        self.succeed("info", "--config", env=wrong)


harness.main()
