# SPDX-License-Identifier: Apache-2.0
"""Pools, with their statistics under the names that users of other frameworks know."""
from __future__ import annotations

from ._devices import device as find_device
from ._native import Block, Device, NativePool
from ._queue import Queue


class Pool:
    """Serves blocks of one kind of memory on one device.

    device: a Device or its id, None for the best one. kind: "shared" for CPU and device, "host", "device".
    limit: the most bytes to reserve, 0 for none. alignment: bytes, of every block; at least 64 and what the device needs.
    segment_size: bytes got from the driver at once, 0 for the library's choice. name: shown in the library's reports.

    It lives until it and everything allocated from it are gone. Errors: ValueError, NotImplementedError (the device
    has no memory of that kind), MemoryError.
    """

    def __init__(self, device: str | Device | None = None, *, kind: str = "shared", limit: int = 0, alignment: int = 0,
                 segment_size: int = 0, name: str | None = None) -> None:
        self._native = NativePool(find_device(device), kind=kind, limit=limit, alignment=alignment,
                                  segment_size=segment_size, name=name)

    @property
    def device(self) -> Device:
        """The Device whose memory it serves."""
        return self._native.device

    @property
    def kind(self) -> str:
        """"host", "shared" or "device"."""
        return self._native.kind

    def allocate(self, size: int, *, alignment: int = 0, zeroed: bool = False, queue: Queue | None = None) -> Block:
        """A Block of size bytes, whose contents are undefined unless zeroed.

        With a queue, memory that was freed on it may be reused at once. MemoryError if the device has no more, or the
        pool's limit is reached.
        """
        return self._native.allocate(size, alignment=alignment, zeroed=zeroed, queue=queue.native if queue else None)

    def trim(self, keep: int = 0) -> int:
        """Give free memory back to the system until at most keep bytes are reserved. Returns the bytes given back."""
        return self._native.trim(keep)

    def set_limit(self, limit: int) -> None:
        """The most bytes that may be reserved, 0 for no limit. Below what is reserved now, only growth is refused."""
        self._native.set_limit(limit)

    def reset_peak(self) -> None:
        """Peaks start again from the present values."""
        self._native.reset_peak()

    def statistics(self) -> dict[str, int]:
        """Every statistic by its name in the C library (opennuma.h tells what each means)."""
        return self._native.statistics()

    def memory_stats(self) -> dict[str, int]:
        """The same as far as they have names in torch.cuda.memory_stats; bytes, blocks and calls.

        Only what is true has an entry: one pool of all sizes (".all."), no peak of what is active.
        """
        of = self.statistics()
        return {
            "allocation.all.current": of["in_use_blocks"],
            "allocation.all.peak": of["in_use_blocks_peak"],
            "allocation.all.allocated": of["alloc_count"],
            "allocation.all.freed": of["free_count"],
            "allocated_bytes.all.current": of["in_use_bytes"],
            "allocated_bytes.all.peak": of["in_use_bytes_peak"],
            "requested_bytes.all.current": of["requested_bytes"],
            "requested_bytes.all.peak": of["requested_bytes_peak"],
            "reserved_bytes.all.current": of["reserved_bytes"],
            "reserved_bytes.all.peak": of["reserved_bytes_peak"],
            "active_bytes.all.current": of["in_use_bytes"] + of["pending_bytes"],
            "segment.all.current": of["segment_alloc_count"] - of["segment_free_count"],
            "segment.all.allocated": of["segment_alloc_count"],
            "segment.all.freed": of["segment_free_count"],
            "num_alloc_retries": of["oom_retry_count"],
            "num_ooms": of["alloc_failure_count"],
            "num_device_alloc": of["segment_alloc_count"],
            "num_device_free": of["segment_free_count"],
        }

    # MLX's short set.

    def active_memory(self) -> int:
        """Bytes of live blocks."""
        return self.statistics()["in_use_bytes"]

    def peak_memory(self) -> int:
        """The most bytes of live blocks since the start or reset_peak."""
        return self.statistics()["in_use_bytes_peak"]

    def cache_memory(self) -> int:
        """Bytes that are reserved, free and ready for reuse."""
        return self.statistics()["cached_bytes"]

    def clear_cache(self) -> int:
        """Give all free memory back to the system. Returns the bytes given back."""
        return self.trim()

    def __repr__(self) -> str:
        return f"<opennuma.Pool of {self.kind} memory on {self.device.id}>"
