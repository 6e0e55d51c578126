"""Which parallel wrapper a training uses, and with which settings: from the hook's facts, else from PyTorch's ranges.

DistributedDataParallel, DataParallel and FSDP put ranges around their work, which every recording of PyTorch's profiler
has. A setting that shows in none of them stays None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np

from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Role
from tb_dlprof_plugin.model.run_facts import DdpFacts, FsdpFacts
from tb_dlprof_plugin.model.shapes import shape_at
from tb_dlprof_plugin.model.tree import nearest, outermost
from tb_dlprof_plugin.names.parallel_ranges import (
    BUCKET_COPY,
    DATA_PARALLEL_FORWARD,
    DDP_FORWARD,
    DTENSOR_SUMS,
    FSDP1,
    FSDP2,
    GATHER,
    INTO_BUCKET,
    MICROBATCH,
    SEARCH_UNUSED,
)
from tb_dlprof_plugin.profile_view import ProfileView, per_view
from tb_dlprof_plugin.simulation.call_names import calls_named

DATA_PARALLEL = "DataParallel"
DDP = "DistributedDataParallel"
FULLY_SHARDED = ("FullyShardedDataParallel", "FSDPModule")
"""FSDP1 and FSDP2."""
_GATHER_OPS = ("c10d::_allgather_base_", "c10d::allgather_")
"""Of FSDP1, which names no unit: of NCCL and of gloo."""
_REDUCE_OPS = ("c10d::_reduce_scatter", "c10d::allreduce")
_ALL_GATHER, _ALL_REDUCE = ("_allgather_base", "all_gather"), ("allreduce", "all_reduce")
"""In the names of calls of process groups."""
_Settings = TypeVar("_Settings", DdpFacts, FsdpFacts)


@dataclass(frozen=True, slots=True)
class ParallelSettings:
    """How a training uses several GPUs. None is unknown.

    Attributes:
        wrapper: class of the outermost wrapper, "FSDPModule" for FSDP2; None where none was recorded.
        ddp: of DistributedDataParallel. fsdp: of FSDP1 and FSDP2.
        find_unused_parameters: of DistributedDataParallel.
        sums_activations: whether DTensor sums up in the forward pass, as tensor parallelism does. Exchanges of
            gradients and gathers of parameters or sequences do not.
        microbatches: of a step, by the ranges of a pipeline. chunks: stages of the model on this rank.
    """

    wrapper: str | None = None
    ddp: DdpFacts | None = None
    fsdp: FsdpFacts | None = None
    find_unused_parameters: bool | None = None
    sums_activations: bool = False
    microbatches: int | None = None
    chunks: int | None = None


@per_view
def parallel_settings(view: ProfileView) -> ParallelSettings:
    """What the hook read, and the rest as the ranges show it: the hook may be older, or have seen the inner model."""
    facts = view.profile.facts
    shown = _shown(view)
    wrapper = facts.parallel_wrapper or shown.wrapper
    if wrapper != shown.wrapper:
        shown = ParallelSettings()
    return ParallelSettings(
        wrapper,
        _completed(facts.ddp, shown.ddp),
        _completed(facts.fsdp, shown.fsdp),
        shown.find_unused_parameters if facts.find_unused_parameters is None else facts.find_unused_parameters,
        _sums_activations(view),
        *_microbatches(view),
    )


def _completed(read: _Settings | None, shown: _Settings | None) -> _Settings | None:
    """The settings that the hook read, with the others as the ranges show them."""
    if read is None or shown is None:
        return read if shown is None else shown
    missing = {name: value for name, value in msgspec.structs.asdict(shown).items() if getattr(read, name) is None}
    return msgspec.structs.replace(read, **missing)


def _shown(view: ProfileView) -> ParallelSettings:
    """By the ranges alone: of wrappers in each other the outermost."""
    names = set(_names(view))
    searches = any(SEARCH_UNUSED in name for name in names)
    # Where the model was compiled as a whole, the reducer shows all the same.
    if searches or not names.isdisjoint((DDP_FORWARD, *INTO_BUCKET)):
        return ParallelSettings(DDP, _ddp(names, searches), None, True if searches else None)
    if any(name.startswith(FSDP2) for name in names):
        return ParallelSettings(FULLY_SHARDED[1], None, _fsdp2(view))
    if any(name.startswith(FSDP1) for name in names):
        return ParallelSettings(FULLY_SHARDED[0], None, _fsdp1(view))
    return ParallelSettings(DATA_PARALLEL if DATA_PARALLEL_FORWARD in names else None)


def _microbatches(view: ProfileView) -> tuple[int | None, int | None]:
    """Their number, and that of the stages on this rank."""
    found = [match for name in _names(view) if (match := MICROBATCH.match(name))]
    numbers = {int(match["number"]) for match in found}
    # Ranges of a pipeline count from 0 without a gap.
    if len(numbers) < 2 or numbers != set(range(len(numbers))):
        return None, None
    return len(numbers), len({match["stage"] for match in found})


def _sums_activations(view: ProfileView) -> bool:
    sums = view.profile.ops_named(lambda name: name.startswith(DTENSOR_SUMS))
    if not sums.any():
        return False
    forward = take_or(view.groups.role == Role.FORWARD, view.call_group, False)
    return bool((sums[view.profile.calls.op] & forward).any())


def _names(view: ProfileView) -> list[str]:
    """Of the ops."""
    strings = view.profile.strings
    return [strings[name] for name in view.profile.ops.name.tolist()]


def _ddp(names: set[str], searches: bool) -> DdpFacts:
    """The bucket's capacity shows in no range: buckets are at least as large as it."""
    copies = any(BUCKET_COPY in name for name in names)
    exchanges = not names.isdisjoint(INTO_BUCKET)
    return DdpFacts(
        gradient_as_bucket_view=False if copies else True if exchanges else None,
        # With a static graph only the first step searches.
        static_graph=False if searches else None,
    )


