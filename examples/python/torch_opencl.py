# SPDX-License-Identifier: Apache-2.0
"""One PyTorch tensor, CPU and device in turns: each sees what the other wrote, and nothing is copied."""
import opennuma.opencl
import opennuma.torch
import pyopencl
import torch

device = next(device for device in opennuma.devices() if device.backend == "opencl")
tensor = opennuma.torch.zeros(1_000_000, device=device).cpu_alias()
block = opennuma.torch.block_of(tensor)

commands = pyopencl.CommandQueue(opennuma.opencl.context(device))
queue = opennuma.opencl.queue(commands, device)
program = pyopencl.Program(commands.context, "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }").build()
twice = pyopencl.Kernel(program, "twice")
argument = opennuma.opencl.argument(tensor)

print(f"{device.name} shares through {device.shared_via}; the tensor's bytes are at {tensor.data_ptr():#x}")
for _ in range(3):
    with opennuma.torch.on_host(tensor):            # the CPU's turn
        tensor.add_(1)
        print(f"  PyTorch added 1: {tensor[0]:.0f}", end="")
    with queue.using((block, "rw")):                # the device's turn
        twice(commands, tensor.shape, None, argument)
    with opennuma.torch.on_host(tensor, "r"):       # waits for the kernel
        print(f", the kernel doubled: {tensor[0]:.0f}")
        assert torch.equal(tensor, tensor[0].expand_as(tensor))
assert tensor[0] == 14 and tensor.data_ptr() == block.pointer
