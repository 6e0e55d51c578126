"""Profile to protobuf and back; the blob in the event file is the gzip'd message.

Starts are delta coded per table, because differences are small where timestamps are not.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
from typing import Any, TypeVar

import msgspec
import numpy as np
from google.protobuf.message import DecodeError, Message

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.process_groups import ProcessGroup, members_of_runs, regular_runs
from tb_dlprof_plugin.model.profile import (
    SCHEMA_VERSION,
    TIME_CATEGORIES,
    CallPlaces,
    Calls,
    Communications,
    Ints,
    Iterations,
    KernelCounters,
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
    TensorActivity,
)
from tb_dlprof_plugin.model.run_facts import (
    ClockLimit,
    DataLoaderFacts,
    DdpFacts,
    FsdpFacts,
    GarbageCollection,
    Gpu,
    GpuEnergy,
    LossScale,
    RunFacts,
    Storages,
    System,
)
from tb_dlprof_plugin.model.shapes import InputShapes
from tb_dlprof_plugin.model.trial_result import TrialResult, decode_trial, encode_trial
from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.store import dlprof_pb2 as pb
from tb_dlprof_plugin.store.allowance import GZIP, Allowance, TooLarge, largest_unpacked
from tb_dlprof_plugin.store.input_codec import (
    decode_dtypes,
    decode_shapes,
    dtypes_of_schema_1,
    encode_dtypes,
    encode_shapes,
    shapes_of_schema_1,
)
from tb_dlprof_plugin.store.possible_facts import is_possible
from tb_dlprof_plugin.store.validation import TABLES, check_lengths, check_profile, running
from tb_dlprof_plugin.store.wire import Table, WireMessage, split_message

_TRIAL_BYTES = 20
"""Of memory for each byte of a trial's JSON, at most: rows that hold a name alone."""
_S = TypeVar("_S", bound=msgspec.Struct)
_STRUCTS: dict[str, type[msgspec.Struct]] = {
    kind.__name__: kind
    for kind in (
        ClockLimit,
        DataLoaderFacts,
        DdpFacts,
        FsdpFacts,
        GarbageCollection,
        Gpu,
        GpuEnergy,
        LossScale,
        Storages,
    )
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
        tensor_activity=_encode_activity(profile.tensor_activity),
        input_shapes=encode_shapes(profile.input_shapes),
        input_dtypes=encode_dtypes(profile.input_dtypes),
        kernel_counters=pb.KernelCounters(
            **{name: getattr(profile.kernel_counters, name).ravel().tolist() for name in KernelCounters.__slots__}
        ),
        notes=[pb.Note(code=n.code, text=n.text, count=n.count or 0) for n in profile.notes],
        communications=_encode_communications(profile.communications),
        process_groups=[
            pb.ProcessGroup(name=g.name, description=g.description, member_runs=regular_runs(g.members))
            for g in profile.process_groups
        ],
    )
    _fill(message.system, profile.system)
    _fill(message.facts, profile.facts)
    if profile.trial is not None:
        message.trial = encode_trial(profile.trial)
    return _packed(message.SerializeToString())


def decode(blob: bytes) -> Profile:
    """The profile of a blob.

    Raises:
        ProfileError: the blob is damaged, or was written by a newer version.
    """
    allowance = Allowance(len(blob))
    try:
        wire = split_message(allowance.unpack(blob, GZIP), pb.Profile.DESCRIPTOR, TABLES, allowance)
        message = pb.Profile.FromString(wire.rest)
    except TooLarge as error:
        raise _too_large(error) from None
    except (DecodeError, ValueError) as error:
        raise _damaged(error) from None
    if message.schema_version > SCHEMA_VERSION:
        raise ProfileError(
            f"the stored profile has format {message.schema_version}, this version reads up to {SCHEMA_VERSION}; "
            "upgrade with `pip install -U tb_dlprof_plugin`"
        )
    if message.schema_version == 0:
        raise ProfileError("the stored data is not a profile; record the run again")
    try:
        check_lengths(wire.columns, message.schema_version, allowance)
        profile = _decode_message(message, wire, allowance)
        check_profile(profile)
    except TooLarge as error:
        raise _too_large(error) from None
    except (ValueError, IndexError, OverflowError) as error:
        raise _damaged(error) from None
    return profile


def _damaged(reason: object) -> ProfileError:
    return ProfileError(f"the stored profile is damaged ({reason}); record the run again")


def _too_large(reason: TooLarge) -> ProfileError:
    return ProfileError(f"the stored profile {reason}, which none does; check where the file comes from")


def _packed(data: bytes) -> bytes:
    """The blob of a message, which `decode` lets in: what would take too much for its size is packed less."""
    for level in (6, 1):
        # mtime 0: the same profile gives the same bytes.
        blob = gzip.compress(data, compresslevel=level, mtime=0)
        if _may_hold(blob, data):
            return blob
    return gzip.compress(data, compresslevel=0, mtime=0)