def _fsdp2(view: ProfileView) -> FsdpFacts | None:
    """A unit is gathered once more in the backward pass exactly where it was resharded after the forward pass."""
    ops = view.profile.ops
    names = _names(view)
    unit_of = {op: match["unit"] or "" for op, name in enumerate(names) if (match := GATHER.match(name))}
    gathers = _calls_of(view, np.isin(np.arange(len(ops)), list(unit_of)))
    backward = _within(view, _named(view, (FSDP2 + "pre_backward", FSDP2 + "backward_prefetch")))
    forwards = int(_named(view, (FSDP2 + "root_pre_forward",)).sum())
    units = {unit_of[op] for op in view.profile.calls.op[gathers].tolist()}
    if not units or (units == {""} and int((~backward[gathers]).sum()) > max(forwards, 1)):
        # Versions of PyTorch before 2.5 name no units.
        return None
    again = {unit_of[op] for op in view.profile.calls.op[gathers[backward[gathers]]].tolist()}
    divided = _divided(view, gathers, _within(view, _named(view, (FSDP2 + "post_backward_reduce",))))
    return FsdpFacts(
        version=2,
        units=len(units),
        resharded_units=len(again) if backward.any() else None,
        backward_prefetch=True,
        forward_prefetch=bool(_named(view, (FSDP2 + "forward_prefetch",)).any()),
        shard_ranks=divided[0],
        replicas=divided[1],
    )


def _fsdp1(view: ProfileView) -> FsdpFacts | None:
    """By how many gathers lie in the ranges of a pass; None where passes have different numbers of them."""
    is_op = np.array([name in _GATHER_OPS for name in _names(view)], dtype=np.bool_)
    parts = [f"{FSDP1}{part}" for part in ("_pre_backward", "_post_backward")]
    backward = _within(view, _named(view, parts))
    forward = _named(view, (FSDP1 + "forward",)) | _named(view, (FSDP1 + "_root_pre_forward",))
    gathers = _calls_of(view, is_op)
    first = gathers[_within(view, forward)[gathers] & ~backward[gathers]]
    again = gathers[backward[gathers]]
    of_model = outermost(_named(view, (FSDP1 + "forward",)), view.call_parent)
    passes = len(np.unique(of_model[of_model >= 0]))
    if not passes or not len(first) or len(first) % passes or len(again) % passes:
        return None
    early = [_within(view, _named(view, [f"{FSDP1}{part}_prefetch" for part in names])) for names in _PREFETCHES]
    resharded = len(again) // passes
    divided = _divided(view, gathers, _within(view, _named(view, (FSDP1 + "_post_backward",))))
    return FsdpFacts(
        version=1,
        units=len(first) // passes,
        resharded_units=resharded if backward.any() else None,
        # What is not gathered again needs no prefetching.
        backward_prefetch=bool(early[1][again].any()) if resharded > 1 else None,
        forward_prefetch=bool(early[0][first].any()) if len(first) > passes else None,
        shard_ranks=divided[0],
        replicas=divided[1],
    )


