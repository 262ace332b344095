# SPDX-License-Identifier: Apache-2.0
"""Weights from a file: its pages are mapped, not read, and shared by all processes and the device."""
import tempfile

import numpy
import opennuma

with tempfile.NamedTemporaryFile() as file:
    numpy.linspace(0, 1, 1_000_000, dtype="float32").tofile(file.name)
    weights = opennuma.from_file(file.name, "float32", (1000, 1000))
    print(f"{weights}: the last is {numpy.asarray(weights)[-1, -1]}")
    assert numpy.asarray(weights)[-1, -1] == 1 and weights.block.read_only
