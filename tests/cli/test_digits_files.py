#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold models/digits/ against the script that made it: recipe, shapes, sizes, images, and what README says."""
import importlib.util
import json
import math
import pathlib
import struct
import sys
import unittest

sys.dont_write_bytecode = True

ROOT = pathlib.Path(sys.argv.pop() if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if ROOT.is_dir() else ROOT.parents[2]
FOLDER = ROOT / "models" / "digits"
SIZES = {"F32": 4, "U8": 1}


def load_script():
    spec = importlib.util.spec_from_file_location("train_digits", ROOT / "scripts" / "train-digits.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(name):
    data = (FOLDER / f"{name}.safetensors").read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    return header.pop("__metadata__"), header, data[8 + length:]


class DigitsFiles(unittest.TestCase):
    script = load_script()

    def test_recipe_is_the_scripts(self):
        for name in (*self.script.NETWORKS, "test"):
            self.assertEqual(json.loads(read(name)[0]["recipe"]), self.script.RECIPE, name)

    def test_weights_have_the_scripts_shapes(self):
        for network in self.script.NETWORKS:
            _, header, data = read(network)
            self.assertEqual({k: tuple(v["shape"]) for k, v in header.items()}, self.script.tensor_shapes(network))
            end = 0
            for name, entry in header.items():
                begin, after = entry["data_offsets"]
                self.assertEqual(begin, end, name)
                self.assertEqual(after - begin, math.prod(entry["shape"]) * SIZES[entry["dtype"]], name)
                end = after
                numbers = struct.unpack(f"<{(after - begin) // 4}f", data[begin:after])
                self.assertTrue(all(math.isfinite(x) for x in numbers), name)
            self.assertEqual(end, len(data))

    def test_images_and_labels(self):
        _, header, data = read("test")
        count = self.script.RECIPE["test_images"]
        self.assertEqual(header["images"]["shape"], [count, 8, 8])
        self.assertEqual(header["labels"]["shape"], [count])
        begin, end = header["images"]["data_offsets"]
        self.assertLessEqual(max(data[begin:end]), 16)
        begin, end = header["labels"]["data_offsets"]
        self.assertEqual(set(data[begin:end]), set(range(10)))

    def test_readme_states_the_recorded_accuracy(self):
        readme = (FOLDER / "README.md").read_text()
        for network in self.script.NETWORKS:
            metadata = read(network)[0]
            line = next(x for x in readme.splitlines() if f"| {network}.safetensors" in x)
            self.assertIn(f"| {metadata['correct']} of {metadata['images']} |", line)
            self.assertGreater(int(metadata["correct"]), 0.97 * int(metadata["images"]))
            self.assertGreater(float(metadata["margin"]), 0.01)
        self.assertIn(str(self.script.RECIPE["seed"]), readme)

    def test_together_below_a_mebibyte(self):
        self.assertLess(sum(f.stat().st_size for f in FOLDER.glob("*.safetensors")), 1 << 20)


if __name__ == "__main__":
    unittest.main()