_PREFETCHES = (("_pre_forward",), ("_pre_backward", "_post_backward"))


def _divided(view: ProfileView, gathers: Ints, reducing: Bools) -> tuple[int | None, int | None]:
    """Ranks among which the model is divided, and how many such groups have a copy: an all-reduce follows then."""
    several = [len(group.members) for group in view.profile.process_groups if len(group.members) > 1]
    if len(several) == 1:
        # One group leaves no choice.
        return several[0], 1
    table = view.profile.communications
    gathering = np.zeros(len(view.profile.calls), dtype=np.bool_)
    gathering[gathers] = True
    gathering = _within(view, gathering)
    call = np.where(table.call >= 0, table.call, take_or(view.profile.launches.call, table.launch, -1))
    names = np.array([view.profile.strings[name].lower() for name in table.name.tolist()])
    shard = _members(view, take_or(gathering, call, False) & _with_words(names, _ALL_GATHER))
    shard = _of_buffers(view, gathering) if shard is None else shard
    reduces = _calls_of(view, view.profile.ops_named(lambda name: name.startswith(_REDUCE_OPS)))
    reduces = reduces[reducing[reduces]]
    if not len(reduces):
        return shard, None
    copies = take_or(reducing, call, False) & _with_words(names, _ALL_REDUCE)
    if copies.any():
        return shard, _members(view, copies)
    again = view.profile.ops_named(lambda name: name.startswith(_REDUCE_OPS[1]))
    return shard, None if again[view.profile.calls.op[reduces]].any() else 1


def _of_buffers(view: ProfileView, gathering: Bools) -> int | None:
    """Ranks by what a gather fills over what it takes from each; None where shapes were not recorded, or differ."""
    is_gather = view.profile.ops_named(lambda name: name == _GATHER_OPS[0])
    found = set()
    for op in np.unique(view.profile.calls.op[gathering & is_gather[view.profile.calls.op]]).tolist():
        filled, taken = (math.prod(shape_at(view.profile.shapes_of(op), place) or (0,)) for place in (0, 1))
        found.add(filled // taken if taken and filled % taken == 0 else 0)
    return found.pop() if len(found) == 1 and 0 not in found else None


def _members(view: ProfileView, rows: Bools) -> int | None:
    """Of the largest group of these rows of `Profile.communications`; None where one is not known."""
    groups = {int(group) for group in view.profile.communications.group[rows].tolist()}
    sizes = [len(view.profile.process_groups[group].members) if group >= 0 else 0 for group in groups]
    return max(sizes) if sizes and min(sizes) > 0 else None


def _with_words(names: np.ndarray, words: tuple[str, ...]) -> Bools:  # type: ignore[type-arg]
    return np.array([any(word in name for word in words) for name in names.tolist()], dtype=np.bool_)


def _named(view: ProfileView, beginnings: Sequence[str]) -> Bools:
    """Which calls are ranges whose names begin so."""
    return calls_named(view, CallKind.ANNOTATION, lambda name: name.startswith(tuple(beginnings)))


def _within(view: ProfileView, chosen: Bools) -> Bools:
    """Which calls are one of these, or lie in one."""
    return nearest(chosen, view.call_parent) >= 0


def _calls_of(view: ProfileView, ops: Bools) -> Ints:
    """Rows of the calls of these ops."""
    return np.flatnonzero(ops[view.profile.calls.op])
