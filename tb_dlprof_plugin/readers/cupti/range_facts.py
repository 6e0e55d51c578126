"""What the search for iterations asks of ranges: which lie in ops, and what XLA's programs launched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.model.lookup import rows_of_each, rows_with
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.timeline import HostKind, Ints
from tb_dlprof_plugin.readers.cupti.recording import Activities, CudaCalls
from tb_dlprof_plugin.readers.nvtx import xla
from tb_dlprof_plugin.readers.nvtx.iterations import may_hold_steps
from tb_dlprof_plugin.readers.nvtx.nesting import anything_around, inside_any
from tb_dlprof_plugin.readers.nvtx.ranges import NvtxRanges


def in_ops(ranges: NvtxRanges, thread: Ints, kind: Ints, name: Ints, users: Bools, strings: Sequence[str]) -> Bools:
    """Which of the program's own ranges lie in an op of a convention.

    `emit_nvtx` writes a range of `record_function` as an op, too: one that comes once, or whose name is that of a step
    or of a loop, may be around whole steps.

    Args:
        ranges: of one process.
        thread: of each.
        kind: of each, a `HostKind`.
        name: of each, an index of ``strings``.
        users: which are the program's own.
        strings: the names.
    """
    result = np.zeros(len(kind), dtype=np.bool_)
    mine, ops = np.flatnonzero(users), np.flatnonzero((kind == HostKind.OP) & ~users)
    if not len(mine) or not len(ops):
        return result
    calls = np.bincount(name[ops], minlength=len(strings))
    counts = [calls > 1 and not may_hold_steps(text) for text, calls in zip(strings, calls.tolist(), strict=True)]
    ops = ops[np.array(counts, dtype=np.bool_)[name[ops]]]
    result[mine] = inside_any(thread, ranges.start_ns, ranges.stop_ns, mine, ops)
    return result


def launched_by_programs(
    ranges: NvtxRanges, texts: Sequence[str], parent: Ints, calls: CudaCalls, device: Activities
) -> tuple[Ints, Ints]:
    """GPU time (ns) that each outermost XLA module launched, 0 for every other range; and on which GPU, -1 for none.

    Args:
        ranges: of one process.
        texts: what ``ranges.text`` indexes.
        parent: of each range the row of the one around it, -1 for none.
        calls: of the process.
        device: activities of the process.
    """
    time_ns, gpu = np.zeros(len(ranges), dtype=np.int64), np.full(len(ranges), -1, dtype=np.int64)
    is_module = np.array([bool(xla.program_of(text)) for text in texts], dtype=np.bool_)[ranges.text]
    rows = np.flatnonzero(is_module & ~anything_around(is_module, parent))
    if not len(rows) or not len(calls) or not len(device):
        return time_ns, gpu
    call = rows_with(calls.correlation, device.correlation)
    launched = np.flatnonzero(call >= 0)
    call = call[launched]
    calls_of, nothing = dict(rows_of_each(calls.thread[call])), np.zeros(0, dtype=np.int64)
    for thread, modules in rows_of_each(ranges.thread[rows]):
        modules = rows[modules]
        modules = modules[np.argsort(ranges.start_ns[modules], kind="stable")]
        mine = calls_of.get(thread, nothing)
        at_ns = calls.start_ns[call[mine]]
        position = np.searchsorted(ranges.start_ns[modules], at_ns, side="right") - 1
        target = modules[np.maximum(position, 0)]
        inside = (position >= 0) & (at_ns < ranges.stop_ns[target])
        activity = launched[mine[inside]]
        np.add.at(time_ns, target[inside], (device.stop_ns - device.start_ns)[activity])
        gpu[target[inside]] = device.device[activity]
    return time_ns, gpu
