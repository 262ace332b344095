# SPDX-License-Identifier: Apache-2.0
"""Making arrays."""
from __future__ import annotations

import os
from collections.abc import Iterable
from math import prod
from typing import SupportsIndex, TypeAlias

from . import _native
from ._devices import device as find_device
from ._dtypes import element
from ._native import Array, Device
from ._pool import Pool

Shape: TypeAlias = SupportsIndex | Iterable[SupportsIndex]

# A pool for each device and kind, for those who name none. Device is hashable; the pools live as long as the process.
_pools: dict[tuple[Device, str], Pool] = {}


def pool_for(device: str | Device | None = None, kind: str = "shared") -> Pool:
    """The pool that empty and zeros use when they are given none: one for each device and kind, made at first use."""
    key = (find_device(device), kind)
    pool = _pools.get(key)
    if pool is None:
        # Of two threads that come here at once, both get the same one.
        pool = _pools.setdefault(key, Pool(key[0], kind=kind))
    return pool


def _tuple_of(shape: Shape) -> tuple[int, ...]:
    extents = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    plain = tuple(extent.__index__() for extent in extents)
    if any(extent < 0 for extent in plain):
        raise ValueError(f"shape {plain} has a negative extent")
    return plain


def _make(shape: Shape, dtype: object, device: str | Device | None, kind: str, pool: Pool | None,
          zeroed: bool) -> Array:
    extents, described = _tuple_of(shape), element(dtype)
    if pool is None:
        pool = pool_for(device, kind)
    elif device is not None:
        raise ValueError("give a pool or a device: a pool has its device")
    block = pool.allocate(prod(extents) * described[2] // 8, zeroed=zeroed)
    return Array(block, extents, described)


def empty(shape: Shape, dtype: object = "float32", *, device: str | Device | None = None, kind: str = "shared",
          pool: Pool | None = None) -> Array:
    """An array with undefined contents.

    shape: extents, or one. dtype: a name ("float32"), or a dtype of NumPy or PyTorch. device: an id or a Device, None
    for the best one; or a pool. Its first byte is aligned to 64 bytes at least.
    Errors: MemoryError, ValueError, NotImplementedError (the device has no memory of that kind).
    """
    return _make(shape, dtype, device, kind, pool, zeroed=False)


def zeros(shape: Shape, dtype: object = "float32", *, device: str | Device | None = None, kind: str = "shared",
          pool: Pool | None = None) -> Array:
    """An array of zeros, for CPU and device alike. Otherwise as empty."""
    return _make(shape, dtype, device, kind, pool, zeroed=True)


def from_file(path: str | os.PathLike[str], dtype: object = "uint8",
              shape: Shape | None = None, *, offset: int = 0, device: str | Device | None = None) -> Array:
    """A file's bytes as a read-only array, without reading or copying them: its pages are shared with all processes.

    offset: bytes from the file's beginning. shape: None for one dimension to the file's end. The file must not shrink
    while the array lives. Errors: OSError; ValueError if the file is too short, or bytes are left over;
    NotImplementedError where the device would have to copy.
    """
    described = element(dtype)
    item = described[2] // 8
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        length = os.fstat(descriptor).st_size
        left = length - offset
        if shape is None:
            if left % item:
                raise ValueError(f"{left} bytes from offset {offset} on are no whole number of {described[0]}")
            extents: tuple[int, ...] = (left // item,)
        else:
            extents = _tuple_of(shape)
        wanted = prod(extents) * item
        if offset < 0 or wanted > left:
            raise ValueError(f"{os.fspath(path)}: {wanted} bytes from offset {offset} on are not in a file of {length}")
        block, begin = _native.map_file(find_device(device), descriptor, offset, wanted)
    finally:
        os.close(descriptor)
    return Array(block, extents, described, begin)
