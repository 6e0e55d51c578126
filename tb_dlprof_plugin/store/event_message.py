"""TensorFlow's ``Event`` messages, as far as profiles need them: written by declared structs, read by places of fields.

The bytes equal what protobuf makes of ``tensorflow/core/util/event.proto``. Reading copies no blob.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from tb_dlprof_plugin.model.column import FieldNumber
from tb_dlprof_plugin.store.allowance import Allowance
from tb_dlprof_plugin.store.message import message_of
from tb_dlprof_plugin.store.wire import BYTES, VARINT, Entries, signed

_DT_STRING, _BLOB_SEQUENCE = 7, 3
_FILE_VERSION = "brain.Event:2"
_STEP, _SUMMARY = 2, 5
_TAG, _TENSOR, _METADATA = 1, 8, 9


@dataclass(frozen=True, slots=True)
class Value:
    """A blob to write, and the content of its metadata."""

    tag: str
    blob: bytes
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class ReadValue:
    """A value that was read; ``blob`` is where its first blob lies, None without one."""

    tag: str
    plugin: str
    content: bytes
    blob: slice | None


def event_of_version(wall_time: float) -> bytes:
    """The first event of a file."""
    return message_of(_VersionEvent(wall_time, _FILE_VERSION))


def event_of_profile(wall_time: float, step: int, plugin: str, values: Iterable[Value]) -> bytes:
    """An event with blobs of a plugin."""
    return message_of(_SummaryEvent(wall_time, step, _Summary([_written(plugin, value) for value in values])))


def step_and_values(data: bytes, begin: int, end: int) -> tuple[int, list[ReadValue]]:
    """The step of the event between two places, and its values.

    Raises:
        TooLarge: it has more fields than any event of ours.
        ValueError: the bytes are no event.
    """
    # However large its blobs are, a record has few fields.
    entries = Entries(data, Allowance(0))
    step, values = 0, list[ReadValue]()
    for number, wire_type, content, stop in entries.fields(begin, end):
        if (number, wire_type) == (_STEP, VARINT):
            step = signed(content)
        elif (number, wire_type) == (_SUMMARY, BYTES):
            values += [_read(entries, *place) for place in _parts(entries, content, stop, 1)]
    return step, values


def _read(entries: Entries, begin: int, end: int) -> ReadValue:
    tag = plugin = content = b""
    blobs: list[slice] = []
    for number, wire_type, start, stop in entries.fields(begin, end):
        if wire_type != BYTES:
            continue
        if number == _TAG:
            tag = bytes(entries.data[start:stop])
        elif number == _METADATA:
            for place in _parts(entries, start, stop, 1):
                for part, kind, first, last in entries.fields(*place):
                    if (part, kind) == (1, BYTES):
                        plugin = bytes(entries.data[first:last])
                    elif (part, kind) == (2, BYTES):
                        content = bytes(entries.data[first:last])
        elif number == _TENSOR:
            blobs += [slice(*place) for place in _parts(entries, start, stop, 8)]
    return ReadValue(str(tag, "utf-8"), str(plugin, "utf-8"), content, blobs[0] if blobs else None)


def _parts(entries: Entries, begin: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Where the contents of a field of messages, texts or bytes lie."""
    for number, wire_type, content, stop in entries.fields(begin, end):
        if (number, wire_type) == (wanted, BYTES):
            yield content, stop


def _written(plugin: str, value: Value) -> _Value:
    metadata = _Metadata(_PluginData(plugin, value.content), value.tag, _BLOB_SEQUENCE)
    # Rank 1: the Python loader answers 500 for a scalar blob.
    return _Value(value.tag, _Tensor(_DT_STRING, _Shape([_Dim(1)]), [value.blob]), metadata)


@dataclass(frozen=True, slots=True)
class _Dim:
    size: int


@dataclass(frozen=True, slots=True)
class _Shape:
    dim: Annotated[list[_Dim], FieldNumber(2)]


@dataclass(frozen=True, slots=True)
class _Tensor:
    dtype: int
    shape: _Shape
    string_val: Annotated[list[bytes], FieldNumber(8)]


@dataclass(frozen=True, slots=True)
class _PluginData:
    plugin_name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class _Metadata:
    plugin_data: _PluginData
    display_name: str
    data_class: Annotated[int, FieldNumber(4)]


@dataclass(frozen=True, slots=True)
class _Value:
    tag: str
    tensor: Annotated[_Tensor, FieldNumber(_TENSOR)]
    metadata: Annotated[_Metadata, FieldNumber(_METADATA)]


@dataclass(frozen=True, slots=True)
class _Summary:
    value: list[_Value]


@dataclass(frozen=True, slots=True)
class _VersionEvent:
    wall_time: float
    file_version: Annotated[str, FieldNumber(3)]


@dataclass(frozen=True, slots=True)
class _SummaryEvent:
    wall_time: float
    step: int
    summary: Annotated[_Summary, FieldNumber(_SUMMARY)]
