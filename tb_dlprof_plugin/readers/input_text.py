"""Shapes and data types of an op's inputs as JSON text: Kineto's "Input Dims" and "Input type", NVTX' "sizes"."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from tb_dlprof_plugin.model.dtypes import InputDtypes, dtype_named
from tb_dlprof_plugin.model.shapes import InputShape, InputShapes, TensorList
from tb_dlprof_plugin.readers.errors import UNDECODABLE

_LARGEST = 2**63 - 1
_Size = Annotated[int, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
_TENSORS: msgspec.json.Decoder[list[tuple[_Size, ...]]] = msgspec.json.Decoder(list[tuple[_Size, ...]])
_NAMES: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])


def parse_shapes(text: bytes | str) -> InputShapes | None:
    """The shapes of "[[64, 3, 7, 7], [], [[2, 3], [4]]]"; None where the text is no list."""
    if not text:
        return None
    try:
        # Hardly an op takes a list of tensors.
        return tuple(_TENSORS.decode(text))
    except UNDECODABLE:
        inputs = _decoded(text)
        return tuple(map(_shape, inputs)) if isinstance(inputs, list) else None


def parse_dtypes(text: bytes | str) -> InputDtypes | None:
    """The data types of '["c10::Half", "", "Scalar"]'; None where the text is no list.

    An input that is a list of types counts as its first.
    """
    if not text:
        return None
    try:
        return tuple(map(dtype_named, _NAMES.decode(text)))
    except UNDECODABLE:
        names = _decoded(text)
    if not isinstance(names, list):
        return None
    first = (name[0] if isinstance(name, list) and name else name for name in names)
    return tuple(dtype_named(name if isinstance(name, str) else "") for name in first)


def _shape(sizes: object) -> InputShape:
    if not isinstance(sizes, list):
        return None
    if sizes and all(isinstance(inner, list) and _are_sizes(inner) for inner in sizes):
        return TensorList(tuple(inner) for inner in sizes)
    return tuple(sizes) if _are_sizes(sizes) else None


def _are_sizes(values: list[Any]) -> bool:
    return all(type(value) is int and abs(value) <= _LARGEST for value in values)


def _decoded(text: bytes | str) -> object:
    try:
        return msgspec.json.decode(text)
    except UNDECODABLE:
        return None
