"""Stored profiles for tests: a full one, and messages with other numbers."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from support.messages import pb

from tb_dlprof_plugin.model.process_groups import ProcessGroup
from tb_dlprof_plugin.model.profile import (
    CallPlaces,
    Communications,
    CompiledKernels,
    KernelCounters,
    LightCalls,
    LightLaunches,
    LightWindow,
    LoaderBatches,
    Memory,
    Profile,
    TensorActivity,
)
from tb_dlprof_plugin.model.run_facts import (
    ClockLimit,
    Compilation,
    DataLoaderFacts,
    DdpFacts,
    FsdpFacts,
    GarbageCollection,
    Gpu,
    GpuEnergy,
    GraphBreak,
    LoaderRecording,
    LossScale,
    RunFacts,
    Storages,
    System,
    TransformTime,
)
from tb_dlprof_plugin.model.trial_result import BestSet, TrialResult, TriedRemedy
from tb_dlprof_plugin.profile_view import ProfileView


def full_profile(view: ProfileView) -> Profile:
    """A view's profile with every fact set and a row in every table."""
    system = System(
        [Gpu(0, "NVIDIA H200", 9, 0, 132, 2**37), Gpu(1, "other")], "cpu", 8, "Linux", "560.1", "12.4", "9.1", "2.2",
        "2.13", "3.11", "host",
    )  # fmt: skip
    facts = RunFacts(
        "ResNet", 25_557_032, ["float32"], True, True, "float16", True, 65536.0, False, True, True, False, False,
        False, False, DataLoaderFacts(0, False, 2, False, 64, True, "Data", 782), 64, False, "DDP", 1, 8, "SGD", 2**33,
        2**34, True, "amp", True, True, 17, 10, 2, [LossScale(0, 2.0**16, 5, 14), LossScale(1, 2.0**15)], "O1",
        1_060_000, 4, True, False, ["CUDA_LAUNCH_BLOCKING=1"], DdpFacts(2**18, True, False, "fp16_compress_hook"),
        "nccl", 2**30, 2**36, 61, 2, 4096, ["head.weight"], False, 2**20, 1, "expandable_segments:True",
        [1_010_000, 1_020_000], [1_030_000], 7.5, 16, 1, 2**31, 1755, 1980, 71, ["thermal slowdown"],
        2**34, [Storages("parameter", "layer1.0", [4096, 12]), Storages("other", "", [2**25])],
        True, [GarbageCollection(1_700_000_000_000_000_000, 30_000_000, 2)],
        [GpuEnergy(0, 900_000, 2**31, 5, 700_000, 1905, 66, [ClockLimit("power cap", 3)])], "no counter",
        unstepped_gradients=4, unstepped_gradient_bytes=800, unstepped_gradient_modules=["body"],
        fsdp=FsdpFacts(2, 7, 6, True, False, ["bfloat16"], ["float32"], True, 4, 2),
        communication_settings=["NCCL_P2P_DISABLE=1"],
        compilations=[Compilation("1/1", "net.py:7 forward", 8 * 10**9, "1/0: k == 1")],
        graph_breaks=[GraphBreak("net.py:9", "print", 3)],
        loading=LoaderRecording(
            "torch._MultiProcessingDataLoaderIter", 2, 3, False, "The workers were started before.", "spawn", 2**28,
            2**27, [2**26, 2**25], 7.5, [TransformTime("Crop", 40, 10**7, 10**6)], 20, False, True, "stack", True,
        ),
    )  # fmt: skip
    places = CallPlaces(np.array([3, 7, 8]), np.array([1, 2, 1]))
    light = LightWindow(
        boundary_ns=np.array([-2_000_000, -1_000_000]),
        iteration=np.array([0]),
        calls=LightCalls(*(np.array(c) for c in ([1, 2], [-1_900_000, -1_500_000], [4_000, 5_000], [0, 0], [4, -1]))),
        launches=LightLaunches(
            *(np.array(c) for c in ([0, -1], [-1_890_000, -1_400_000], [9, 8], [0, 0], [7, -1], [3, -1]))
        ),
    )
    memory = Memory(*(np.array(c) for c in ([5, 9], [64, -64], [64, 0], [128, 128], [-1, 0], [2, -1], [1, 0])))
    communications = Communications(
        *(np.array(c) for c in ([-1, 4], [2, -1], [1, 2], [0, -1], [41, -1], [64, 7], [128, -1], [1, 0], [-1, 3]))
    )
    groups = [ProcessGroup("3", "mesh_tp", (0, 2, 4, 6)), ProcessGroup("4")]
    kernel = int(view.profile.kernels.name[0])
    counters = KernelCounters(
        *(np.array(c) for c in ([kernel, 1], [[4, 1, 1], [2, 2, 1]], [[128, 1, 1], [64, 1, 1]], [900, 70], [12, -1],
                                [412, -1], [4096, 512], [2**20, -1]))
    )  # fmt: skip
    activity = TensorActivity(*(np.array(c) for c in ([1, 1], [0, -1], [-1, 0], [250_000, 990_000], [9_000, 7])))
    compiled = CompiledKernels(
        *(np.array(c) for c in ([1, 1], [2, 3], [0, 4], [5, 0], [0, 6], [0, 2], [0, 7], [-1, 4096], [0, 8]))
    )
    rows = (np.array([row - 1, row + 5]) for row in range(26))
    batches = LoaderBatches(*rows, np.array([False, True]), np.array([7, -1]))
    return dataclasses.replace(
        view.profile,
        loader_batches=batches,
        system=system,
        facts=facts,
        call_places=places,
        light_window=light,
        memory=memory,
        communications=communications,
        process_groups=groups,
        kernel_counters=counters,
        tensor_activity=activity,
        compiled_kernels=compiled,
        ops=dataclasses.replace(view.profile.ops, compiled=np.arange(len(view.profile.ops)) % 3 - 1),
        trial=trial_result(),
    )


