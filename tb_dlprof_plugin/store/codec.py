"""Profile to protobuf and back; the blob in the event file is the gzip'd message.

Starts are delta coded per table, because differences are small where timestamps are not.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
import numpy as np
from google.protobuf.message import DecodeError, Message

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.profile import (
    SCHEMA_VERSION,
    TIME_CATEGORIES,
    Bools,
    CallPlaces,
    Calls,
    Ints,
    Iterations,
    Kernels,
    LaunchConfigs,
    Launches,
    LightCalls,
    LightLaunches,
    LightWindow,
    Memory,
    Note,
    Ops,
    Profile,
    Source,
)
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, DdpFacts, Gpu, LossScale, RunFacts, System
from tb_dlprof_plugin.model.shapes import InputShapes
from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.store import dlprof_pb2 as pb
from tb_dlprof_plugin.store.input_codec import (
    decode_dtypes,
    decode_shapes,
    dtypes_of_schema_1,
    encode_dtypes,
    encode_shapes,
    shapes_of_schema_1,
)

_MAX_PROFILE_BYTES = 1 << 30
_S = TypeVar("_S", bound=msgspec.Struct)
_STRUCTS: dict[str, type[msgspec.Struct]] = {
    kind.__name__: kind for kind in (DataLoaderFacts, DdpFacts, Gpu, LossScale)
}
"""What a message inside another becomes, by its name."""
_OPS_FIELDS = {"shapes": "input_shapes", "dtypes": "input_dtypes"}
"""Columns of `Ops` whose fields have another name in the message."""


class ProfileError(VisibleMessage):
    """A stored profile that cannot be read; the message says why and what to do; the caller adds the run."""


def encode(profile: Profile) -> bytes:
    """The gzip'd protobuf message of a profile."""
    message = pb.Profile(
        schema_version=SCHEMA_VERSION,
        strings=profile.strings,
        base_time_unix_ns=profile.base_time_unix_ns,
        source=pb.Source(
            **{name: value for name in Source.__slots__ if (value := getattr(profile.source, name)) is not None}
        ),
        iterations=_encode_iterations(profile.iterations),
        ops=_encode_ops(profile.ops),
        calls=_encode_calls(profile.calls),
        kernels=pb.Kernels(**{name: getattr(profile.kernels, name).tolist() for name in Kernels.__slots__}),
        launches=_encode_launches(profile.launches),
        launch_configs=pb.LaunchConfigs(
            **{name: getattr(profile.launch_configs, name).ravel().tolist() for name in LaunchConfigs.__slots__}
        ),
        memory=_encode_memory(profile.memory),
        call_places=pb.CallPlaces(
            call_delta=_deltas(profile.call_places.call), place=profile.call_places.place.tolist()
        ),
        light_window=_encode_light(profile.light_window),
        input_shapes=encode_shapes(profile.input_shapes),
        input_dtypes=encode_dtypes(profile.input_dtypes),
        notes=[pb.Note(code=n.code, text=n.text, count=n.count or 0) for n in profile.notes],
    )
    _fill(message.system, profile.system)
    _fill(message.facts, profile.facts)
    # mtime 0: the same profile gives the same bytes.
    return gzip.compress(message.SerializeToString(), compresslevel=6, mtime=0)


def decode(blob: bytes) -> Profile:
    """The profile of a blob.

    Raises:
        ProfileError: the blob is damaged, or was written by a newer version.
    """
    try:
        decompressor = zlib.decompressobj(wbits=31)
        data = decompressor.decompress(blob, _MAX_PROFILE_BYTES)
        if decompressor.unconsumed_tail or not decompressor.eof:
            raise ProfileError("the stored profile is cut short or too large; record the run again")
        message = pb.Profile.FromString(data)
    except (zlib.error, DecodeError) as error:
        raise ProfileError(f"the stored profile is damaged ({error}); record the run again") from None
    if message.schema_version > SCHEMA_VERSION:
        raise ProfileError(
            f"the stored profile has format {message.schema_version}, this version reads up to {SCHEMA_VERSION}; "
            "upgrade with `pip install -U tb_dlprof_plugin`"
        )
    if message.schema_version == 0:
        raise ProfileError("the stored data is not a profile; record the run again")
    try:
        profile = _decode_message(message)
        _check_columns(profile)
    except (ValueError, IndexError, OverflowError) as error:
        raise ProfileError(f"the stored profile is damaged ({error}); record the run again") from None
    return profile


