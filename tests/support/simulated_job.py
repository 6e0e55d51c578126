"""Jobs with a known truth: programs of ranks, run on streams of compute and communication, as facts of ranks.

A program is a list of actions; ranks run them in order and meet in collectives. What is planted is in the program, so
the right answer is known; noise comes from a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import (
    UNKNOWN,
    Collectives,
    Group,
    KernelTimes,
    Operation,
    RankFacts,
    StepLength,
    Steps,
)

MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Work:
    """Kernels of one kind; ``key`` is equal on ranks that run the same ones."""

    ns: float
    key: int = 1


@dataclass(frozen=True, slots=True)
class Idle:
    """The host does something else: ``why`` is "", "input" or "garbage"."""

    ns: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """A call of a group, queued on ``stream``; the rank goes on. ``call`` names it for `Wait`."""

    call: str
    members: tuple[int, ...]
    operation: Operation
    bytes: int
    transfer_ns: float
    dimension: str = "dp"
    stream: int = 7
    peer: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Wait:
    """The rank stops until the call ends."""

    call: str


Action = Work | Idle | Launch | Wait
Program = Callable[[int, int], list[Action]]


@dataclass(slots=True)
class Recorded:
    now: float = 0.0
    at: int = 0
    stream_end: dict[int, float] = field(default_factory=dict)
    work: list[tuple[float, float]] = field(default_factory=list)
    kernels: list[tuple[int, int, float]] = field(default_factory=list)
    idle: list[tuple[int, float, str]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    begins: list[float] = field(default_factory=list)


def simulate(
    ranks: int,
    program: Program,
    steps: int = 8,
    seed: int = 0,
    noise: float = 0.003,
    clock_ns: Sequence[int] = (),
    mesh: Callable[[int], tuple[tuple[str, int], ...]] = lambda rank: (),
    sequenced: bool = True,
    gpu: str = "",
) -> list[RankFacts]:
    """The facts of all ranks of a job.

    Args:
        ranks: number of ranks.
        program: of a rank and step, its actions.
        steps: recorded ones.
        seed: of the noise.
        noise: standard deviation of each action's time, relative.
        clock_ns: by how much each rank's clock is ahead.
        mesh: places of a rank.
        sequenced: whether sequence numbers are recorded.
        gpu: name of all GPUs.
    """
    rng = np.random.default_rng(seed)
    state = [Recorded() for _ in range(ranks)]
    todo: list[list[tuple[int, Action]]] = [
        [(step, action) for step in range(steps) for action in (None, *program(rank, step))]  # type: ignore[misc]
        for rank in range(ranks)
    ]
    starts: dict[tuple[int, str], dict[int, float]] = {}
    ends: dict[tuple[int, str], float] = {}
    moved = True
    while moved:
        moved = False
        for rank, one in enumerate(state):
            while one.at < len(todo[rank]):
                step, action = todo[rank][one.at]
                if action is None:
                    one.begins.append(one.now)
                elif isinstance(action, Work | Idle):
                    length = action.ns * max(1 + noise * rng.standard_normal(), 0.1)
                    if isinstance(action, Work):
                        one.work.append((one.now, one.now + length))
                        one.kernels.append((step, action.key, length))
                    else:
                        one.idle.append((step, length, action.why))
                    one.now += length
                elif isinstance(action, Launch):
                    before = _pending(one, action.stream, ends)
                    if before is None:
                        break
                    start = max(one.now, before)
                    key = (step, action.call)
                    one.calls.append({"key": key, "action": action, "start": start, "step": step})
                    starts.setdefault(key, {})[rank] = start
                    if len(starts[key]) == len(action.members):
                        ends[key] = max(starts[key].values()) + action.transfer_ns * (1 + noise * rng.random())
                else:
                    end = ends.get((step, action.call))
                    if end is None:
                        break
                    one.now = max(one.now, end)
                one.at += 1
                moved = True
    assert all(one.at == len(program) for one, program in zip(state, todo, strict=True)), "the programs do not meet"
    return [
        replace(facts_of(rank, ranks, one, ends, clock_ns[rank] if clock_ns else 0, mesh(rank), sequenced), gpu=gpu)
        for rank, one in enumerate(state)
    ]


def _pending(one: Recorded, stream: int, ends: dict[tuple[int, str], float]) -> float | None:
    """When the stream is free; None where it waits for a call whose end is not known yet."""
    for call in reversed(one.calls):
        if call["action"].stream == stream:
            return ends.get(call["key"])
    return 0.0


def _covered(intervals: Sequence[tuple[float, float]], start: float, stop: float) -> float:
    return sum(max(0.0, min(stop, end) - max(start, begin)) for begin, end in intervals if end > start and begin < stop)


def facts_of(
    rank: int,
    ranks: int,
    one: Recorded,
    ends: dict[tuple[int, str], float],
    clock: int,
    mesh: tuple[tuple[str, int], ...],
    sequenced: bool,
) -> RankFacts:
    # Whole ns, so that sums are exact.
    work = [(round(begin), round(end)) for begin, end in one.work]
    groups: list[Group] = []
    counters: dict[int, int] = {}
    rows = []
    begins = [round(value) for value in one.begins] + [round(one.now)]
    calls = sorted(one.calls, key=lambda call: (call["start"], call["action"].stream))
    before = 0
    running: list[tuple[int, int]] = []
    for call in calls:
        action = call["action"]
        group = Group("", "", action.members, action.dimension)
        if group not in groups:
            groups.append(group)
        index = groups.index(group)
        point_to_point = action.operation in (Operation.SEND, Operation.RECEIVE)
        sequence = UNKNOWN if point_to_point or not sequenced else counters.get(index, 0)
        counters[index] = counters.get(index, 0) + 1
        start, end = round(call["start"]), round(ends[call["key"]])
        since = max(before, begins[call["step"]])
        busy = round(_covered(work, since, start)) if start > since else 0
        rows.append(
            (
                call["step"],
                index,
                int(action.operation),
                sequence,
                action.bytes,
                action.peer,
                start,
                end - start,
                end - start - round(_covered(work, start, end)),
                busy,
                max(start - since, 0) - busy,
                action.stream,
            )
        )
        before = max(before, end)
        running.append((start, end))
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), 12).T
    unknown = np.full(len(rows), UNKNOWN)
    table = Collectives(
        iteration=columns[0],
        group=columns[1],
        operation=columns[2],
        sequence=columns[3],
        bytes=columns[4],
        dtype=unknown,
        peer=columns[5],
        start_ns=columns[6] + clock,
        duration_ns=columns[7],
        exposed_ns=columns[8],
        work_ns=columns[9],
        idle_ns=columns[10],
        launched_ns=unknown,
        module=unknown,
        stream=columns[11],
    )
    return RankFacts(
        rank=rank,
        world_size=ranks,
        host=f"host{rank // 8}",
        gpu="",
        device=rank % 8,
        base_ns=0,
        framework="PyTorch",
        backend="nccl",
        steps=_steps(one, begins, work, _union(running), clock),
        step_length=None,
        groups=tuple(groups),
        collectives=table,
        kernels=_kernels(one),
        mesh=mesh,
    )


def _union(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for begin, end in sorted(intervals):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((begin, end))
    return result


def _steps(
    one: Recorded, begins: list[int], work: list[tuple[int, int]], communication: list[tuple[int, int]], clock: int
) -> Steps:
    count = len(begins) - 1
    compute, exposed = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    paused = {"input": np.zeros(count, dtype=np.int64), "garbage": np.zeros(count, dtype=np.int64)}
    for step in range(count):
        start, stop = begins[step], begins[step + 1]
        compute[step] = round(_covered(work, start, stop))
        for begin, end in communication:
            begin, end = max(begin, start), min(end, stop)
            if end > begin:
                exposed[step] += end - begin - round(_covered(work, begin, end))
    for step, length, why in one.idle:
        if why:
            paused[why][step] += round(length)
    start = np.array(begins[:-1])
    stop = np.array(begins[1:])
    unknown = np.full(count, UNKNOWN)
    return Steps(
        number=np.arange(10, 10 + count),
        start_ns=start + clock,
        end_ns=stop + clock,
        compute_ns=compute,
        communication_ns=exposed,
        copy_ns=np.zeros(count, dtype=np.int64),
        idle_ns=stop - start - compute - exposed,
        input_ns=paused["input"],
        garbage_ns=paused["garbage"],
        work_hash=unknown,
        matrix_ns=unknown,
        matrix_flops=unknown,
    )


def _kernels(one: Recorded) -> KernelTimes:
    times: dict[int, list[float]] = {}
    for _, key, length in one.kernels:
        times.setdefault(key, []).append(length)
    return KernelTimes(
        key=np.array(list(times), dtype=np.int64),
        count=np.array([len(values) for values in times.values()], dtype=np.int64),
        mean_ns=np.array([round(float(np.mean(values))) for values in times.values()], dtype=np.int64),
    )


# -- programs ---------------------------------------------------------------------------------------------------------


def ddp(
    ranks: int,
    slower: dict[int, float] | None = None,
    idle: Callable[[int, int], Sequence[Idle]] = lambda rank, step: (),
    lengths: Callable[[int, int], float] = lambda rank, step: 1.0,
    extra: dict[int, float] | None = None,
) -> Program:
    """Forward, backward with four buckets that are reduced as it goes, optimizer.

    Args:
        ranks: number of ranks.
        slower: factor of a rank's kernel times, at equal kernels.
        idle: what the host of a rank does in a step before its forward pass.
        lengths: more work of other shapes, as a factor.
        extra: additional kernels of a rank (ns).
    """
    everyone = tuple(range(ranks))

    def program(rank: int, step: int) -> list[Action]:
        factor = (slower or {}).get(rank, 1.0)
        length = lengths(rank, step)
        shape = 0 if length == 1.0 else round(1000 * length)
        actions: list[Action] = [*idle(rank, step), Work(8 * MS * factor * length, 1 + 10 * shape)]
        if extra and rank in extra:
            actions.append(Work(extra[rank], 99))
        for bucket in range(4):
            actions.append(Work(4 * MS * factor * length, 2 + bucket + 10 * shape))
            actions.append(Launch(f"b{bucket}", everyone, Operation.ALL_REDUCE, 25_000_000, 0.8 * MS))
        actions += [Wait(f"b{bucket}") for bucket in range(4)]
        return [*actions, Work(1.5 * MS * factor, 7)]

    return program


def fsdp(
    ranks: int,
    slower: dict[int, float] | None = None,
    layers: int = 6,
    prefetch: bool = True,
    reshard: bool = True,
    transfer_ms: float = 1.2,
) -> Program:
    """All-gathers one layer ahead, reduce-scatters on another stream.

    Args:
        ranks: number of ranks.
        slower: factor of a rank's kernel times.
        layers: units.
        prefetch: in the forward pass; the backward pass always does.
        reshard: units are gathered again for the backward pass.
        transfer_ms: of each gather and reduction.
    """
    everyone = tuple(range(ranks))

    def gather(name: str) -> Launch:
        return Launch(name, everyone, Operation.ALL_GATHER, 50_000_000, transfer_ms * MS, "dp_shard", 9)

    def program(rank: int, step: int) -> list[Action]:
        factor = (slower or {}).get(rank, 1.0)
        actions: list[Action] = [Idle(0.2 * MS), gather("f0")]
        for layer in range(layers):
            if prefetch and layer + 1 < layers:
                actions.append(gather(f"f{layer + 1}"))
            actions += [Wait(f"f{layer}"), Work(2 * MS * factor, layer)]
            if not prefetch and layer + 1 < layers:
                actions.append(gather(f"f{layer + 1}"))
        if reshard:
            actions.append(gather(f"g{layers - 1}"))
        for layer in reversed(range(layers)):
            if reshard:
                actions += [gather(f"g{layer - 1}")] if layer else []
                actions.append(Wait(f"g{layer}"))
            actions.append(Work(4 * MS * factor, 20 + layer))
            actions.append(
                Launch(f"r{layer}", everyone, Operation.REDUCE_SCATTER, 50_000_000, transfer_ms * MS, "dp_shard", 10)
            )
        actions += [Wait(f"r{layer}") for layer in reversed(range(layers))]
        return [*actions, Work(1 * MS * factor, 50)]

    return program


def tensor_and_data(
    data: int,
    tensor: int,
    slower: dict[int, float] | None = None,
    idle: Callable[[int, int], Sequence[Idle]] = lambda rank, step: (),
    slow_group: int | None = None,
    layers: int = 8,
) -> Program:
    """All-reduces of activations within tensor groups (stride 1), of gradients across them at the end.

    ``slow_group`` is the tensor group whose transfers take four times as long.
    """

    def program(rank: int, step: int) -> list[Action]:
        own, place = divmod(rank, tensor)
        tp = tuple(range(own * tensor, (own + 1) * tensor))
        dp = tuple(range(place, data * tensor, tensor))
        factor = (slower or {}).get(rank, 1.0)
        transfer = (4 if own == slow_group else 1) * 0.3 * MS
        actions: list[Action] = [*idle(rank, step)]
        for layer in range(layers):
            actions.append(Work(2 * MS * factor, layer))
            actions.append(Launch(f"t{own}.{layer}", tp, Operation.ALL_REDUCE, 16_000_000, transfer, "tp", 7))
            actions.append(Wait(f"t{own}.{layer}"))
        actions.append(Launch(f"d{place}", dp, Operation.ALL_REDUCE, 60_000_000, 2 * MS, "dp", 8))
        return [*actions, Wait(f"d{place}"), Work(1 * MS * factor, 40)]

    return program


def pipeline_1f1b(stages: int, microbatches: int, work: Sequence[float] = (), chunk_ns: float = 2 * MS) -> Program:
    """1F1B: the backward pass takes twice the forward pass. ``work`` is each stage's factor."""

    def program(rank: int, step: int) -> list[Action]:
        factor = work[rank] if work else 1.0
        warm = min(stages - rank - 1, microbatches)
        order = [("f", i) for i in range(warm)]
        for i in range(microbatches - warm):
            order += [("f", warm + i), ("b", i)]
        order += [("b", i) for i in range(microbatches - warm, microbatches)]
        actions: list[Action] = []
        for kind, number in order:
            forward = kind == "f"
            source, target = (rank - 1, rank + 1) if forward else (rank + 1, rank - 1)
            if 0 <= source < stages:
                actions += [_p2p(kind, number, source, rank, Operation.RECEIVE), Wait(f"{kind}{number}.{source}")]
            length_ns, key = chunk_ns * (1 if forward else 2), 1 if forward else 2
            actions.append(Work(length_ns, key))
            if factor > 1:
                # More layers, which no other stage has.
                actions.append(Work(length_ns * (factor - 1), 10 + key))
            if 0 <= target < stages:
                actions.append(_p2p(kind, number, rank, target, Operation.SEND))
        return [*actions, Work(0.1 * MS, 3)]

    return program


def _p2p(kind: str, number: int, source: int, target: int, operation: Operation) -> Launch:
    send = operation == Operation.SEND
    # A stream for each direction and side, so that a send does not block a receive.
    stream = (20 if kind == "f" else 30) + (1 if send else 0)
    return Launch(
        f"{kind}{number}.{source}",
        tuple(sorted((source, target))),
        operation,
        4_000_000,
        0.02 * MS,
        "pp",
        stream,
        target if send else source,
    )


def with_step_length(facts: RankFacts, ms: float) -> RankFacts:
    """The same rank with an estimate of its step without the profiler."""
    return replace(facts, step_length=StepLength(ms, ms * 0.99, ms * 1.01, "measured"))