def trial_result() -> TrialResult:
    """A trial of three remedies, one of which gains, one fails and one need not be tried."""
    gain = {"gain_percent": 31.5, "low_percent": 30.9, "high_percent": 32.1}
    rows = [
        TriedRemedy(
            remedy="tf32",
            title="TF32 for matrix products and convolutions",
            before_ms=24.0,
            after_ms=16.44,
            is_gain=True,
            forecast_percent=29.0,
            verdict="within noise of the seed",
            verdict_text="Losses differ by at most 0.2 %, other seeds by 6 %.",
            start_s=9.5,
            baseline_start_s=8.7,
            memory_bytes=2**32,
            quads=4,
            **gain,
        ),
        TriedRemedy(remedy="compile", title="torch.compile", error="RuntimeError: no compiler was found"),
        TriedRemedy(remedy="larger_batch", title="Batch size × 2", not_tried="No DataLoader was found."),
    ]
    best = BestSet(remedies=["tf32"], patch="--- a/train.py\n+++ b/train.py\n", **gain)
    return TrialResult(
        command=["train.py", "--epochs", "3"],
        baseline_ms=24.0,
        device="NVIDIA H200",
        rows=rows,
        best=best,
        seeds_differ="Another seed changes losses by up to 6 %.",
        seconds=95.0,
        notes=["The kernel has no Landlock."],
    )


def columns(message: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every repeated number in the tables of a message: its path, the message that has it, and its descriptor."""
    for kind in message.DESCRIPTOR.fields:
        inner = f"{path}.{kind.name}" if path else kind.name
        if inner in ("source", "system", "facts", "notes", "process_groups"):
            continue
        if kind.message_type is not None:
            yield from columns(getattr(message, kind.name), inner)
        elif isinstance(getattr(message, kind.name), (int, str)):
            continue
        elif kind.cpp_type != kind.CPPTYPE_STRING:
            yield inner, message, kind


_NUMBERS = (0, 1, 2, 3, 5, 7, 2**7, 2**20, 2**31 - 1, 2**31, 2**32 - 1, 2**52, 2**62 - 1, 2**63 - 1)


def mutated(profile: Any, source: random.Random) -> Any:
    """A copy of a message with a few numbers of its tables and facts changed, most of them within what they may be."""
    message = pb.Profile.FromString(profile.SerializeToString())
    tables = [(table, kind) for _, table, kind in columns(message) if len(getattr(table, kind.name))]
    for _ in range(source.choice((1, 1, 2, 4))):
        if source.random() < 0.25:
            _change_fact(source.choice((message.facts, message.system, message.source)), source)
            continue
        table, kind = source.choice(tables)
        column = getattr(table, kind.name)
        at = source.randrange(len(column))
        other = column[source.randrange(len(column))]
        # A type that is too narrow for a number refuses it.
        with contextlib.suppress(ValueError):
            column[at] = source.choice((other, other, column[at] + 1, -column[at], source.choice(_NUMBERS)))
    return message


def _change_fact(message: Any, source: random.Random) -> None:
    kind = source.choice(list(message.DESCRIPTOR.fields))
    if kind.message_type is not None or source.random() < 0.2:
        message.ClearField(kind.name)
        return
    floats = (0.0, -1.0, 1e300, float("nan"), float("inf"), 0.5)
    values = {kind.CPPTYPE_STRING: ("", "x", "aten::mm", "NVIDIA A100-SXM4-80GB"), kind.CPPTYPE_DOUBLE: floats,
              kind.CPPTYPE_BOOL: (True, False)}.get(kind.cpp_type, _NUMBERS)  # fmt: skip
    value = source.choice(values)
    with contextlib.suppress(ValueError):
        if isinstance(getattr(message, kind.name), (int, float, str, bool)):
            setattr(message, kind.name, value)
        else:
            getattr(message, kind.name)[:] = [value] * source.choice((1, 3))


def packed(message: Any) -> bytes:
    """The blob of a message, packed as far as gzip can."""
    return gzip.compress(message.SerializeToString(), mtime=0)


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)