def _may_hold(blob: bytes, data: bytes) -> bool:
    """Whether a blob of this size may hold the message."""
    allowance = Allowance(len(blob))
    try:
        allowance.take(len(data))
        check_lengths(split_message(data, pb.Profile.DESCRIPTOR, TABLES, allowance).columns, SCHEMA_VERSION, allowance)
    except TooLarge:
        return False
    return len(data) <= largest_unpacked(len(blob))


def _decode_message(message: Any, wire: WireMessage, allowance: Allowance) -> Profile:
    strings = list(message.strings)
    ops, input_shapes, input_dtypes = _decode_ops(message, wire, strings)
    return Profile(
        source=_decode_source(message.source),
        base_time_unix_ns=message.base_time_unix_ns,
        strings=strings,
        system=_struct(message.system, System),
        facts=_struct(message.facts, RunFacts),
        iterations=_decode_iterations(message.iterations, wire.table("iterations")),
        ops=ops,
        calls=_decode_calls(wire.table("calls")),
        kernels=Kernels(**{name: wire.column(f"kernels.{name}") for name in Kernels.__slots__}),
        launches=_decode_launches(wire.table("launches")),
        launch_configs=_decode_configs(wire.table("launch_configs")),
        notes=[Note(n.code, n.text, n.count or None) for n in message.notes],
        memory=_decode_memory(wire.table("memory")),
        call_places=_decode_places(wire.table("call_places")),
        light_window=_decode_light(wire),
        tensor_activity=_decode_activity(wire.table("tensor_activity")),
        input_shapes=input_shapes,
        input_dtypes=input_dtypes,
        communications=_decode_communications(wire.table("communications")),
        process_groups=[
            ProcessGroup(group.name, group.description, members_of_runs(group.member_runs, allowance.may_take))
            for group in message.process_groups
        ],
        kernel_counters=_decode_counters(wire.table("kernel_counters")),
        trial=_decode_trial(message.trial, allowance),
    )


def _decode_trial(data: bytes, allowance: Allowance) -> TrialResult | None:
    """The trial; None where there is none, and of one that would take too much for the blob's size."""
    return decode_trial(data) if allowance.may_take(_TRIAL_BYTES * len(data)) else None


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


def _decode_iterations(message: Any, table: Table) -> Iterations:
    number, gpu_ids = table("number"), tuple(table("gpu_ids").tolist())
    return Iterations(
        number=number,
        start_ns=table("start_ns"),
        stop_ns=table("stop_ns"),
        host_start_ns=table("host_start_ns"),
        host_stop_ns=table("host_stop_ns"),
        category_ns=table("category_ns").reshape(len(number), max(1, len(gpu_ids)), len(TIME_CATEGORIES)),
        gpu_ids=gpu_ids,
        found_by=message.found_by,
        unrecorded_categories=tuple(TIME_CATEGORIES[i] for i in table("unrecorded_categories").tolist()),
    )


def _encode_ops(ops: Ops) -> Any:
    columns = {_OPS_FIELDS.get(name, name): getattr(ops, name).tolist() for name in Ops.__slots__}
    return pb.Ops(**columns)


def _decode_ops(
    message: Any, wire: WireMessage, strings: list[str]
) -> tuple[Ops, list[InputShapes], list[InputDtypes]]:
    """The ops, and the tables of their inputs."""
    table = wire.table("ops")
    renamed = _OPS_FIELDS if message.schema_version > 1 else {}
    columns = {name: table(renamed.get(name, name)) for name in Ops.__slots__}
    columns |= {name: columns[name].astype(np.bool_) for name in ("top", "continuation")}
    if message.schema_version > 1:
        input_shapes = decode_shapes(wire.table("input_shapes"))
        return Ops(**columns), input_shapes, decode_dtypes(message.input_dtypes, wire.table("input_dtypes"))
    columns["shapes"], input_shapes = shapes_of_schema_1(columns["shapes"], strings)
    columns["dtypes"], input_dtypes = dtypes_of_schema_1(columns["dtypes"], strings)
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


