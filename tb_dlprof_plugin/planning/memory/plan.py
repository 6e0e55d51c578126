"""The plan of one configuration: what it takes of a GPU's memory, whether it fits, the largest batch, and the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from tb_dlprof_plugin.metrics.memory import CPU, DeviceMemory, recorded_devices
from tb_dlprof_plugin.model.plan_request import TENSOR_PARALLEL, PlanError, PlanRequest
from tb_dlprof_plugin.planning.memory.allocator import AllocatorSettings, settings_of
from tb_dlprof_plugin.planning.memory.capacity import Capacity, capacity
from tb_dlprof_plugin.planning.memory.recorded_step import planned_memory, recorded_program
from tb_dlprof_plugin.planning.memory.replay import LIMIT_SEARCH, Needs, ReplayedMemory, replay, runs_under
from tb_dlprof_plugin.planning.memory.rewrite_batch import Bound, sizes_with_batch, with_batch
from tb_dlprof_plugin.planning.memory.rewrite_gpus import REPLICATED, exchanged, while_rebuilding
from tb_dlprof_plugin.planning.memory.rewrites import (
    SPREADS,
    MemorySpread,
    batch_ratio,
    changes_of,
    check,
    rewritten,
    spread_of,
)
from tb_dlprof_plugin.planning.memory.step_program import HeldKind, StepProgram
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_view

Verdict = Literal["fits", "fits with retries", "does not fit", "not known"]
_MOST_SAMPLES = 1 << 24
_MOST_KEPT, _MOST_PROGRAMS = 256, 32
_MOST_KEPT_MEMORY = 0.25
"""Share of reserved memory that the recorded run had in addition to the replay's: workspaces that cuDNN tried in its
first steps, such as a U-Net's and a VGG's. More comes from other work than the step."""
_ENDS: tuple[Bound, ...] = ("low", "high")


@dataclass(frozen=True, slots=True)
class Bytes:
    """A figure in bytes with its interval."""

    value: int
    low: int
    high: int


class _Figures:
    """What a configuration takes, whatever the GPU."""

    def __init__(
        self, likely: Needs, ends: Sequence[ReplayedMemory], spread: MemorySpread, off: float, kept: float
    ) -> None:
        self._likely, self._ends, self._spread, self._off = likely, ends, spread, off
        self.allocated = self._with_interval(
            likely.peak_allocated, [end.peak_allocated for end in ends], spread.allocated
        )
        reserved = self._with_interval(likely.peak_reserved, [end.peak_reserved for end in ends], spread.reserved)
        low = min(max(reserved.low, self.allocated.low), reserved.value)
        self.reserved = replace(reserved, low=low, high=round(reserved.high * (1 + kept)))

    @cached_property
    def limit(self) -> Bytes:
        """The limit of another end keeps its distance to the peak."""
        found = self._likely.smallest_limit
        share = found / max(self._likely.peak_allocated, 1)
        ends = [round(share * end.peak_allocated) for end in self._ends]
        return self._with_interval(found, ends, self._spread.of_limit + LIMIT_SEARCH)

    def _with_interval(self, likely: int, ends: Sequence[int], share: float) -> Bytes:
        values, off = [likely, *ends], share + self._off
        return Bytes(likely, round(min(values) * (1 - off)), round(max(values) * (1 + off)))


class MemoryPlan:
    """What a configuration takes. Each figure is computed when it is first read, so that a question costs what it asks.

    Attributes:
        capacity: what the GPU has for the allocator; None where not known.
        peak_allocated: most that tensors hold.
        peak_reserved: most that the allocator takes without a limit; with less memory it retries.
        held: bytes between two steps by kind of `HeldKind`, of what has a kind.
    """

    def __init__(self, planner: MemoryPlanner, request: PlanRequest, room: Capacity | None) -> None:
        self._planner, self._request, self.capacity = planner, request, room
        self._figures = figures = planner.figures(request)
        self.peak_allocated, self.peak_reserved = figures.allocated, figures.reserved

    @property
    def smallest_limit(self) -> Bytes:
        """The least with which it runs, with retries."""
        return self._figures.limit

    @cached_property
    def held(self) -> dict[HeldKind, int]:
        program = self._planner.changed(self._request)
        return {kind: size for kind in HeldKind if (size := _held(program, kind))}

    @cached_property
    def verdict(self) -> Verdict:
        """Whether it fits there; the smallest limit is searched only where that decides."""
        room = self.capacity
        if room is None:
            return "not known"
        if self.peak_reserved.high <= room.least:
            return "fits"
        if self.smallest_limit.high <= room.least:
            return "fits with retries"
        return "does not fit" if self.smallest_limit.low > room.most else "not known"

    @cached_property
    def fits(self) -> bool | None:
        """Whether it runs, with retries or without; None where not known."""
        return None if self.verdict == "not known" else self.verdict != "does not fit"

    @cached_property
    def largest_batch(self) -> int | None:
        """The most samples that fit with retries; None without a batch size or a capacity."""
        return None if self.capacity is None else self._planner.largest_batch(self._request, self.capacity)

    @cached_property
    def assumptions(self) -> list[str]:
        """What was assumed, in sentences."""
        return self._planner.assumptions(self._request, self.capacity)


class MemoryPlanner:
    """Plans of one recorded run.

    Args:
        view: of the run.

    Raises:
        PlanError: its memory was not recorded, or its allocator is not PyTorch's own.
    """

    def __init__(self, view: ProfileView) -> None:
        self._view = view
        self.program = recorded_program(view)
        self._settings = settings_of(view.profile.facts.allocator_settings)
        memory, self.recorded = planned_memory(view), Needs(self.program, self._settings)
        self._known: dict[str, _Figures] = {}
        self._programs: dict[str, StepProgram] = {}
        self._off = abs(self.recorded.peak_allocated / max(int(memory.allocated.max()), 1) - 1)
        reserved = 0 if memory.reserved is None else int(memory.reserved.max())
        self._kept = min(max(reserved / max(self.recorded.peak_reserved, 1) - 1, 0.0), _MOST_KEPT_MEMORY)

    def plan(self, request: PlanRequest) -> MemoryPlan:
        """The plan of a configuration.

        Raises:
            PlanError: the request is invalid, or needs what was not recorded.
            UnknownModule: it names a module that made nothing.
            UnknownGpu: the GPU's memory is not known.
        """
        check(self._view, request)
        return MemoryPlan(self, request, capacity(self._view, request.gpu, request.memory_bytes))

    def figures(self, request: PlanRequest) -> _Figures:
        """What a configuration takes, whatever the GPU; the last ones are kept."""
        key = repr(replace(request, gpu=None, memory_bytes=None))
        figures = self._known.get(key)
        if figures is None:
            if len(self._known) >= _MOST_KEPT:
                self._known = {}
            figures = self._known[key] = self._replayed(request)
        return figures

    def _replayed(self, request: PlanRequest) -> _Figures:
        base, settings = self._rewritten(request), self.settings(request)
        ratio, spread = batch_ratio(self._view, request), spread_of(changes_of(self._view, request))
        program = with_batch(base, ratio)
        likely = Needs(program, settings) if changes_of(self._view, request) else self.recorded
        ends: list[ReplayedMemory] = []
        if (ratio != 1 or request.precision is not None) and not all(slot.batch_known for slot in base.slots):
            for bound in _ENDS:
                end = base
                if request.precision is not None:
                    end = self._rewritten(request, bound)
                ends.append(replay(end, settings, sizes=sizes_with_batch(end, ratio, bound)))
        if request.shard in REPLICATED:
            ends.append(replay(while_rebuilding(program), settings))
        if request.precision == "fp8":
            # Some implementations keep the inputs of products in half precision.
            kept = self._rewritten(replace(request, precision="bf16"))
            ends.append(replay(kept, settings, sizes=sizes_with_batch(kept, ratio)))
        return _Figures(likely, ends, spread, self._off, self._kept)

    def _rewritten(self, request: PlanRequest, workspaces: Bound = "likely") -> StepProgram:
        """The step with the recorded batch; the last ones are kept."""
        same = replace(request, batch_size=None, gpu=None, memory_bytes=None, expandable_segments=None)
        key = f"{same!r} {workspaces}"
        program = self._programs.get(key)
        if program is None:
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs = {}
            program = self._programs[key] = rewritten(self._view, self.program, same, workspaces)
        return program

    def changed(self, request: PlanRequest) -> StepProgram:
        """The step in a configuration.

        Raises:
            PlanError: the request needs what was not recorded.
            UnknownModule: it names a module that made nothing.
        """
        return with_batch(self._rewritten(request), batch_ratio(self._view, request))

    @property
    def view(self) -> ProfileView:
        """The run."""
        return self._view

    @property
    def recorded_settings(self) -> AllocatorSettings:
        """The allocator's settings of the run."""
        return self._settings

    def settings(self, request: PlanRequest) -> AllocatorSettings:
        """The allocator's settings: the run's, with the request's changes."""
        if request.expandable_segments is None:
            return self._settings
        return replace(self._settings, expandable=request.expandable_segments)

    def largest_batch(self, request: PlanRequest, room: Capacity, end: Bound = "likely") -> int | None:
        """Samples of the largest batch that runs in the least of a capacity, 0 where none does; None where the recorded
        batch size is not known. The spread of peaks is left free; with another ``end`` than "likely" the batch is the
        one whose upper ("high") or lower end ("low") of `MemoryPlan.smallest_limit` is the capacity."""
        recorded = self._view.profile.facts.batch_size
        if not recorded:
            return None
        base, settings = self._rewritten(request), self.settings(request)
        spread = spread_of(sorted({*changes_of(self._view, request), "batch_size"}))
        off = spread.of_limit + LIMIT_SEARCH + self._off
        limit = {
            "likely": int(room.least / (1 + SPREADS["batch_size"].allocated + self._off)),
            "high": int(room.least / (1 + off)),
            "low": int(room.most / (1 - off)),
        }[end]

        if not any(slot.batch for slot in base.slots):
            return None

        def runs(batch: int) -> bool:
            return runs_under(base, settings, limit, sizes_with_batch(base, batch / recorded, end))

        # What tensors hold grows nearly in a line: it says where to look.
        one, two = (replay(base, settings, sizes=sizes_with_batch(base, ratio)).peak_allocated for ratio in (1.0, 2.0))
        guess = max(1, min(_MOST_SAMPLES, int(recorded * (1 + (limit - one) / max(two - one, 1)))))
        works, fails = 0, 0
        # Mostly one batch that runs and one that does not are found next to it.
        step = max(1, guess // 100)
        if runs(guess):
            works, fails = guess, guess + step
            while fails < _MOST_SAMPLES and runs(fails):
                works, step = fails, 2 * step
                fails += step
        else:
            works, fails = max(guess - step, 0), guess
            while works and not runs(works):
                fails, step = works, 2 * step
                works = max(works - step, 0)
        # To a quarter of a percent, which is less than the forecast is sure of.
        while fails - works > max(1, works // 400):
            middle = (works + fails) // 2
            if runs(middle):
                works = middle
            else:
                fails = middle
        return works

    def assumptions(self, request: PlanRequest, room: Capacity | None) -> list[str]:
        """What the figures rest on."""
        facts = self._view.profile.facts
        assumptions = ["One process has the GPU, and every step is like the recorded one with the highest peak."]
        if not facts.storages:
            assumptions.append(
                "What was there before the recording is derived from the sizes of gradients: the file has no "
                "list of storages."
            )
        unknown = sum(slot.bytes for slot in self.program.slots if not slot.batch_known)
        if "batch_size" in changes_of(self._view, request) and unknown:
            assumptions.append(
                "Workspaces of libraries are taken to grow as their kind usually does; the interval has both ends."
            )
        if request.precision is not None and unknown:
            assumptions.append(
                "Workspaces of libraries are taken to be half as large as in FP32; the interval has none and all of it."
            )
        if request.expandable_segments or self._settings.expandable:
            assumptions.append("Expandable segments are replayed as one growing stretch per pool.")
        if room is not None and room.source == "data sheet":
            assumptions.append(
                f"The memory of the {room.gpu} is its data sheet's, less what error correction and a CUDA "
                "context may take; its libraries may choose other workspaces."
            )
        unmeasured = [kind for kind in changes_of(self._view, request) if not SPREADS[kind].measured]
        if unmeasured:
            assumptions.append(f"Intervals of changes of {', '.join(unmeasured)} are set, not measured.")
        if request.shard == TENSOR_PARALLEL:
            whole = with_batch(
                self._rewritten(replace(request, shard=None, gpus=1)),
                batch_ratio(self._view, request),
            )
            sums = exchanged(self._view, whole)
            assumptions.append(
                f"Linear layers are cut in {len(sums) // 2} pairs, by columns and by rows: {len(sums)} all-reduces a "
                f"step of {sum(sums) / 1e6:,.0f} MB in all, in place. Each GPU runs the same batch; embeddings, head "
                "and layers without a partner stay whole."
            )
        elif request.shard is not None:
            assumptions.append(
                "Each GPU runs the whole batch size; NCCL's own buffers and the pools of side streams are not counted."
            )
            if request.shard in REPLICATED:
                assumptions.append(
                    "DDP builds its buckets again in the second step, and the old ones stay for up to 0.1 s: the "
                    "upper ends of the intervals have both."
                )
        if request.precision == "fp8":
            assumptions.append(
                "Matrix products keep both inputs in 8 bits; where the library keeps them in half precision it takes "
                "what BF16 does, which is in the interval. Scales and their histories are not counted."
            )
        if request.checkpoint:
            assumptions.append("A checkpointed module is computed again as it was the first time.")
        return assumptions


def _held(program: StepProgram, kind: HeldKind) -> int:
    return sum(program.workspaces.values()) if kind == HeldKind.WORKSPACE else program.held_bytes(kind)


@per_view
def planner(view: ProfileView) -> MemoryPlanner:
    """The planner of a run, kept with it.

    Raises:
        PlanError: its memory was not recorded, or its allocator is not PyTorch's own.
    """
    return MemoryPlanner(view)


@dataclass(frozen=True, slots=True)
class BatchThatFits:
    """Bytes: at the peak, of it independent of the batch (0 where unknown), and what the process could hold;
    ``samples`` is the largest batch that fits into the share of it that was asked for, by ``source``."""

    peak: int
    steady: int
    available: int
    samples: int
    source: Literal["replay", "line"]


def batch_that_fits(view: ProfileView, selection: Selection, fill: float) -> BatchThatFits | None:
    """The largest batch on the run's GPU; None where batch size, peak or the GPU's memory were not recorded.

    Args:
        view: the run.
        selection: iterations whose peak counts.
        fill: share of the memory to use.
    """
    facts = view.profile.facts
    room, peak = capacity(view), _recorded_peak(view, selection) or facts.peak_memory_allocated_bytes
    if not facts.batch_size or not peak:
        return None
    if room is None:
        return None
    available = room.least
    # What stays between steps is taken for 0 where it is unknown: then too few samples seem to fit, not too many.
    steady = min(facts.steady_memory_bytes or 0, peak)
    try:
        largest = planner(view).largest_batch(PlanRequest(), replace(room, least=int(fill * available)))
    except PlanError:
        largest = None
    if largest is not None:
        return BatchThatFits(peak, steady, available, largest, "replay")
    samples = int(facts.batch_size * (fill * available - steady) / max(peak - steady, 1))
    return BatchThatFits(peak, steady, available, max(samples, 0), "line")


def _recorded_peak(view: ProfileView, selection: Selection) -> int | None:
    peaks = []
    for device in recorded_devices(view.profile):
        memory = DeviceMemory(view, device) if device != CPU else None
        if memory is not None and memory.has_totals:
            peaks.append(memory.peak(memory.window(selection.first, selection.last)).allocated)
    return max(peaks, default=None)
