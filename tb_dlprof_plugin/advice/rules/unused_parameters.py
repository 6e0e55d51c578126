"""Parameters that require a gradient and get none, and DDP's search for them."""

from __future__ import annotations

import math
import re

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.finding import EvidenceRow, Reading, Reference, Silent
from tb_dlprof_plugin.advice.memory_left import gigabytes
from tb_dlprof_plugin.advice.rule import Finding, Rule
from tb_dlprof_plugin.advice.savings import Saving, stated
from tb_dlprof_plugin.advice.words import milliseconds
from tb_dlprof_plugin.frame import Frame
from tb_dlprof_plugin.measures.work import shape_at, tensor_shapes
from tb_dlprof_plugin.storage.intervals import covered, union
from tb_dlprof_plugin.storage.model import Bools, Ints, KernelKind, Role

RULE = Rule(
    id="unused_parameters",
    title="Parameters that get no gradient",
    looks_for="Parameters that require a gradient and had none when the optimizer stepped, and "
    "`find_unused_parameters=True` of DistributedDataParallel where all parameters are used.",
    why="An unused parameter takes memory, and often it is a mistake: a layer that was left out of `forward`, or a "
    "loss that was dropped. Under DDP it costs time in each step: the ranks walk the graph to find it, sum up zeros "
    "in its place, and wait at the end of the backward pass to agree on who used what.",
    fix="Remove the parameters, use them, or freeze them with `requires_grad_(False)` before the model is wrapped; "
    "then leave `find_unused_parameters` out.",
    ignore_when="Other steps use them: layers dropped at random, experts, or losses that take turns.",
    thresholds=("WORTHWHILE_SAVING_PERCENT", "STEP_NOISE"),
    references=(
        Reference(
            "PyTorch: DistributedDataParallel",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        ),
    ),
)

_SEARCH = "search_unused_parameters"
_DDP = "DistributedDataParallel"
_ALL_REDUCE = ("AllReduce", "allreduce")
_BYTES = 4
_LARGE = 1_000_000
_FILLS = frozenset({"aten::fill_", "aten::zero_"})
_ELEMENTS = re.compile(r"\[+(\d+)")
_FREEZE = "model.{module}.requires_grad_(False)  # before DistributedDataParallel(model)\n"
_PLAIN = "model = DistributedDataParallel(model)  # without find_unused_parameters=True\n"


def check(case: Case) -> Finding | Silent:
    """Fires on unused parameters, and on a search for them that finds none."""
    facts = case.facts
    unused, looked_at = facts.unused_parameters, facts.trainable_parameters
    if unused is None:
        return Silent("Whether all parameters get a gradient was not recorded.", applicable=False)
    searches = bool(facts.find_unused_parameters) or bool(_search(case).any())
    if not unused and not searches:
        return Silent(f"All {looked_at} parameters of the optimizer get a gradient.")
    size = facts.unused_parameter_bytes or 0
    names = facts.unused_parameter_names
    listed = ", ".join(names[:4]) + (f" and {unused - 4} more" if unused > 4 else "") if names else ""
    estimate = _estimate(case, size) if searches else None
    if not unused and (estimate is None or estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT):
        return Silent("DDP looks for unused parameters and finds none, which costs less than 2 % of the step.")
    modules = list(dict.fromkeys(name.rpartition(".")[0] for name in names if "." in name))
    looks = " DistributedDataParallel looks for unused ones in each step." if searches else ""
    if unused:
        title = f"{gigabytes(size)} of parameters get no gradient"
        title += ", and DDP sums up zeros for them" if searches else ""
        seen = f"{unused} of {looked_at} parameters of the optimizer require a gradient and got none while recorded"
        seen += f" ({listed}): {gigabytes(size)}." if listed else f": {gigabytes(size)}."
        do = "Remove them from the model, use them in forward, or freeze them before the model is wrapped"
        do += ", and leave find_unused_parameters out." if searches else "."
    else:
        title = "DDP looks for unused parameters in each step, and there are none"
        seen, do = f"All {looked_at} parameters get a gradient.", "Leave find_unused_parameters out."
    code = _FREEZE.format(module=modules[0]) if unused and modules else ""
    unknown = "Without DDP's search they take memory, and hardly any time: the optimizer passes over them."
    return RULE.finding(
        title=title,
        seen=seen + looks,
        readings=[
            Reading("Parameters without a gradient", unused, "count", 0),
            Reading("Their size", size, "bytes"),
            Reading("Parameters that require one", looked_at, "count"),
        ],
        evidence=_evidence(case),
        change=do,
        code=code + (_PLAIN if searches else ""),
        saving=estimate,
        saving_unknown_because="" if estimate else unknown,
        confirm="Record again: this finding is gone"
        + (", and the step has no search_unused_parameters and less communication." if searches else "."),
        confidence="high" if unused else "medium",
        severity=None if estimate else "low",
    )


def made(base: Frame, candidate: Frame) -> str:
    """Fewer unused parameters, or no search for them."""
    before, after = base.profile.facts, candidate.profile.facts
    changes = []
    if before.unused_parameters and after.unused_parameters == 0:
        changes.append("no unused parameters")
    if before.find_unused_parameters and after.find_unused_parameters is False:
        changes.append("no search for unused parameters")
    return ", ".join(changes)


