# SPDX-License-Identifier: Apache-2.0
"""An array whose bytes the CPU and the device have in common."""
import numpy
import opennuma

x = opennuma.zeros((1000, 1000), "float32") # on the best device of this machine
with x.on_host("w"):                        # the CPU's turn; waits for announced work of the device
    numbers = numpy.asarray(x)              # the very bytes, not a copy
    numbers[:] = 1
print(f"{x.block.device.name} shares through {x.block.device.shared_via}: sum {numbers.sum():.0f}")
assert numbers.ctypes.data == x.pointer and numbers.sum() == 1e6
