"""Follows the tensors of a generated wrapper, line by line, to say what each launch takes: shapes, data types, bytes.

Buffers are created with their sizes and data types; of arguments of the graph the wrapper asserts sizes alone, and
their data types are in the signatures of the kernels that take them. Sizes with symbols are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tb_dlprof_plugin.model.dtypes import dtype_named

_TUPLE = r"\(([\d, ]*)\)"
_ASSERTED = re.compile(rf"\s*assert_size_stride\((\w+), {_TUPLE}")
_CREATED = re.compile(rf"\s*(\w+) = empty_strided\w*\({_TUPLE}, {_TUPLE}, torch\.(\w+)")
_VIEW = rf"reinterpret_tensor\((\w+), {_TUPLE}, {_TUPLE}, \w+\)"
_SEEN_AS = re.compile(rf"\s*(\w+) = {_VIEW}")
_RENAMED = re.compile(r"\s*(\w+) = (\w+)(?:; del \w+)?(?:  #.*)?$")
_VIEW_OR_NAME = re.compile(rf"{_VIEW}|(\w+)=|([A-Za-z_]\w*)(?![\w(.])")
_LAUNCH = re.compile(r"\s*(?:\w+ = )?([\w.]+?)(\.run)?\((.*)\)\s*$")
_DEFINED = re.compile(r"\s*(\w+) = async_compile\.")
_SIGNATURE = re.compile(r"'signature': \{([^}]*)\}")
_OF_SIGNATURE = re.compile(r"'(\w+)': '(\*?)(\w+)'")
_CPP_SIGNATURE = re.compile(r"async_compile\.cpp_pybinding\(\[([^\]]*)\]")
_PRODUCTS = "extern_kernels."
_SIZES = {
    "fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "i1": 1, "u64": 8,
    "u32": 4, "fp8e4nv": 1, "fp8e5": 1, "double": 8, "float": 4, "bfloat16": 2, "half": 2, "int64_t": 8, "int32_t": 4,
    "int": 4, "bool": 1, "uint8_t": 1, "int8_t": 1, "int16_t": 2,
}  # fmt: skip
"""Bytes of an element, by the words of Triton and C++."""


@dataclass(frozen=True, slots=True)
class WrapperTensor:
    """A tensor that a launch takes; ``dtype`` is torch's word, "" where the wrapper does not say it."""

    shape: tuple[int, ...]
    dtype: str = ""

    @property
    def elements(self) -> int:
        """How many it has."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True, slots=True)
class Taken:
    """What a launch takes: its tensors in order (output of a library call last), and the bytes of all of them,
    -1 where a size or a data type is not known."""

    tensors: tuple[WrapperTensor, ...] = ()
    bytes: int = -1


class WrapperTensors:
    """What is known of each name in the wrapper, up to the line that was read last."""

    def __init__(self) -> None:
        self._tensors: dict[str, WrapperTensor] = {}
        self._kernels: dict[str, list[tuple[str, int]]] = {}
        """By kernel its arguments: name and bytes of an element, 0 for what is no tensor."""
        self._defined = ""

    def read(self, line: str) -> None:
        """Take what a line says of tensors and kernels."""
        if defined := _DEFINED.match(line):
            self._defined = defined[1]
            if found := _CPP_SIGNATURE.search(line):
                self._kernels[defined[1]] = list(_cpp_arguments(found[1]))
        elif (found := _SIGNATURE.search(line)) and self._defined:
            self._kernels.setdefault(self._defined, list(_triton_arguments(found[1])))
        elif found := _ASSERTED.match(line):
            known = self._tensors.get(found[1], WrapperTensor(()))
            self._tensors[found[1]] = replace(known, shape=_shape(found[2]))
        elif found := _CREATED.match(line):
            self._tensors[found[1]] = WrapperTensor(_shape(found[2]), found[4])
        elif found := _SEEN_AS.match(line):
            self._tensors[found[1]] = WrapperTensor(_shape(found[3]), self._dtype_of(found[2]))
        elif (found := _RENAMED.match(line)) and found[2] in self._tensors:
            self._tensors[found[1]] = self._tensors[found[2]]

    def taken(self, line: str) -> Taken | None:
        """What the launch in this line takes; None where it launches nothing."""
        launch = _LAUNCH.match(line)
        if launch is None:
            return None
        names = list(self._arguments(launch[3]))
        signature = self._kernels.get(launch[1])
        if signature is None:
            tensors = [tensor for _, tensor in names if tensor is not None]
            known = {tensor.dtype for tensor in tensors if tensor.dtype}
            if len(known) == 1 and launch[1].startswith(_PRODUCTS):
                # A product mixes no data types; what the wrapper got from outside has none of its own.
                tensors = [replace(tensor, dtype=next(iter(known))) for tensor in tensors]
            sizes = [dtype_named(tensor.dtype).element_bytes for tensor in tensors]
            if None in sizes or not sizes:
                return Taken(tuple(tensors))
            return Taken(tuple(tensors), sum(t.elements * (s or 0) for t, s in zip(tensors, sizes, strict=True)))
        total = 0
        for (name, size), (_, tensor) in zip(signature, names, strict=False):
            if size and tensor is None:
                return Taken()
            if size and tensor is not None:
                total += tensor.elements * size * (2 if name.startswith("in_out") else 1)
        return Taken((), total)

    def _dtype_of(self, name: str) -> str:
        known = self._tensors.get(name)
        return known.dtype if known else ""

    def _arguments(self, text: str) -> Iterator[tuple[str, WrapperTensor | None]]:
        """Each argument, with its tensor where it is one."""
        for found in _VIEW_OR_NAME.finditer(text):
            if found[1]:
                yield found[1], WrapperTensor(_shape(found[2]), self._dtype_of(found[1]))
            elif found[5]:
                yield found[5], self._tensors.get(found[5])


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(",") if size.strip())


def _triton_arguments(text: str) -> Iterator[tuple[str, int]]:
    for name, pointer, kind in _OF_SIGNATURE.findall(text):
        yield name, _SIZES.get(kind, 0) if pointer else 0


def _cpp_arguments(text: str) -> Iterator[tuple[str, int]]:
    """Which of them are both read and written is not in this list: each counts once."""
    for argument in text.split(","):
        kind = argument.replace("const", "").strip(" '")
        yield "", _SIZES.get(kind.rstrip("*"), 0) if kind.endswith("*") else 0
