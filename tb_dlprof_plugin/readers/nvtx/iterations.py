"""Iterations that ranges mark.

In this order: ranges whose names differ by one number alone and follow each other ("iteration 3", "step_4"), PyTorch's
own steps (left to the analysis), a step's name that repeats ("train_step"), executions of a TensorRT engine, runs of
the XLA module with the most GPU time, TensorFlow's op ``global_step`` (DLProf's key node), and a sequence of outermost
ranges that repeats ("forward", "backward", "update").

A range is no iteration where it lies in an op, where it comes several times in a larger range that repeats, or where
nvFuser pushes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.timeline import HostKind, Ints, StepMarks
from tb_dlprof_plugin.names.ops import OPTIMIZER_STEP, PROFILER_STEP
from tb_dlprof_plugin.readers.nvtx import tensorrt, xla
from tb_dlprof_plugin.readers.nvtx.nesting import anything_around
from tb_dlprof_plugin.readers.program_runs import steps_of_runs

FOUND_BY_RANGES = "nvtx_ranges"
FOUND_BY_EXECUTIONS = "tensorrt_executions"
FOUND_BY_XLA = "xla_modules"
FOUND_BY_GLOBAL_STEP = "global_step"

_DIGITS = re.compile(r"\d{1,15}")
_STEP = re.compile(r"(?<![a-z])(?:iter(?:ation)?s?|it|step|steps|batch|minibatch|train(?:ing)?|epoch|frame|request|"
                   r"inference|infer|eval|decode|prefill|execute|run|sample)(?![a-z])", re.IGNORECASE)  # fmt: skip
_EPOCH = re.compile(r"epoch", re.IGNORECASE)
_NO_STEP = re.compile(
    r"layer|block|stage|head|expert|chunk|micro|rank|worker|stream|conv|bucket|optim|opt\.|sched|scaler|zero_grad|lr_|"
    r"dataloader|shard|tensor|graph|thread|gpu|device|load",
    re.IGNORECASE,
)
_NVFUSER = re.compile(
    r"(?:Fusion|CompiledKernel|CutlassCompiledKernel|KernelExecutor|ExprEvalExecutor|HostIr|CommunicationExecutor|"
    r"MultiDeviceExecutor|GpuLower|ComputeAt)\w*::\w+|nvFusion\d*\Z|nvfuser"
)
"""``FUSER_PERF_SCOPE`` of nvFuser (csrc/runtime/*.cpp), which PyTorch and Lightning Thunder run: an op, or a step, has
several."""
_HOLDS_STEPS = re.compile(
    r"epoch|train|eval|valid|test|fit|loop|phase|stage|warm|bench|profil|main|round|generat|section", re.IGNORECASE
)
"""What repeats and has several steps in it."""
_MOST_PATTERNS = 20_000
_MANY = 3
_LONGEST_PERIOD = 64


@dataclass(frozen=True, slots=True)
class MarkedRanges:
    """Ranges of a process: ``text`` indexes `texts`, ``kind`` is a `HostKind`, ``users`` marks the program's own.

    ``gpu_ns`` is what the range launched, 0 where that was not counted, ``gpu`` on which GPU, -1 where not known.
    ``in_op`` says whether the range lies in an op of a convention.
    """

    thread: Ints
    start_ns: Ints
    stop_ns: Ints
    text: Ints
    kind: Ints
    users: Bools
    parent: Ints
    gpu_ns: Ints
    gpu: Ints
    in_op: Bools
    texts: list[str]


def iterations(ranges: MarkedRanges) -> tuple[StepMarks | None, Bools]:
    """The iterations, None where no range marks any or the analysis finds them; and which ranges are their marks."""
    none = np.zeros(len(ranges.start_ns), dtype=np.bool_)
    if not len(none):
        return None, none
    names = ranges.texts
    ranges = replace(ranges, users=ranges.users & ~ranges.in_op & ~_named(ranges, _is_of_nvfuser, ranges.users))
    numbered = _numbered(ranges)
    if numbered is not None:
        rows, numbers = numbered
        marks = none.copy()
        marks[rows] = True
        return _marks(ranges, rows, numbers, FOUND_BY_RANGES), marks
    used = np.bincount(ranges.text, minlength=len(names)) > 0
    if any(used[i] and names[i].startswith((PROFILER_STEP, OPTIMIZER_STEP)) for i in range(len(names))):
        return None, none
    step = _named(ranges, lambda text: _is_step(text) and not _DIGITS.search(text), ranges.users)
    for found_by, wanted in (
        (FOUND_BY_RANGES, step),
        (FOUND_BY_EXECUTIONS, _named(ranges, tensorrt.is_execution, ~none)),
    ):
        rows = _outermost_on_one_thread(ranges, wanted)
        if len(rows) >= 2 and not _are_parts(ranges, rows):
            marks = none.copy()
            marks[rows] = True
            numbers = np.arange(len(rows), dtype=np.int64)
            return _marks(ranges, rows, numbers, found_by), marks if found_by == FOUND_BY_RANGES else none
    return _program_runs(ranges) or _global_steps(ranges) or _repeating(ranges), none


def _is_of_nvfuser(text: str) -> bool:
    return _NVFUSER.match(text) is not None


def _are_parts(ranges: MarkedRanges, rows: Ints) -> bool:
    """Whether the ranges come several times in each of larger ones that repeat: there the larger ones are the steps."""
    around = ranges.parent[rows]
    while len(around := around[around >= 0]):
        patterns = {text: _DIGITS.sub("#", ranges.texts[text]) for text in np.unique(ranges.text[around]).tolist()}
        for pattern in set(patterns.values()):
            texts = [text for text, its_pattern in patterns.items() if its_pattern == pattern]
            inside = around[np.isin(ranges.text[around], texts)]
            larger = len(np.unique(inside))
            if larger > 1 and len(inside) >= 2 * larger and not _HOLDS_STEPS.search(pattern):
                return True
        around = ranges.parent[around]
    return False


def may_hold_steps(text: str) -> bool:
    """Whether a name is that of a step, or of something that has several steps in it."""
    return "::" not in text and (_STEP.search(text) or _HOLDS_STEPS.search(text)) is not None


def _is_step(text: str) -> bool:
    return _STEP.search(text) is not None and _NO_STEP.search(text) is None


def _named(ranges: MarkedRanges, is_wanted: Callable[[str], bool], among: Bools) -> Bools:
    of_text = np.zeros(len(ranges.texts), dtype=np.bool_)
    for index in np.unique(ranges.text[among]).tolist():
        of_text[index] = is_wanted(ranges.texts[index])
    return among & of_text[ranges.text]


def _outermost_on_one_thread(ranges: MarkedRanges, rows: Bools) -> Ints:
    """The rows on the thread with most of them, of one text, in order of time and without those that overlap."""
    found = np.flatnonzero(rows)
    if not len(found):
        return found
    thread = np.bincount(ranges.thread[found]).argmax()
    found = found[ranges.thread[found] == thread]
    text = np.bincount(ranges.text[found], weights=(ranges.stop_ns - ranges.start_ns)[found]).argmax()
    found = found[ranges.text[found] == text]
    found = found[np.argsort(ranges.start_ns[found], kind="stable")]
    reach = np.maximum.accumulate(ranges.stop_ns[found])
    return found[np.concatenate(([True], ranges.start_ns[found][1:] >= reach[:-1]))]


def _numbered(ranges: MarkedRanges) -> tuple[Ints, Ints] | None:
    """The group of ranges that differ by one number and follow each other; of several the one that covers most."""
    groups: dict[str, list[int]] = {}
    for index in np.unique(ranges.text[ranges.users]).tolist():
        text = ranges.texts[index]
        if _DIGITS.search(text) and not _NO_STEP.search(text):
            groups.setdefault(_DIGITS.sub("#", text), []).append(index)
            if len(groups) > _MOST_PATTERNS:
                return None
    best: tuple[tuple[int, int, int], Ints, Ints] | None = None
    for pattern, texts in groups.items():
        if len(texts) < 2:
            continue
        values = np.array([[int(n) for n in _DIGITS.findall(ranges.texts[i])] for i in texts], dtype=np.int64)
        varying = np.flatnonzero((values != values[0]).any(axis=0))
        if len(varying) != 1:
            continue
        number_of = np.full(len(ranges.texts), -1, dtype=np.int64)
        number_of[texts] = values[:, varying[0]]
        rows = np.flatnonzero(ranges.users & (number_of[ranges.text] >= 0))
        thread = np.bincount(ranges.thread[rows]).argmax()
        rows = rows[ranges.thread[rows] == thread]
        rows = rows[np.argsort(ranges.start_ns[rows], kind="stable")]
        numbers = number_of[ranges.text[rows]]
        apart = bool((ranges.start_ns[rows][1:] >= ranges.stop_ns[rows][:-1]).all())
        rising = bool((np.diff(numbers) > 0).all())
        word = _STEP.search(pattern) is not None
        if len(rows) < 2 or not apart or not (rising or word) or _are_parts(ranges, rows):
            continue
        outer = bool((ranges.parent[rows] < 0).all()) and len(rows) >= _MANY and bool((np.diff(numbers) == 1).all())
        if not word and not outer:
            continue
        covered = int((ranges.stop_ns - ranges.start_ns)[rows].sum())
        rank = (int(word), -int(_EPOCH.search(pattern) is not None), covered)
        if best is None or rank > best[0]:
            best = (rank, rows, numbers if rising else np.arange(len(rows), dtype=np.int64))
    return None if best is None else best[1:]


def _marks(ranges: MarkedRanges, rows: Ints, numbers: Ints, found_by: str) -> StepMarks:
    return _sharing_boundaries(numbers, ranges.start_ns[rows], ranges.stop_ns[rows], found_by)


def _sharing_boundaries(numbers: Ints, start: Ints, stop: Ints, found_by: str) -> StepMarks:
    """Steps of which each ends where the next begins, unless more than a step's length lies between."""
    longest = int((stop - start).max())
    near = start[1:] - stop[:-1] <= longest
    ends = stop.copy()
    ends[:-1] = np.where(near, start[1:], stop[:-1])
    return StepMarks(numbers, start.copy(), ends, found_by)


def _program_runs(ranges: MarkedRanges) -> StepMarks | None:
    """The runs of the XLA program with the most GPU time, the n-th on all GPUs together.

    Around a module may be ranges of threads (``XlaLauncher``) and of the program, and another module.
    """
    programs = [xla.program_of(text) for text in ranges.texts]
    is_program = np.array([bool(program) for program in programs], dtype=np.bool_)[ranges.text]
    modules = np.flatnonzero(is_program & ~anything_around(is_program, ranges.parent))
    if not len(modules):
        return None
    numbers = {program: number for number, program in enumerate(dict.fromkeys(programs))}
    program = np.array([numbers[one] for one in programs], dtype=np.int64)[ranges.text[modules]]
    time = np.bincount(program, weights=ranges.gpu_ns[modules])
    main = int(time.argmax() if time.any() else np.bincount(program).argmax())
    runs = modules[program == main]
    start, stop = steps_of_runs(ranges.start_ns[runs], ranges.stop_ns[runs], ranges.thread[runs], ranges.gpu[runs])
    if len(start) < 2:
        return None
    return _sharing_boundaries(np.arange(len(start), dtype=np.int64), start, stop, FOUND_BY_XLA)


def _global_steps(ranges: MarkedRanges) -> StepMarks | None:
    """DLProf's intervals: each ends where an instance of the op stops."""
    rows = np.flatnonzero(_named(ranges, lambda text: text.endswith("global_step"), ranges.kind == HostKind.OP))
    if len(rows) < 2:
        return None
    stops = np.sort(ranges.stop_ns[rows])
    start = np.concatenate(([ranges.start_ns.min()], stops[:-1]))
    return StepMarks(np.arange(len(stops), dtype=np.int64), start, stops, FOUND_BY_GLOBAL_STEP)


def _repeating(ranges: MarkedRanges) -> StepMarks | None:
    """The sequence of the outermost ranges of the thread with most of them, where it is one period, again and again."""
    rows = np.flatnonzero(ranges.users & (ranges.parent < 0))
    if len(rows) < 2 * _MANY:
        return None
    thread = np.bincount(ranges.thread[rows]).argmax()
    rows = rows[ranges.thread[rows] == thread]
    rows = rows[np.argsort(ranges.start_ns[rows], kind="stable")]
    text = ranges.text[rows]
    for period in range(2, min(_LONGEST_PERIOD, len(rows) // 2) + 1):
        count = len(rows) // period
        if count < 2 or len(set(text[:period].tolist())) < period:
            continue
        if np.array_equal(text[period:], text[:-period]):
            first = rows[: count * period : period]
            last = rows[period - 1 : count * period : period]
            start, stop = ranges.start_ns[first], ranges.stop_ns[last]
            stop = np.concatenate((np.maximum(start[1:], stop[:-1]), stop[-1:]))
            stop[:-1] = np.minimum(stop[:-1], start[1:])
            return StepMarks(np.arange(count, dtype=np.int64), start, stop, FOUND_BY_RANGES)
    return None
