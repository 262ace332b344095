# SPDX-License-Identifier: Apache-2.0
"""Element types, by the name that NumPy and PyTorch agree on, as each protocol calls them."""
from __future__ import annotations

# Name, DLPack's code and bits, the letter of `struct` (None: it has none), NumPy's typestr. Native byte order.
Element = tuple[str, int, int, "str | None", str]

_SIGNED, _UNSIGNED, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6

_ELEMENTS: dict[str, Element] = {
    element[0]: element
    for element in (
        ("bool", _BOOL, 8, "?", "|b1"),
        ("int8", _SIGNED, 8, "b", "|i1"),
        ("int16", _SIGNED, 16, "h", "<i2"),
        ("int32", _SIGNED, 32, "i", "<i4"),
        ("int64", _SIGNED, 64, "q", "<i8"),
        ("uint8", _UNSIGNED, 8, "B", "|u1"),
        ("uint16", _UNSIGNED, 16, "H", "<u2"),
        ("uint32", _UNSIGNED, 32, "I", "<u4"),
        ("uint64", _UNSIGNED, 64, "Q", "<u8"),
        ("float16", _FLOAT, 16, "e", "<f2"),
        ("bfloat16", _BFLOAT, 16, None, "<V2"),
        ("float32", _FLOAT, 32, "f", "<f4"),
        ("float64", _FLOAT, 64, "d", "<f8"),
        ("complex64", _COMPLEX, 64, "Zf", "<c8"),
        ("complex128", _COMPLEX, 128, "Zd", "<c16"),
    )
}

# What NumPy makes of Python's own types.
_OF_PYTHON: dict[object, str] = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def element(dtype: object) -> Element:
    """Of a name, a type of Python, or a dtype of NumPy, PyTorch or ml_dtypes. ValueError for others."""
    name = _OF_PYTHON.get(dtype) if isinstance(dtype, type) else None
    # numpy.dtype has a name; numpy.float32 is a class with one; str(torch.float32) is "torch.float32".
    name = name or getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    found = _ELEMENTS.get(str(name).removeprefix("torch."))
    if found is None:
        raise ValueError(f"dtype {dtype!r} is not supported; these are: {', '.join(_ELEMENTS)}")
    return found
