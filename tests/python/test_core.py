# SPDX-License-Identifier: Apache-2.0
"""Devices, pools, blocks, arrays: values and errors."""
import array as plain
import gc
import weakref

import numpy
import pytest

import opennuma

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
          "complex64", "complex128"]


def test_devices():
    found = opennuma.devices()
    assert [device.type for device in found][-1] == "host"
    assert opennuma.device() == found[0] and opennuma.device(found[-1].id) == found[-1] != found[0]
    assert len({*found, *opennuma.devices()}) == len(found)
    assert all(device.memory_total > 0 and "host" in device.kinds for device in found)
    with pytest.raises(LookupError, match="no device 'toaster:7'; there are: .*host"):
        opennuma.device("toaster:7")


def test_empty_and_zeros(device):
    for dtype in DTYPES:
        made = opennuma.zeros((2, 3), dtype, device=device)
        assert (made.shape, made.dtype, made.nbytes) == ((2, 3), dtype, 6 * numpy.dtype(dtype).itemsize)
        assert made.pointer % 64 == 0
        alias = numpy.asarray(made)
        assert (alias.shape, alias.dtype.name, alias.ctypes.data) == ((2, 3), dtype, made.pointer)
        assert not alias.any() and alias.flags.writeable
        assert numpy.array_equal(numpy.from_dlpack(made), alias)
    assert opennuma.empty(5, device=device).shape == (5,)
    assert numpy.asarray(opennuma.zeros((), "int32", device=device)).shape == ()
    assert numpy.asarray(opennuma.zeros((3, 0, 2), device=device)).shape == (3, 0, 2)


def test_dtypes_of_other_packages():
    for dtype in (float, numpy.float64, numpy.dtype("float64"), "float64"):
        assert opennuma.empty(1, dtype, device="host").dtype == "float64"
    with pytest.raises(ValueError, match="dtype 'float12' is not supported; these are: bool"):
        opennuma.empty(1, "float12", device="host")


def test_bfloat16_has_no_letter():
    made = opennuma.zeros(4, "bfloat16", device="host")
    with pytest.raises(BufferError, match="no format for bfloat16"):
        memoryview(made)
    assert made.nbytes == 8 and made.__array_interface__["typestr"] == "<V2"


@pytest.mark.parametrize("shape", [-1, (2, -1), 2**62, (2**40, 2**40), (0, 2**40, 2**40)])
def test_impossible_shapes(shape):
    with pytest.raises((ValueError, MemoryError)):
        opennuma.empty(shape, device="host")


def test_array_must_fit_its_block():
    block = opennuma.pool_for("host").allocate(100)
    element = ("float32", 2, 32, "f", "<f4")
    assert opennuma.Array(block, (2, 5), element, 60).pointer == block.pointer + 60
    with pytest.raises(ValueError, match="40 bytes from offset 61 on are more than the block's 100"):
        opennuma.Array(block, (2, 5), element, 61)
    with pytest.raises(ValueError):
        opennuma.Array(block, (1,) * 65, element)


def test_limit_is_memory_error(device):
    pool = opennuma.Pool(device, limit=1 << 20, name="small")
    with pytest.raises(MemoryError, match='"small".*limit 1048576.*ONUMA_ERROR_LIMIT'):
        opennuma.empty(1 << 20, pool=pool)
    pool.set_limit(0)
    assert opennuma.empty(1 << 20, pool=pool).nbytes == 4 << 20


def test_bad_values():
    with pytest.raises(ValueError, match="kind is 'warm'; it is one of: host, shared, device"):
        opennuma.Pool("host", kind="warm")
    with pytest.raises(ValueError, match="align 3 is not a power of two"):
        opennuma.Pool("host").allocate(1, alignment=3)
    with pytest.raises(ValueError):
        opennuma.Pool("host").allocate(-1)
    with pytest.raises(TypeError):
        opennuma.Pool("host").allocate(1.5)
    with pytest.raises(ValueError, match="mode is 'x'"):
        opennuma.empty(1, device="host").on_host("x")
    with pytest.raises(ValueError, match="timeout"):
        opennuma.empty(1, device="host").on_host("r", -1)
    with pytest.raises(ValueError, match="api is 'metal'"):
        opennuma.empty(1, device="host").block.view("metal")
    with pytest.raises(ValueError, match="a pool has its device"):
        opennuma.empty(1, device="host", pool=opennuma.Pool("host"))
    with pytest.raises(TypeError):
        opennuma.Block()


def test_statistics(device):
    pool = opennuma.Pool(device)
    first = opennuma.empty(1000, "uint8", pool=pool)
    second = opennuma.empty(1 << 20, "uint8", pool=pool)
    of, torch_like = pool.statistics(), pool.memory_stats()
    assert (of["in_use_blocks"], of["requested_bytes"], of["alloc_count"]) == (2, 1000 + (1 << 20), 2)
    assert torch_like["allocation.all.current"] == 2
    assert torch_like["allocated_bytes.all.current"] == of["in_use_bytes"] == pool.active_memory()
    del second
    assert pool.statistics()["in_use_blocks"] == 1 and pool.peak_memory() == of["in_use_bytes"]
    pool.reset_peak()
    assert pool.peak_memory() == pool.active_memory() >= 1000
    del first
    assert pool.active_memory() == 0
    pool.clear_cache()
    assert pool.statistics()["reserved_bytes"] == pool.cache_memory() == 0


