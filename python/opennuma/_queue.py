# SPDX-License-Identifier: Apache-2.0
"""Queues: what uses which block, and until when."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ._devices import device as find_device
from ._native import Array, Block, Device, NativeQueue


class Queue:
    """A driver's queue, which the library then knows of.

    handle: the driver's, as an integer (pyopencl's CommandQueue has it as int_ptr; opennuma.opencl.queue does all this).
    keep: an object that owns the driver's queue, and lives at least as long as this one.
    Errors: ValueError, NotImplementedError where the device does not speak that api.
    """

    def __init__(self, device: str | Device | None, api: str, handle: int, keep: object = None) -> None:
        self.native = NativeQueue(find_device(device), api, handle, keep)

    @property
    def device(self) -> Device:
        """The Device that it belongs to."""
        return self.native.device

    def use(self, memory: Array | Block, mode: str) -> None:
        """Announce that work about to be submitted reads ("r") or writes ("w", "rw") an array's or block's bytes.

        BufferError while the CPU holds it in a way that does not go with that. After submitting: submitted().
        """
        self.native.use(memory.block if isinstance(memory, Array) else memory, mode)

    def submitted(self) -> None:
        """The announced work is on its way: who needs its blocks now waits for it."""
        self.native.submitted()

    @contextmanager
    def using(self, *uses: tuple[Array | Block, str]) -> Iterator[None]:
        """For submitting work: announces uses, pairs of memory and mode, and says at the end that it is submitted.

            with queue.using((x, "r"), (y, "w")):
                kernel(commands, shape, None, x_buffer, y_buffer)
        """
        try:
            for memory, mode in uses:
                self.use(memory, mode)
            yield
        finally:
            # Also after an error: what may have been submitted is then waited for, and nothing stays open.
            self.submitted()

    def wait(self, other: Queue) -> None:
        """Later work of this queue runs after the other queue's earlier work."""
        self.native.wait(other.native)