def _decode_calls(table: Table) -> Calls:
    op, runs = table("op"), table("thread_calls")
    # Before anything is repeated.
    if (runs < 0).any() or int(runs.sum(dtype=np.float64)) != len(op):
        raise ValueError("the threads' numbers of calls do not add up to the calls")
    return Calls(
        op=op,
        start_ns=running(table("start_ns_delta")),
        duration_ns=table("duration_ns"),
        depth=table("depth"),
        thread=np.repeat(table("thread"), runs),
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


def _decode_launches(table: Table) -> Launches:
    return Launches(
        kernel=table("kernel"),
        call=running(table("call_delta")) - 1,
        start_ns=running(table("start_ns_delta")),
        duration_ns=table("duration_ns"),
        device=table("device"),
        stream=table("stream") - 1,
        config=table("config"),
        bytes=table("bytes_plus_one") - 1,
        attribution=table("attribution"),
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


def _decode_memory(table: Table) -> Memory:
    return Memory(
        time_ns=running(table("time_ns_delta")),
        bytes=table("bytes"),
        allocated=running(table("allocated_delta")),
        reserved=running(table("reserved_delta")),
        device=table("device"),
        call=running(table("call_delta")) - 1,
        partner=running(table("partner_delta")) - 1,
    )


def _decode_places(table: Table) -> CallPlaces:
    return CallPlaces(call=running(table("call_delta")), place=table("place"))


def _encode_activity(activity: TensorActivity) -> Any:
    return pb.TensorActivity(
        metric=activity.metric.tolist(),
        iteration_plus_one=(activity.iteration + 1).tolist(),
        kernel_plus_one=(activity.kernel + 1).tolist(),
        active_ppm=activity.active_ppm.tolist(),
        measured_ns=activity.measured_ns.tolist(),
    )


def _decode_activity(table: Table) -> TensorActivity:
    return TensorActivity(
        metric=table("metric"),
        iteration=table("iteration_plus_one") - 1,
        kernel=table("kernel_plus_one") - 1,
        active_ppm=table("active_ppm"),
        measured_ns=table("measured_ns"),
    )


def _encode_communications(table: Communications) -> Any:
    return pb.Communications(
        call_delta=_deltas(table.call + 1),
        launch_delta=_deltas(table.launch + 1),
        name=table.name.tolist(),
        group_plus_one=(table.group + 1).tolist(),
        sequence_delta=_deltas(table.sequence + 1),
        elements_in_plus_one=(table.elements_in + 1).tolist(),
        elements_out_plus_one=(table.elements_out + 1).tolist(),
        dtype=table.dtype.tolist(),
        peer_plus_one=(table.peer + 1).tolist(),
    )


def _decode_communications(table: Table) -> Communications:
    return Communications(
        call=running(table("call_delta")) - 1,
        launch=running(table("launch_delta")) - 1,
        name=table("name"),
        group=table("group_plus_one") - 1,
        sequence=running(table("sequence_delta")) - 1,
        elements_in=table("elements_in_plus_one") - 1,
        elements_out=table("elements_out_plus_one") - 1,
        dtype=table("dtype"),
        peer=table("peer_plus_one") - 1,
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


def _decode_light(wire: WireMessage) -> LightWindow:
    window, calls, launches = map(wire.table, ("light_window", "light_window.calls", "light_window.launches"))
    return LightWindow(
        boundary_ns=running(window("boundary_ns_delta")),
        iteration=window("iteration_plus_one") - 1,
        calls=LightCalls(
            name=calls("name"),
            start_ns=running(calls("start_ns_delta")),
            duration_ns=calls("duration_ns"),
            thread=calls("thread"),
            call=running(calls("call_delta")) - 1,
        ),
        launches=LightLaunches(
            call=running(launches("call_delta")) - 1,
            start_ns=running(launches("start_ns_delta")),
            duration_ns=launches("duration_ns"),
            device=launches("device"),
            stream=launches("stream") - 1,
            launch=running(launches("launch_delta")) - 1,
        ),
    )


def _decode_configs(table: Table) -> LaunchConfigs:
    return LaunchConfigs(
        grid=table("grid").reshape(-1, 3),
        block=table("block").reshape(-1, 3),
        registers_per_thread=table("registers_per_thread"),
        shared_memory_bytes=table("shared_memory_bytes"),
        occupancy_percent=table("occupancy_percent"),
    )


def _decode_counters(table: Table) -> KernelCounters:
    columns = {name: table(name) for name in KernelCounters.__slots__}
    return KernelCounters(**columns | {name: columns[name].reshape(-1, 3) for name in ("grid", "block")})


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
    """The struct of a message; what a field cannot be is left out, and a row of a list where its struct needs it.

    Raises:
        ValueError: the struct needs a field that cannot be what it is.
    """
    values: dict[str, Any] = {}
    for descriptor in message.DESCRIPTOR.fields:
        value = getattr(message, descriptor.name)
        if isinstance(value, (str, int, float, bool)):
            recorded = not descriptor.has_presence or message.HasField(descriptor.name)
            if recorded and is_possible(descriptor.name, value):
                values[descriptor.name] = value
        elif isinstance(value, Message):
            if message.HasField(descriptor.name):
                values[descriptor.name] = _struct(value, _STRUCTS[value.DESCRIPTOR.name])
        elif descriptor.message_type is not None:
            values[descriptor.name] = _possible_rows(value, _STRUCTS[descriptor.message_type.name])
        else:
            values[descriptor.name] = [one for one in value if is_possible(descriptor.name, one)]
    for name in _required(kind):
        if name not in values:
            raise ValueError(f"{kind.__name__}.{name} is out of its range")
    return kind(**values)


@functools.cache
def _required(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(kind) if field.required)


def _possible_rows(rows: Any, kind: type[_S]) -> list[_S]:
    found = []
    for row in rows:
        with contextlib.suppress(ValueError):
            found.append(_struct(row, kind))
    return found
