"""What the names of data types mean. Traces write C++ names, torch and the hook Python's, pages short labels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Kind = Literal["float", "complex", "int", "bool", "other"]


@dataclass(frozen=True, slots=True)
class DType:
    """A data type.

    Attributes:
        name: as Kineto writes it, such as "c10::Half". Also what an op takes besides tensors ("Scalar", "TensorList",
            "" for None), and names that the table does not know.
        label: as pages write it, such as "fp16".
        torch_name: "float16" of ``torch.float16``; "" where unknown.
        element_bytes: of one element; None where unknown, or for what is no tensor.
        precision: what a matrix product of such inputs computes in ("fp32", "fp16", "bf16", "fp64", "fp8"); "" for
            integers, complex numbers and what is no tensor.
        kind: of numbers.
    """

    name: str
    label: str
    torch_name: str = ""
    element_bytes: int | None = None
    precision: str = ""
    kind: Kind = "other"


InputDtypes = tuple[DType, ...]
"""Of the inputs of an op, one entry each; () where not recorded."""

_TABLE = (
    DType("float", "fp32", "float32", 4, "fp32", "float"),
    DType("double", "fp64", "float64", 8, "fp64", "float"),
    DType("c10::Half", "fp16", "float16", 2, "fp16", "float"),
    DType("c10::BFloat16", "bf16", "bfloat16", 2, "bf16", "float"),
    DType("c10::Float8_e4m3fn", "Float8_e4m3fn", "float8_e4m3fn", 1, "fp8", "float"),
    DType("c10::Float8_e5m2", "Float8_e5m2", "float8_e5m2", 1, "fp8", "float"),
    DType("c10::Float8_e4m3fnuz", "Float8_e4m3fnuz", "float8_e4m3fnuz", 1, "fp8", "float"),
    DType("c10::Float8_e5m2fnuz", "Float8_e5m2fnuz", "float8_e5m2fnuz", 1, "fp8", "float"),
    DType("long int", "int64", "int64", 8, "", "int"),
    DType("int", "int32", "int32", 4, "", "int"),
    DType("short int", "int16", "int16", 2, "", "int"),
    DType("signed char", "int8", "int8", 1, "", "int"),
    DType("unsigned char", "uint8", "uint8", 1, "", "int"),
    DType("bool", "bool", "bool", 1, "", "bool"),
    DType("c10::complex<float>", "complex<float>", "complex64", 8, "", "complex"),
    DType("c10::complex<double>", "complex<double>", "complex128", 16, "", "complex"),
)
_OTHER_NAMES = {"long": "long int", "short": "short int"}
"""C++ names by which compilers differ."""
_BY_NAME = {name: dtype for dtype in reversed(_TABLE) for name in (dtype.name, dtype.torch_name, dtype.label)}
_BY_NAME |= {name: _BY_NAME[same] for name, same in _OTHER_NAMES.items()}
_NAMES = re.compile(r'[^\[\]",]+')

FLOAT, COMPLEX_FLOAT, COMPLEX_DOUBLE = (_BY_NAME[name] for name in ("float32", "complex64", "complex128"))


@lru_cache(maxsize=4096)
def dtype_named(name: str) -> DType:
    """The data type of this name: Kineto's, torch's or a label. One of the same name where the table has none."""
    return _BY_NAME.get(name) or DType(name, name.removeprefix("c10::"))


def dtypes_in(text: str) -> InputDtypes:
    """The data types that a text lists, such as '["c10::Half", "float"]' or "fp16, fp32"."""
    return tuple(dtype_named(name) for found in _NAMES.findall(text) if (name := found.strip()))


def precision_of_dtypes(dtypes: InputDtypes) -> str:
    """Precision of the first tensor among the inputs that has one, "" where none has."""
    return next((dtype.precision for dtype in dtypes if dtype.precision), "")


def element_bytes(dtypes: InputDtypes) -> list[int | None]:
    """Bytes of an element per input; None for what is no tensor, of an unknown type or complex."""
    return [None if dtype.kind == "complex" else dtype.element_bytes for dtype in dtypes]
