"""Copies between CPU and GPU, each assigned to one rule.

A copy may have several faults: 300 small blocking copies from pageable memory have three. Each is assigned to the fault
whose fix helps most, so that no two rules count the same time: unnecessary, then many and small, then pageable, then
slow, then blocking; the rest has no fault, but may still overlap with computing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Floats, Ints, KernelKind, Role
from tb_dlprof_plugin.model.shapes import first_tensor
from tb_dlprof_plugin.model.tree import any_in_subtree, inherit
from tb_dlprof_plugin.names.ops import COPY, PROFILER_STEP
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.call_names import calls_named, launching_calls
from tb_dlprof_plugin.simulation.synchronisation import SyncKind, sync_kinds

SMALL_COPY_BYTES = 65_536
"""A copy of less takes as long as its call: at 55 GB/s 64 KiB take 1.2 us, a call 3 to 10 us. CUDA copies up to 64 KiB
without waiting for the same reason ("API synchronization behavior" in the CUDA Runtime API's reference). The Visual
Profiler's "Inefficient Memcpy Size" publishes no size."""

SMALL_COPIES_PER_STEP = 20
"""Ours: fewer cannot cost a notable part of a step."""

LARGE_COPY_BYTES = 1_048_576
"""Copies of at least this size reach the link's rate: 256 KiB took 8.8 us on an H200, half of it before the first byte
(tests/traces/copies.pt.trace.json.gz)."""

SLOW_COPY_SHARE = 0.5
"""A large copy below this share of what the link carries is slow. The Visual Profiler's "Low Memcpy Throughput"
publishes no threshold."""

PINNED_BYTES_PER_SECOND = {7: 12e9, 8: 25e9, 9: 55e9, 10: 55e9, 12: 55e9}
"""Of copies between pinned memory and a GPU, by major compute capability: PCIe 3.0, 4.0 and 5.0 with 16 lanes carry
15.8, 31.5 and 63.0 GB/s, of which copies reach about four fifths. Measured on an H200: 55.5 GB/s
(tests/data/precision_pairs)."""

_COPY_OPS = (COPY, "aten::_copy_from", "aten::_pin_memory")
_ASKED_FOR = (*_COPY_OPS, "aten::to", "aten::_to_copy", "aten::pin_memory", "aten::contiguous", "aten::clone")
"""Outermost ops that copy because they were asked to; other ops copy to find something out."""
_CREATING = frozenset(
    f"aten::{name}{ending}"
    for name in (
        *("zeros", "ones", "full", "rand", "randn", "randint", "empty", "normal", "bernoulli", "fill", "zero"),
        *("uniform", "random", "exponential", "arange", "linspace", "logspace", "eye", "randperm", "tril", "triu"),
        *("tril_indices", "triu_indices", "scalar_tensor", "one_hot", "detach"),
    )
    for ending in ("", "_", "_like")
) - {"aten::detach", "aten::empty"}
"""Ops that create a tensor; ``detach_`` ends ``torch.tensor(values)``."""
_FROM_VALUES = "aten::lift_fresh"
"""What follows inside ``torch.tensor(values, device=...)`` when the copy is done."""
_FOLLOWS_WITHIN_NS = 1_000_000
GIGABYTE = 1e9


class Fault(IntEnum):
    """The fault of a copy; `NONE` for one without a fault."""

    NONE = 0
    READ = 1
    """Inside an op that reads a value, such as ``.item()`` or ``bincount``, which other rules cover; or made by DDP."""
    EXTRA = 2
    SMALL = 3
    PAGEABLE = 4
    SLOW = 5
    BLOCKING = 6


@dataclass(frozen=True, slots=True)
class HostDeviceCopies:
    """One row per copy between CPU and GPU in the selected iterations; -1 where unknown or none.

    Attributes:
        launch: row of `Profile.launches`.
        call: row of the call that made it.
        top: row of the outermost op around it, the call itself outside every op.
        wait: row of the call at which the CPU waits for it, which may be ``call``.
        source: row of the op that created its data on the CPU just before.
        to_gpu: from the CPU to the GPU.
        pageable: from or to pageable memory.
        bytes: copied.
        duration_ns: on the GPU.
        fault: the `Fault`.
    """

    launch: Ints
    call: Ints
    top: Ints
    wait: Ints
    source: Ints
    to_gpu: Bools
    pageable: Bools
    bytes: Ints
    duration_ns: Ints
    fault: Ints

    def __len__(self) -> int:
        return len(self.launch)

    def of(self, fault: Fault) -> HostDeviceCopies:
        """The copies with this fault."""
        return self.where(self.fault == fault)

    def where(self, rows: Bools) -> HostDeviceCopies:
        """The chosen copies."""
        return HostDeviceCopies(*(getattr(self, name)[rows] for name in HostDeviceCopies.__slots__))

    def launches(self, context: RuleContext) -> Bools:
        """As a mask over `Profile.launches`."""
        mask = np.zeros(len(context.profile.launches), dtype=np.bool_)
        mask[self.launch] = True
        return mask

    def waits(self, context: RuleContext) -> Bools:
        """The calls that wait for them, as a mask over `Profile.calls`."""
        return rows_of_calls(context, self.wait)

    def tops(self, context: RuleContext) -> Bools:
        """The outermost ops around them, as a mask over `Profile.calls`."""
        return rows_of_calls(context, self.top)


def rows_of_calls(context: RuleContext, rows: Ints) -> Bools:
    """A mask over `Profile.calls`; -1 is not a row."""
    mask = np.zeros(len(context.profile.calls), dtype=np.bool_)
    mask[rows[rows >= 0]] = True
    return mask


@per_selection
def copies(view: ProfileView, selection: Selection) -> HostDeviceCopies:
    """The copies between CPU and GPU whose call was recorded in the selected iterations, without the DataLoader's."""
    profile = view.profile
    launches, calls, ops, strings = profile.launches, profile.calls, profile.ops, profile.strings
    to_gpu_kernel, from_gpu_kernel, pageable_kernel = (_named(view, word) for word in ("HtoD", "DtoH", "Pageable"))
    between = (to_gpu_kernel | from_gpu_kernel)[launches.kernel] & view.selected_launches(selection)
    rows = np.flatnonzero(between)
    call = launches.call[rows]
    rows = rows[(ops.kind[calls.op[call]] == CallKind.RUNTIME) & (ops.role[calls.op[call]] != Role.DATALOADER)]
    call = launches.call[rows]
    kind = sync_kinds(view, view.selection())
    wait = _waits(view, kind, call)
    top = np.where(view.call_top[call] >= 0, view.call_top[call], call)
    to_gpu = to_gpu_kernel[launches.kernel[rows]]
    pageable = pageable_kernel[launches.kernel[rows]]
    size, duration = launches.bytes[rows], launches.duration_ns[rows]
    in_copy_op = np.array([strings[i] in _COPY_OPS for i in ops.name.tolist()], dtype=np.bool_)
    innermost, outermost = view.launch_op[rows], calls.op[top]
    asked = np.array([strings[i] in _ASKED_FOR for i in ops.name.tolist()], dtype=np.bool_)
    is_copy = (innermost < 0) | (in_copy_op[np.maximum(innermost, 0)] & asked[outermost])
    is_copy &= ~(in_copy_op[outermost] & ~to_gpu & _beside_the_loop(view)[top])
    source = np.where(to_gpu, _sources(view, top), -1)
    link = link_bytes_per_second(view) or 0.0
    rate = size / np.maximum(duration, 1) * GIGABYTE
    small = (size >= 0) & (size < SMALL_COPY_BYTES)
    many = is_copy & (source < 0) & small
    enough = many.sum() >= SMALL_COPIES_PER_STEP * selection.count
    large = size >= LARGE_COPY_BYTES
    fault = np.select(
        [
            ~is_copy & (wait >= 0),
            source >= 0,
            many & enough,
            to_gpu & pageable & ~small,
            large & (rate < SLOW_COPY_SHARE * link),
            wait >= 0,
        ],
        [int(f) for f in (Fault.READ, Fault.EXTRA, Fault.SMALL, Fault.PAGEABLE, Fault.SLOW, Fault.BLOCKING)],
        int(Fault.NONE),
    ).astype(np.int64)
    return HostDeviceCopies(rows, call, top, wait, source, to_gpu, pageable, size, duration, fault)


@per_selection
def copy_waits(view: ProfileView, _: Selection) -> Bools:
    """Per row of `Profile.calls` whether the CPU waits there for a copy that an op of copying made."""
    found = copies(view, view.selection())
    result = np.zeros(len(view.profile.calls), dtype=np.bool_)
    result[found.wait[(found.wait >= 0) & (found.fault != Fault.READ)]] = True
    return result


def link_bytes_per_second(view: ProfileView) -> float | None:
    """What copies of pinned memory reach: the fastest large one recorded, at least what is usual for the GPU."""
    capability = view.compute_capability
    nominal = PINNED_BYTES_PER_SECOND.get(capability[0]) if capability else None
    launches = view.profile.launches
    pinned = (_named(view, "HtoD") | _named(view, "DtoH")) & _named(view, "Pinned")
    rows = pinned[launches.kernel] & (launches.bytes >= LARGE_COPY_BYTES) & (launches.duration_ns > 0)
    seen = float((launches.bytes[rows] / launches.duration_ns[rows]).max()) * GIGABYTE if rows.any() else None
    return max(seen or 0.0, nominal or 0.0) or None


def _beside_the_loop(view: ProfileView) -> Bools:
    """Per call whether it is on another thread than the steps, where DDP copies values for itself."""
    calls = view.profile.calls
    steps = calls_named(view, CallKind.ANNOTATION, lambda name: name.startswith(PROFILER_STEP))
    return ~np.isin(calls.thread, calls.thread[steps]) if steps.any() else steps


def _named(view: ProfileView, word: str) -> Bools:
    """Per row of `Profile.kernels` whether it is a copy with this word in its name."""
    kernels, strings = view.profile.kernels, view.profile.strings
    named = np.array([word in strings[i] for i in kernels.name.tolist()], dtype=np.bool_)
    result: Bools = named & (kernels.kind == KernelKind.MEMCPY)
    return result


def _waits(view: ProfileView, kind: Ints, call: Ints) -> Ints:
    """The call at which the CPU waits for each copy: the copy's own, or the one after it in the same op."""
    waits = np.flatnonzero(kind == SyncKind.WAIT)
    waits = waits[view.call_parent[waits] >= 0]
    behind = np.full(len(kind), -1, dtype=np.int64)
    behind[view.call_parent[waits]] = waits
    parent = view.call_parent[call]
    is_op = view.profile.ops.kind[view.profile.calls.op] == CallKind.OP
    found = take_or(np.where(is_op, behind, -1), parent, -1)
    own = (kind[call] == SyncKind.COPY) | (kind[call] == SyncKind.PAGEABLE_COPY)
    return np.where(found > call, found, np.where(own, call, -1))


def _sources(view: ProfileView, top: Ints) -> Ints:
    """The op before each outermost op, in the same thread, where it made a tensor of that shape on the CPU; else -1.

    Of ``torch.tensor(values, device=...)`` the op itself.
    """
    profile = view.profile
    calls, ops, strings = profile.calls, profile.ops, profile.strings
    tops = np.flatnonzero(view.call_top == np.arange(len(calls)))
    if not len(tops) or not len(top):
        return np.full(len(top), -1, dtype=np.int64)
    name = ops.name[calls.op]
    creating = np.array([strings[i] in _CREATING for i in range(len(strings))], dtype=np.bool_)
    position = np.minimum(np.searchsorted(tops, top), len(tops) - 1)
    before, after = tops[np.maximum(position - 1, 0)], tops[np.minimum(position + 1, len(tops) - 1)]
    known = (tops[position] == top) & (position > 0)
    stop = calls.start_ns + calls.duration_ns
    near = (calls.thread[before] == calls.thread[top]) & (calls.start_ns[top] - stop[before] < _FOLLOWS_WITHIN_NS)
    near &= view.call_parent[before] == view.call_parent[top]
    on_gpu = any_in_subtree(launching_calls(view), view.call_end)
    made = known & near & creating[name[before]] & ~on_gpu[before]
    made[made] = _same_shape(view, before[made], top[made])
    from_values = (tops[position] == top) & (after > top) & (calls.thread[after] == calls.thread[top])
    from_values &= name[after] == (strings.index(_FROM_VALUES) if _FROM_VALUES in strings else -1)
    from_values &= calls.start_ns[after] - stop[top] < _FOLLOWS_WITHIN_NS
    return np.where(made, before, np.where(from_values, top, -1))


def _same_shape(view: ProfileView, before: Ints, top: Ints) -> Bools:
    """Whether the first input of ``top`` is as large as what an op in ``before`` filled; True where that is unknown."""
    calls, ops = view.profile.calls, view.profile.ops
    first = np.empty(len(view.profile.input_shapes), dtype=object)
    first[:] = [first_tensor(shapes) for shapes in view.profile.input_shapes]
    shape = first[ops.shapes][calls.op]
    verdicts = []
    for made, copied in zip(before.tolist(), top.tolist(), strict=True):
        inside = [shape[made]]
        row = made + 1
        while row < len(calls) and calls.thread[row] == calls.thread[made] and calls.depth[row] > calls.depth[made]:
            inside.append(shape[row])
            row += 1
        filled = [one for one in inside if one not in (None, (), (0,))]
        verdicts.append(not filled or shape[copied] is None or shape[copied] in filled)
    return np.array(verdicts, dtype=np.bool_)


def inner_op(view: ProfileView) -> Ints:
    """Per call the string index of the innermost op around it (itself included), -1 for none."""
    calls, ops = view.profile.calls, view.profile.ops
    is_op = (ops.kind == CallKind.OP)[calls.op]
    return inherit(np.where(is_op, ops.name[calls.op], -1), is_op, view.call_parent)


def new_times(context: RuleContext, chosen: HostDeviceCopies, bytes_per_second: float) -> Floats:
    """The time of each row of `Profile.launches` (ns) if these copies ran at this rate; none gets slower."""
    times = context.profile.launches.duration_ns.astype(np.float64)
    at_rate = np.maximum(chosen.bytes, 0) / bytes_per_second * 1e9
    times[chosen.launch] = np.where(chosen.bytes >= 0, np.minimum(chosen.duration_ns, at_rate), chosen.duration_ns)
    return times
