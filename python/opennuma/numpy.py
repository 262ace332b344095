# SPDX-License-Identifier: Apache-2.0
"""NumPy's own arrays from a pool (NEP 49).

    with opennuma.numpy.use(pool):
        x = numpy.random.rand(1000)     # lies in the pool, and may outlive the `with`
"""
from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from . import _native
from ._pool import Pool

if TYPE_CHECKING:
    from typing_extensions import CapsuleType


class use:
    """Within it, NumPy allocates the data of new arrays from the pool, in this thread or asyncio task.

    Arrays keep the pool alive. What the pool refuses, NumPy reports as its MemoryError. ValueError for a pool of device
    memory that the CPU does not reach.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._handler = _native.numpy_handler(pool._native)
        self._before: list[CapsuleType | None] = []

    def __enter__(self) -> Pool:
        self._before.append(_native.numpy_set_handler(self._handler))
        return self._pool

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        _native.numpy_set_handler(self._before.pop())