def _check_columns(profile: Profile) -> None:
    """Raises ValueError where the columns of a table differ in length: its rows would mean nothing."""
    for table in (
        profile.iterations, profile.ops, profile.calls, profile.kernels, profile.launches, profile.launch_configs,
        profile.memory, profile.call_places, profile.light_window.calls, profile.light_window.launches,
    ):  # fmt: skip
        columns = [getattr(table, name) for name in type(table).__slots__]
        if len({len(column) for column in columns if isinstance(column, np.ndarray)}) > 1:
            raise ValueError(f"the columns of {type(table).__name__} differ in length")
    for column, inputs in ((profile.ops.shapes, profile.input_shapes), (profile.ops.dtypes, profile.input_dtypes)):
        if column.max(initial=0) >= len(inputs):
            raise ValueError("ops have inputs that are not in the table")
    light = profile.light_window
    if len(light) and len(light.boundary_ns) != len(light) + 1:
        raise ValueError("the light window's steps and their boundaries differ in number")


def _decode_message(message: Any) -> Profile:
    strings = list(message.strings)
    ops, input_shapes, input_dtypes = _decode_ops(message, strings)
    return Profile(
        source=_decode_source(message.source),
        base_time_unix_ns=message.base_time_unix_ns,
        strings=strings,
        system=_struct(message.system, System),
        facts=_struct(message.facts, RunFacts),
        iterations=_decode_iterations(message.iterations),
        ops=ops,
        calls=_decode_calls(message.calls),
        kernels=Kernels(**{name: _ints(getattr(message.kernels, name)) for name in Kernels.__slots__}),
        launches=_decode_launches(message.launches),
        launch_configs=_decode_configs(message.launch_configs),
        notes=[Note(n.code, n.text, n.count or None) for n in message.notes],
        memory=_decode_memory(message.memory),
        call_places=CallPlaces(
            call=np.cumsum(_ints(message.call_places.call_delta)), place=_ints(message.call_places.place)
        ),
        light_window=_decode_light(message.light_window),
        input_shapes=input_shapes,
        input_dtypes=input_dtypes,
    )


def _decode_source(message: Any) -> Source:
    optional = ("trace_events", "repaired_events", "format", "framework")
    always = {name: getattr(message, name) for name in Source.__slots__ if name not in optional}
    return Source(**always, **{name: getattr(message, name) for name in optional if message.HasField(name)})


def _encode_iterations(iterations: Iterations) -> Any:
    return pb.Iterations(
        number=iterations.number.tolist(),
        start_ns=iterations.start_ns.tolist(),
        stop_ns=iterations.stop_ns.tolist(),
        host_start_ns=iterations.host_start_ns.tolist(),
        host_stop_ns=iterations.host_stop_ns.tolist(),
        category_ns=iterations.category_ns.ravel().tolist(),
        gpu_ids=iterations.gpu_ids,
        found_by=iterations.found_by,
        unrecorded_categories=[TIME_CATEGORIES.index(name) for name in iterations.unrecorded_categories],
    )


def _decode_iterations(message: Any) -> Iterations:
    count = len(message.number)
    gpus = max(1, len(message.gpu_ids))
    return Iterations(
        number=_ints(message.number),
        start_ns=_ints(message.start_ns),
        stop_ns=_ints(message.stop_ns),
        host_start_ns=_ints(message.host_start_ns),
        host_stop_ns=_ints(message.host_stop_ns),
        category_ns=_ints(message.category_ns).reshape(count, gpus, len(TIME_CATEGORIES)),
        gpu_ids=tuple(message.gpu_ids),
        found_by=message.found_by,
        unrecorded_categories=tuple(TIME_CATEGORIES[i] for i in message.unrecorded_categories),
    )


