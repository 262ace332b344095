# SPDX-License-Identifier: Apache-2.0
"""NumPy's own arrays from a pool."""
import asyncio
import threading

import numpy
import pytest

import opennuma
import opennuma.numpy


@pytest.fixture
def pool(device):
    return opennuma.Pool(device)


def blocks(pool):
    return pool.statistics()["in_use_blocks"]


def test_arrays_come_from_the_pool(pool):
    with opennuma.numpy.use(pool) as used:
        assert used is pool
        made = numpy.arange(1000.0)
        assert numpy._core.multiarray.get_handler_name(made) == "opennuma"
    assert blocks(pool) == 1 and made.ctypes.data % 64 == 0
    assert made.sum() == 499500.0
    outside = numpy.arange(10)
    assert numpy._core.multiarray.get_handler_name(outside) == "default_allocator" and blocks(pool) == 1
    del made
    assert blocks(pool) == 0


def test_zeros_and_resize(pool):
    with opennuma.numpy.use(pool):
        made = numpy.full(1000, 7)
        del made
        made = numpy.zeros(1000, "int64") # where the sevens were
        assert not made.any()
        made[:] = 3
        made.resize(100000, refcheck=False)
        assert made[:1000].tolist() == [3] * 1000 and not made[1000:].any()
        made.resize(10, refcheck=False)
        assert made.tolist() == [3] * 10
        empty = numpy.empty(0)
        assert empty.size == 0


def test_arrays_keep_the_pool():
    with opennuma.numpy.use(opennuma.Pool("host")):
        made = numpy.arange(100)
    assert made.sum() == 4950


def test_limit_is_memory_error(device):
    pool = opennuma.Pool(device, limit=1 << 20)
    with opennuma.numpy.use(pool), pytest.raises(MemoryError):
        numpy.empty(1 << 20)
    assert pool.memory_stats()["num_ooms"] == 1


def test_nested_and_after_errors(pool):
    other = opennuma.Pool("host")
    with pytest.raises(KeyError), opennuma.numpy.use(pool):
        with opennuma.numpy.use(other):
            inner = numpy.ones(10)
        outer = numpy.ones(10)
        raise KeyError
    after = numpy.ones(10)
    assert (blocks(other), blocks(pool)) == (1, 1)
    assert numpy._core.multiarray.get_handler_name(after) == "default_allocator"
    del inner, outer


def test_each_thread_and_task_has_its_own(pool):
    seen = []

    async def task():
        with opennuma.numpy.use(pool):
            await asyncio.sleep(0)
            seen.append(numpy._core.multiarray.get_handler_name(numpy.ones(10)))

    async def both():
        async def other():
            seen.append(numpy._core.multiarray.get_handler_name(numpy.ones(10)))
        await asyncio.gather(task(), other())

    asyncio.run(both())
    assert sorted(seen) == ["default_allocator", "opennuma"]
    with opennuma.numpy.use(pool):
        thread = threading.Thread(target=lambda: seen.append(numpy._core.multiarray.get_handler_name(numpy.ones(10))))
        thread.start()
        thread.join()
    assert seen[-1] == "default_allocator"


def test_device_memory_is_refused(opencl_device):
    if "device" not in opencl_device.kinds:
        return
    pool = opennuma.Pool(opencl_device, kind="device")
    with pytest.raises(ValueError, match="does not reach device memory"), opennuma.numpy.use(pool):
        pass
    made = opennuma.empty(10, pool=pool)
    for alias in (numpy.asarray, numpy.from_dlpack, memoryview):
        with pytest.raises((BufferError, AttributeError, TypeError)):
            alias(made) if alias is not numpy.asarray else memoryview(made)
    assert not hasattr(made, "__array_interface__")