def test_block(device):
    block = opennuma.pool_for(device).allocate(10, zeroed=True)
    with memoryview(block) as view:
        assert (view.nbytes, view.format, view.readonly) == (10, "B", False)
        view[:] = bytes(range(10))
    assert bytes(block) == bytes(range(10))
    assert block.device == device and block.kind == "shared" and not block.read_only
    assert opennuma.find_block(block.pointer + 9).pointer == block.pointer
    with pytest.raises(LookupError):
        opennuma.find_block(plain.array("b", [1]).buffer_info()[0])
    with pytest.raises(ValueError, match="offset 11 is beyond"):
        block.view("opencl", 11)
    gone = weakref.ref(block)
    del block
    assert gone() is None


def test_on_host(device):
    made = opennuma.zeros(4, "int32", device=device)
    access = made.on_host("w")
    with access as entered:
        assert entered is made
        numpy.asarray(made)[:] = 7
        with pytest.raises(RuntimeError, match="entered already"):
            access.__enter__()
        with made.block.on_host("r", timeout=0) as block: # the host's threads do not exclude each other
            assert bytes(block)[:4] == b"\7\0\0\0"
    with pytest.raises(RuntimeError, match="not entered"):
        access.__exit__(None, None, None)
    with access:
        assert numpy.asarray(made).tolist() == [7] * 4


def test_forgotten_access_is_released(opencl_device):
    import pyopencl

    import opennuma.opencl
    made = opennuma.zeros(4, device=opencl_device)
    commands = pyopencl.CommandQueue(opennuma.opencl.context(opencl_device))
    queue = opennuma.opencl.queue(commands, opencl_device)
    access = made.on_host("w")
    access.__enter__()
    with pytest.raises(BufferError, match="ONUMA_ERROR_CONFLICT"):
        queue.use(made, "r")
    del access
    gc.collect()
    queue.use(made, "r")
    queue.submitted()


def test_array_interface_and_read_only_copy():
    made = opennuma.zeros((2, 2), "int64", device="host")
    interface = made.__array_interface__
    assert interface == {"shape": (2, 2), "typestr": "<i8", "data": (made.pointer, False), "strides": None, "version": 3}


def test_dlpack_requests(device):
    made = opennuma.zeros(8, device=device)
    assert made.__dlpack_device__() == (1, 0)
    for keywords in ({"dl_device": (2, 0)}, {"stream": 1}):
        with pytest.raises(BufferError):
            made.__dlpack__(**keywords)
    for keywords in ({"dl_device": "cpu"}, {"max_version": 1}):
        with pytest.raises(ValueError):
            made.__dlpack__(**keywords)
    for keywords in ({}, {"stream": -1}, {"max_version": (0, 8)}):
        assert '"dltensor"' in repr(made.__dlpack__(**keywords))
    for keywords in ({"max_version": (1, 0)}, {"max_version": (9, 9), "dl_device": (1, 0), "copy": False}):
        assert '"dltensor_versioned"' in repr(made.__dlpack__(**keywords))
    copy = numpy.from_dlpack(made, copy=True)
    numpy.asarray(made)[:] = 1
    assert copy.sum() == 0 and copy.ctypes.data != made.pointer


def test_from_file(tmp_path, device):
    path = tmp_path / "numbers"
    numbers = numpy.arange(3000, dtype="float32")
    path.write_bytes(b"head" + numbers.tobytes())
    made = opennuma.from_file(path, "float32", offset=4, device=device)
    assert made.shape == (3000,) and made.block.read_only
    assert numpy.array_equal(numpy.asarray(made), numbers)
    assert not numpy.asarray(made).flags.writeable and memoryview(made).readonly
    deep = opennuma.from_file(path, "float32", (10, 20), offset=4 + 4 * 2000, device=device)
    assert numpy.array_equal(numpy.asarray(deep), numbers[2000:2200].reshape(10, 20))
    with pytest.raises(BufferError, match="read-only memory needs a consumer that knows DLPack 1.0"):
        made.__dlpack__()
    assert not numpy.from_dlpack(made).flags.writeable
    with pytest.raises(BufferError, match="no pool serves"):
        made.__dlpack__(copy=True)
    with pytest.raises(ValueError, match="read-only"):
        made.on_host("w")
    with made.on_host("r"):
        assert bytes(made.block)[:4] == b"head"
    alias = numpy.asarray(made)
    del made
    path.unlink()
    assert alias[-1] == 2999


def test_from_file_errors(tmp_path):
    path = tmp_path / "short"
    path.write_bytes(b"12345")
    with pytest.raises(ValueError, match="8 bytes from offset 0 on are not in a file of 5"):
        opennuma.from_file(path, "float64", 1, device="host")
    with pytest.raises(ValueError, match="no whole number of float32"):
        opennuma.from_file(path, "float32", device="host")
    with pytest.raises(ValueError):
        opennuma.from_file(path, "uint8", 1, offset=-1, device="host")
    with pytest.raises(ValueError, match="0 bytes"):
        opennuma.from_file(path, "uint8", 0, device="host")
    with pytest.raises(FileNotFoundError):
        opennuma.from_file(tmp_path / "none", device="host")
