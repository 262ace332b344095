# SPDX-License-Identifier: Apache-2.0
"""PyTorch tensors over shared memory.

    x = opennuma.torch.zeros(1000, dtype=torch.float32)     # bytes that the CPU and the device have in common
    tensor = x.cpu_alias()                                  # a CPU tensor over them: autograd, optimizers, all of PyTorch
    with opennuma.torch.on_host(tensor, "w"):               # the CPU's turn
        tensor.fill_(1)

    opennuma.torch.share(model)                             # a module's parameters and buffers move there

PyTorch itself computes on such tensors as on any other of the CPU. Another package can compute on the same bytes on the
device meanwhile: opennuma.opencl takes these tensors as they are.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import torch
from torch.utils.dlpack import from_dlpack

from . import _arrays
from ._arrays import Shape
from ._native import Array, Block, Device, HostAccess, find_block
from ._pool import Pool

_Module = TypeVar("_Module", bound=torch.nn.Module)


class Shared:
    """Bytes with a tensor on either side. Aliases keep the bytes alive, whatever becomes of this object."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def cpu_alias(self) -> torch.Tensor:
        """A CPU tensor over the bytes; each call makes another, over the same bytes."""
        alias: torch.Tensor = from_dlpack(self.array)
        return alias

    def device_alias(self) -> torch.Tensor:
        """The device's tensor over the same bytes.

        On the host that is a CPU tensor, too. NotImplementedError for devices that PyTorch cannot compute on, as those of
        OpenCL: opennuma.opencl.argument gives what kernels take.
        """
        device = self.array.block.device
        if device.backend == "host":
            return self.cpu_alias()
        raise NotImplementedError(f"PyTorch has no device for {device.backend}; for kernels on {device.id} take "
                                  "opennuma.opencl.argument(tensor)")

    def on_host(self, mode: str = "rw", timeout: float | None = None) -> HostAccess[Array]:
        """The CPU's turn: as Array.on_host."""
        return self.array.on_host(mode, timeout)

    def __repr__(self) -> str:
        return f"<opennuma.torch.Shared over {self.array!r}>"


def empty(*shape: Any, dtype: torch.dtype | None = None, device: str | Device | None = None,
          pool: Pool | None = None) -> Shared:
    """Shared bytes for a tensor with undefined contents.

    shape: extents, or one sequence of them, as torch.empty. dtype: None for PyTorch's default. device: one of
    opennuma.devices() or its id, None for the best; or a pool. Errors: as opennuma.empty.
    """
    return Shared(_arrays.empty(_extents(shape), dtype or torch.get_default_dtype(), device=device, pool=pool))


def zeros(*shape: Any, dtype: torch.dtype | None = None, device: str | Device | None = None,
          pool: Pool | None = None) -> Shared:
    """Shared bytes for a tensor of zeros. Otherwise as empty."""
    return Shared(_arrays.zeros(_extents(shape), dtype or torch.get_default_dtype(), device=device, pool=pool))


def _extents(shape: tuple[Any, ...]) -> Shape:
    extents: Shape = shape[0] if len(shape) == 1 else shape
    return extents


def block_of(tensor: torch.Tensor) -> Block:
    """The Block that a tensor's storage lies in. LookupError for tensors that are not in blocks of this package."""
    return find_block(tensor.untyped_storage().data_ptr())


def share(module: _Module, *, device: str | Device | None = None, pool: Pool | None = None) -> _Module:
    """Move a module's parameters and buffers into shared memory, and return the module.

    They keep their values and identity: optimizers, tied parameters and hooks go on as before. Do it while no device
    works on them. Gradients and what the optimizer keeps stay where PyTorch puts them. Errors: as opennuma.empty;
    ValueError for a module that is not on the CPU; the parameters moved by then stay moved.
    """
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if tensor.device.type != "cpu":
                raise ValueError(f"a parameter is on {tensor.device}; move the module to the CPU first")
            shared = empty(tuple(tensor.shape), dtype=tensor.dtype, device=device, pool=pool)
            alias = shared.cpu_alias()
            with shared.on_host("w"):
                alias.copy_(tensor)
            tensor.data = alias
    return module


@contextmanager
def on_host(what: torch.Tensor | torch.nn.Module, mode: str = "rw", timeout: float | None = None) -> Iterator[None]:
    """The CPU's turn on a tensor, or on all parameters and buffers of a module.

    Waits for what queues announced on their blocks, at most timeout seconds for each (TimeoutError).
    LookupError for tensors that are not in blocks of this package.
    """
    tensors = [what] if isinstance(what, torch.Tensor) else [*what.parameters(), *what.buffers()]
    with ExitStack() as held:
        for tensor in tensors:
            held.enter_context(block_of(tensor).on_host(mode, timeout))
        yield