def _estimate(case: Case, size: int) -> Saving | None:
    """What the search costs: communication of zeros that nothing hides, filling them in, and the wait at the end."""
    if not case.profile.has_gpu:
        return None
    reduces = case.frame.selected_launches(case.selection) & _kernels(case, _ALL_REDUCE)
    share = min(size / max(_reduced_bytes(case, reduces), 1), 1.0)
    communication = share * case.per_step(reduces)
    exposed = _exposed_ns(case, reduces)
    zeros = case.per_step(_zeros(case, size))
    wait = _starved_after_search(case)
    walk = _cpu_ns(case, _search(case)[case.profile.calls.op])
    noise = thresholds.STEP_NOISE * case.step_ns
    hidden = min(exposed, communication)
    low = 0.6 * (hidden + zeros)
    expected = hidden + zeros + case.simulation.share.expected * wait
    high = communication + zeros + wait + walk
    return stated(
        case,
        low - noise,
        expected,
        max(high, expected) + noise,
        f"{100 * share:.0f} % of what the all-reduces sum up are zeros for unused parameters, "
        f"{milliseconds(round(communication))} a step; {milliseconds(exposed)} of all communication runs beside no "
        f"other kernel, so that {milliseconds(round(hidden))} should go. Filling the zeros in takes "
        f"{milliseconds(zeros)}, and the GPU runs dry for {milliseconds(wait)} after the ranks have agreed, as "
        f"recorded.",
    )


def _search(case: Case) -> Bools:
    """Rows of `Profile.ops` of the reducer's search."""
    ops, strings = case.profile.ops, case.profile.strings
    return np.array([_SEARCH in strings[name] for name in ops.name.tolist()], dtype=np.bool_)


def _cpu_ns(case: Case, calls: Bools) -> int:
    chosen = calls & case.frame.selected_calls(case.selection)
    return int(case.profile.calls.duration_ns[chosen].sum()) // case.selection.count


def _kernels(case: Case, words: tuple[str, ...]) -> Bools:
    kernels, strings = case.profile.kernels, case.profile.strings
    named = np.array([any(w in strings[i] for w in words) for i in kernels.name.tolist()], dtype=np.bool_)
    chosen: Bools = (named & (kernels.kind == KernelKind.KERNEL))[case.profile.launches.kernel]
    return chosen


def _reduced_bytes(case: Case, reduces: Bools) -> int:
    """Bytes per step that the all-reduces sum up, by the sizes that torch.distributed records with them."""
    ops, strings, kernels = case.profile.ops, case.profile.strings, case.profile.kernels
    row, kernel = case.frame.launch_op[reduces], case.profile.launches.kernel[reduces]
    keys, counts = np.unique(np.stack((row, kernel)), axis=1, return_counts=True)
    total = 0
    for (op, which), count in zip(keys.T.tolist(), counts.tolist(), strict=True):
        found = _ELEMENTS.match(strings[ops.shapes[op]]) if op >= 0 else None
        size = 2 if "f16" in strings[kernels.name[which]] else _BYTES
        total += count * size * int(found[1]) if found else 0
    return total // case.selection.count


def _exposed_ns(case: Case, reduces: Bools) -> int:
    """Time per step in which an all-reduce runs and nothing else does."""
    launches = case.profile.launches
    stop = launches.start_ns + launches.duration_ns
    others = ~reduces & (launches.duration_ns > 0)
    busy = union(launches.start_ns[others], stop[others])
    start, end = union(launches.start_ns[reduces], stop[reduces])
    return int((end - start - covered(busy, start, end)).sum()) // case.selection.count


def _zeros(case: Case, size: int) -> Bools:
    """Kernels that fill large tensors, none larger than what is unused, outside forward pass and optimizer."""
    ops, strings = case.profile.ops, case.profile.strings
    row = case.frame.launch_op
    wanted = np.zeros(len(ops) + 1, dtype=np.bool_)
    for op, name in enumerate(ops.name.tolist()):
        if strings[name] in _FILLS and ops.role[op] not in (Role.FORWARD, Role.OPTIMIZER):
            elements = math.prod(shape_at(tensor_shapes(strings[ops.shapes[op]]), 0) or (0,))
            wanted[op] = _LARGE <= elements * _BYTES <= size
    zeros: Bools = case.frame.selected_launches(case.selection) & (row >= 0) & wanted[row]
    return zeros


def _starved_after_search(case: Case) -> int:
    """Idle time of the GPU per step after the ranks have agreed: the CPU waited, and launches the optimizer only "
    "then."""
    profile, launches = case.profile, case.profile.launches
    ops, strings = profile.ops, profile.strings
    shape = f"[[{case.facts.trainable_parameters}],"
    agreed = np.array([strings[dims].startswith(shape) for dims in ops.shapes.tolist()], dtype=np.bool_)
    row = case.frame.launch_op
    read = case.frame.selected_launches(case.selection) & (row >= 0) & agreed[np.maximum(row, 0)]
    read &= np.array(["DtoH" in strings[name] for name in profile.kernels.name.tolist()])[launches.kernel]
    ends: Ints = launches.start_ns[read] + launches.duration_ns[read]
    after = np.searchsorted(launches.start_ns, ends, side="left")
    known = after < len(launches)
    return int((launches.start_ns[after[known]] - ends[known]).clip(min=0).sum()) // case.selection.count


def _evidence(case: Case) -> list[EvidenceRow]:
    searched = _cpu_ns(case, _search(case)[case.profile.calls.op])
    rows = [EvidenceRow(name, None, None, "overview", "") for name in case.facts.unused_parameter_names[:5]]
    if searched:
        rows.append(EvidenceRow("search_unused_parameters, on the CPU", searched, None, "launches", ""))
    return rows
