# SPDX-License-Identifier: Apache-2.0
"""One memory for the CPU and the GPU.

    import numpy, opennuma
    x = opennuma.zeros((1000, 1000), "float32")     # on the best device of this machine
    with x.on_host("w"):
        numpy.asarray(x)[:] = 1                     # the very bytes that the device uses

The package aliases memory, it does not compute: use NumPy, PyTorch (opennuma.torch), pyopencl (opennuma.opencl) or
whatever knows DLPack or the buffer protocol. Bytes live as long as any alias of them, in whichever package.

Errors: MemoryError when there is no more, or a pool's limit is reached; ValueError for values that are wrong;
BufferError when an access is in the way, or an alias cannot be given; NotImplementedError for what a device cannot do;
TimeoutError; LookupError. Each text comes from the C library and names the remedy.
"""
from ._arrays import empty, from_file, pool_for, zeros
from ._devices import device, devices
from ._native import Array, Block, Device, HostAccess, View, find_block, live_blocks, version
from ._places import command, include_folder, library
from ._pool import Pool
from ._queue import Queue

__version__ = version()

__all__ = [
    "Array", "Block", "Device", "HostAccess", "Pool", "Queue", "View", "command", "device", "devices", "empty",
    "find_block", "from_file", "include_folder", "library", "live_blocks", "pool_for", "version", "zeros",
]
