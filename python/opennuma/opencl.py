# SPDX-License-Identifier: Apache-2.0
"""Kernels of pyopencl over shared memory.

    device = opennuma.device("opencl:0")
    commands = pyopencl.CommandQueue(opennuma.opencl.context(device))
    queue = opennuma.opencl.queue(commands, device)

    with queue.using((x, "rw")):                                       # x: an Array
        kernel(commands, (n,), None, opennuma.opencl.argument(x))
    with x.on_host("r"):                                               # waits for the kernel
        print(numpy.asarray(x))

The same goes for a PyTorch tensor or NumPy array over a block: opennuma.opencl.argument finds the block by its address.
"""
from __future__ import annotations

from typing import Any, cast

import pyopencl

from . import _native
from ._arrays import pool_for
from ._devices import device as find_device
from ._native import Array, Block, Device, View, find_block
from ._queue import Queue


def context(device: str | Device | None = None) -> pyopencl.Context:
    """The context that the device's memory belongs to. ValueError for a device that is not OpenCL's."""
    found = find_device(device)
    if found.backend != "opencl":
        raise ValueError(f"{found.id} is no OpenCL device")
    if not found.native_context:
        pool_for(found, found.kinds[-1]) # a device is opened by its first pool
    return pyopencl.Context.from_int_ptr(found.native_context)


def adopt(context: pyopencl.Context) -> Device:
    """The Device of a context that the program made itself. It must have one device. ValueError, NotImplementedError."""
    return _native.adopt("opencl", context.int_ptr)


def queue(commands: pyopencl.CommandQueue, device: str | Device | None = None) -> Queue:
    """Let the library know of a command queue, which must be of the device's context. ValueError if it is not."""
    return Queue(device, "opencl", commands.int_ptr, commands)


def block_of(memory: Any) -> tuple[Block, int, int]:
    """The Block that holds memory's bytes, the first one's place in it, and their number.

    memory: an Array, a Block, or what somebody made over one: a PyTorch tensor, a NumPy array. ValueError where its
    elements do not lie close together, LookupError where they lie in no block of this package.
    """
    if isinstance(memory, Block):
        return memory, 0, memory.nbytes
    if isinstance(memory, Array):
        return memory.block, memory.pointer - memory.block.pointer, memory.nbytes
    if hasattr(memory, "data_ptr"): # a tensor
        contiguous, pointer, size = memory.is_contiguous(), memory.data_ptr(), memory.numel() * memory.element_size()
    else:
        view = memoryview(memory)
        contiguous, size = view.c_contiguous, view.nbytes
        pointer = memory.__array_interface__["data"][0]
    if not contiguous:
        raise ValueError("the elements do not lie close together in C order; make it contiguous first")
    block = find_block(pointer)
    return block, pointer - block.pointer, size


def _view(memory: Any) -> tuple[Block, View, int]:
    block, offset, size = block_of(memory)
    return block, block.view("opencl", offset), size


def buffer(memory: Any) -> pyopencl.Buffer:
    """A pyopencl.Buffer over a block's bytes, which it keeps alive; nothing is copied. memory: as block_of.

    NotImplementedError on devices that share through pointers (take svm there), or for memory that is not the start of
    its block: buffers begin where their block does.
    """
    block, view, _ = _view(memory)
    if view.via != "handle":
        raise NotImplementedError(f"{block.device.id} shares through {view.via}, not buffers: take opennuma.opencl.svm, or "
                                  "argument; or run with OPENNUMA_CONF=opencl.share:import")
    if view.offset:
        raise NotImplementedError(f"the memory begins {view.offset} bytes into its block; give a kernel the block, and "
                                  "the offset as a number")
    made: Any = pyopencl.Buffer.from_int_ptr(view.handle, retain=True)
    made.opennuma_block = block # keeps the bytes alive as long as the buffer
    return cast(pyopencl.Buffer, made)


class _Bytes:
    """A block's bytes from a place on, for pyopencl.SVM, which keeps it."""

    def __init__(self, block: Block, view: View, size: int) -> None:
        self.block = block
        self.__array_interface__ = {"data": (view.pointer, False), "shape": (size,), "typestr": "|u1", "version": 3}


def svm(memory: Any) -> pyopencl.SVM[Any]:
    """A pyopencl.SVM over a block's bytes, which it keeps alive; nothing is copied. memory: as block_of.

    NotImplementedError on devices that share through buffers (take buffer there). Memory that is shared through Intel's
    USM is bound in the same way, which Intel's runtime for CPUs takes.
    """
    import numpy

    block, view, size = _view(memory)
    if view.via == "handle":
        raise NotImplementedError(f"{block.device.id} shares through buffers: take opennuma.opencl.buffer, or argument")
    return pyopencl.SVM(numpy.asarray(_Bytes(block, view, size)))


def argument(memory: Any) -> pyopencl.Buffer | pyopencl.SVM[Any]:
    """What a kernel takes for these bytes: a Buffer or an SVM, as the device shares. memory: as block_of."""
    _, view, _ = _view(memory)
    return buffer(memory) if view.via == "handle" else svm(memory)
