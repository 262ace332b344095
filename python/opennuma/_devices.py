# SPDX-License-Identifier: Apache-2.0
"""Finding devices. The first call looks for drivers; importing the package does not."""
from __future__ import annotations

from . import _native
from ._native import Device


def devices() -> list[Device]:
    """All devices of this machine, best first: integrated GPU, discrete GPU, CPU device, simulators, host.

    In a child made by fork after a device was used, the host alone.
    """
    return _native.devices()


def device(which: str | Device | None = None) -> Device:
    """The device of that id ("opencl:0", "host"); the best one for None. LookupError if there is none such."""
    if isinstance(which, Device):
        return which
    found = _native.devices()
    for candidate in found:
        if which is None or candidate.id == which:
            return candidate
    raise LookupError(f"no device {which!r}; there are: {', '.join(candidate.id for candidate in found)}")
