#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A block of shared memory as a NumPy array, through ctypes: no package, no copy.

    LD_LIBRARY_PATH=build/release python3 examples/share.py
"""
import ctypes

numa = ctypes.CDLL("libopennuma.so")
numa.onuma_last_error.restype = ctypes.c_char_p
numa.onuma_device_at.restype = ctypes.c_void_p
numa.onuma_device_at.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
KIND_SHARED, ACCESS_READ_WRITE, INFINITE = 1, 3, ctypes.c_uint64(2**64 - 1)


class PoolDesc(ctypes.Structure):
    """onuma_pool_desc as far as its kind: struct_size tells the library where ours ends."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("kind", ctypes.c_uint32), ("alignment", ctypes.c_size_t)]


def call(name, *arguments):
    if getattr(numa, name)(*arguments) != 0:
        raise RuntimeError(numa.onuma_last_error().decode())


runtime, pool, block = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
call("onuma_runtime_create", None, ctypes.byref(runtime))
device = ctypes.c_void_p(numa.onuma_device_at(runtime, 0))
desc = PoolDesc(ctypes.sizeof(PoolDesc), KIND_SHARED, 0)
call("onuma_pool_create", device, ctypes.byref(desc), ctypes.byref(pool))

count, size = 1000, ctypes.c_size_t(4 * 1000)
call("onuma_alloc", pool, size, ctypes.c_size_t(0), None, ctypes.byref(block))
call("onuma_host_acquire", block, size, ACCESS_READ_WRITE, INFINITE)
numbers = (ctypes.c_float * count).from_address(block.value)
try:
    import numpy
    numbers = numpy.frombuffer(numbers, dtype=numpy.float32)
except ImportError:
    pass
numbers[:] = range(count)
print(f"{type(numbers).__name__} at {block.value:#x}, sum {sum(numbers):.0f}")
call("onuma_host_release", block, size, ACCESS_READ_WRITE)

del numbers
call("onuma_free", block, None)
call("onuma_pool_destroy", pool)
numa.onuma_runtime_destroy(runtime)