def _encode_ops(ops: Ops) -> Any:
    columns = {_OPS_FIELDS.get(name, name): getattr(ops, name).tolist() for name in Ops.__slots__}
    return pb.Ops(**columns)


def _decode_ops(message: Any, strings: list[str]) -> tuple[Ops, list[InputShapes], list[InputDtypes]]:
    """The ops, and the tables of their inputs."""
    flags, ops = ("top", "continuation"), message.ops
    columns: dict[str, Any] = {name: _bools(getattr(ops, name)) for name in flags}
    columns |= {name: _ints(getattr(ops, _OPS_FIELDS.get(name, name))) for name in Ops.__slots__ if name not in flags}
    if message.schema_version > 1:
        return Ops(**columns), decode_shapes(message.input_shapes), decode_dtypes(message.input_dtypes)
    columns["shapes"], input_shapes = shapes_of_schema_1(_ints(ops.shapes), strings)
    columns["dtypes"], input_dtypes = dtypes_of_schema_1(_ints(ops.dtypes), strings)
    return Ops(**columns), input_shapes, input_dtypes


def _encode_calls(calls: Calls) -> Any:
    starts = np.flatnonzero(np.diff(calls.thread, prepend=-1))
    return pb.Calls(
        op=calls.op.tolist(),
        start_ns_delta=_deltas(calls.start_ns),
        duration_ns=calls.duration_ns.tolist(),
        depth=calls.depth.tolist(),
        thread=calls.thread[starts].tolist(),
        thread_calls=np.diff(np.append(starts, len(calls))).tolist(),
    )


def _decode_calls(message: Any) -> Calls:
    return Calls(
        op=_ints(message.op),
        start_ns=np.cumsum(_ints(message.start_ns_delta)),
        duration_ns=_ints(message.duration_ns),
        depth=_ints(message.depth),
        thread=np.repeat(_ints(message.thread), _ints(message.thread_calls)),
    )


def _encode_launches(launches: Launches) -> Any:
    return pb.Launches(
        kernel=launches.kernel.tolist(),
        call_delta=_deltas(launches.call + 1),
        start_ns_delta=_deltas(launches.start_ns),
        duration_ns=launches.duration_ns.tolist(),
        device=launches.device.tolist(),
        stream=(launches.stream + 1).tolist(),
        config=launches.config.tolist(),
        bytes_plus_one=(launches.bytes + 1).tolist(),
        attribution=launches.attribution.tolist(),
    )


def _decode_launches(message: Any) -> Launches:
    return Launches(
        kernel=_ints(message.kernel),
        call=np.cumsum(_ints(message.call_delta)) - 1,
        start_ns=np.cumsum(_ints(message.start_ns_delta)),
        duration_ns=_ints(message.duration_ns),
        device=_ints(message.device),
        stream=_ints(message.stream) - 1,
        config=_ints(message.config),
        bytes=_ints(message.bytes_plus_one) - 1,
        attribution=_ints(message.attribution),
    )


def _encode_memory(memory: Memory) -> Any:
    return pb.Memory(
        time_ns_delta=_deltas(memory.time_ns),
        bytes=memory.bytes.tolist(),
        allocated_delta=_deltas(memory.allocated),
        reserved_delta=_deltas(memory.reserved),
        device=memory.device.tolist(),
        call_delta=_deltas(memory.call + 1),
        partner_delta=_deltas(memory.partner + 1),
    )


def _decode_memory(message: Any) -> Memory:
    return Memory(
        time_ns=np.cumsum(_ints(message.time_ns_delta)),
        bytes=_ints(message.bytes),
        allocated=np.cumsum(_ints(message.allocated_delta)),
        reserved=np.cumsum(_ints(message.reserved_delta)),
        device=_ints(message.device),
        call=np.cumsum(_ints(message.call_delta)) - 1,
        partner=np.cumsum(_ints(message.partner_delta)) - 1,
    )


def _encode_light(light: LightWindow) -> Any:
    calls, launches = light.calls, light.launches
    return pb.LightWindow(
        boundary_ns_delta=_deltas(light.boundary_ns),
        iteration_plus_one=(light.iteration + 1).tolist(),
        calls=pb.LightCalls(
            name=calls.name.tolist(),
            start_ns_delta=_deltas(calls.start_ns),
            duration_ns=calls.duration_ns.tolist(),
            thread=calls.thread.tolist(),
            call_delta=_deltas(calls.call + 1),
        ),
        launches=pb.LightLaunches(
            call_delta=_deltas(launches.call + 1),
            start_ns_delta=_deltas(launches.start_ns),
            duration_ns=launches.duration_ns.tolist(),
            device=launches.device.tolist(),
            stream=(launches.stream + 1).tolist(),
            launch_delta=_deltas(launches.launch + 1),
        ),
    )


def _decode_light(message: Any) -> LightWindow:
    calls, launches = message.calls, message.launches
    return LightWindow(
        boundary_ns=np.cumsum(_ints(message.boundary_ns_delta)),
        iteration=_ints(message.iteration_plus_one) - 1,
        calls=LightCalls(
            name=_ints(calls.name),
            start_ns=np.cumsum(_ints(calls.start_ns_delta)),
            duration_ns=_ints(calls.duration_ns),
            thread=_ints(calls.thread),
            call=np.cumsum(_ints(calls.call_delta)) - 1,
        ),
        launches=LightLaunches(
            call=np.cumsum(_ints(launches.call_delta)) - 1,
            start_ns=np.cumsum(_ints(launches.start_ns_delta)),
            duration_ns=_ints(launches.duration_ns),
            device=_ints(launches.device),
            stream=_ints(launches.stream) - 1,
            launch=np.cumsum(_ints(launches.launch_delta)) - 1,
        ),
    )


def _decode_configs(message: Any) -> LaunchConfigs:
    return LaunchConfigs(
        grid=_ints(message.grid).reshape(-1, 3),
        block=_ints(message.block).reshape(-1, 3),
        registers_per_thread=_ints(message.registers_per_thread),
        shared_memory_bytes=_ints(message.shared_memory_bytes),
        occupancy_percent=_ints(message.occupancy_percent),
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _bools(values: Iterable[bool]) -> Bools:
    return np.array(values, dtype=np.bool_)


def _deltas(values: Ints) -> list[int]:
    return np.diff(values, prepend=0).tolist()  # type: ignore[no-any-return]


def _fill(message: Message, struct: msgspec.Struct) -> None:
    """Copies a facts struct into the message of the same fields; None leaves a field absent."""
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if value is None:
            continue
        if isinstance(value, msgspec.Struct):
            sub = getattr(message, name)
            sub.SetInParent()
            _fill(sub, value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, msgspec.Struct):
                    _fill(getattr(message, name).add(), item)
                else:
                    getattr(message, name).append(item)
        else:
            setattr(message, name, value)


def _struct(message: Any, kind: type[_S]) -> _S:
    values: dict[str, Any] = {}
    for descriptor in message.DESCRIPTOR.fields:
        value = getattr(message, descriptor.name)
        if isinstance(value, (str, int, float, bool)):
            if not descriptor.has_presence or message.HasField(descriptor.name):
                values[descriptor.name] = value
        elif isinstance(value, Message):
            if message.HasField(descriptor.name):
                values[descriptor.name] = _struct(value, _STRUCTS[value.DESCRIPTOR.name])
        else:
            values[descriptor.name] = [
                _struct(v, _STRUCTS[v.DESCRIPTOR.name]) if isinstance(v, Message) else v for v in value
            ]
    return kind(**values)
