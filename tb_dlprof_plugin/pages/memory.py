"""The Memory page: allocated bytes over the selected iterations, and the allocations alive at the peak."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.memory import (
    CPU,
    DeviceMemory,
    growth,
    growth_per_iteration,
    kept_allocations,
    recorded_devices,
)
from tb_dlprof_plugin.model.direction import with_direction
from tb_dlprof_plugin.model.formatting import byte_size
from tb_dlprof_plugin.model.remedies import remedies_for, sentence
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.common import SelectedRange, selected_range
from tb_dlprof_plugin.pages.memory_limits import MemoryLimits, memory_limits
from tb_dlprof_plugin.pages.memory_tables import (
    Allocators,
    MemoryAllocation,
    MemoryCategory,
    MemoryCategoryKey,
    MemoryGroup,
    MemoryMoment,
    MemoryPart,
    allocation_rows,
    held_rows,
    memory_parts,
    module_rows,
    op_type_rows,
    peak_sentence,
)
from tb_dlprof_plugin.pages.quantities import GPU_MEMORY, PEAK_ALLOCATED, PEAK_RESERVED
from tb_dlprof_plugin.pages.sentences import TextPart
from tb_dlprof_plugin.planning.memory.holders import HOLDERS
from tb_dlprof_plugin.planning.memory.memory_bill import MemoryBill
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

HOW_TO_RECORD = """\
with tb_dlprof_plugin.profile(
    "runs/memory", model=model, dataloader=loader, profile_memory=True
) as prof:
    for inputs, targets in loader:
        train_step(inputs, targets)
        prof.step()
"""

_POINTS = 2000
_ROWS = 200
_GROUPS = 500
_ITERATIONS = 500
_PARTS = 1000
_NOT_ATTRIBUTED = (
    "Categories, modules, types of op and the allocations alive at the peak are unknown: the memory events of this "
    "recording have no addresses (torch 1.8 and 1.9 write none), so frees cannot be matched with allocations."
)
_GROWING_ITERATIONS = 3
"""Fewer iterations that all grow may do so by chance: the first ones fill caches."""

_LABELS: dict[MemoryCategoryKey, tuple[str, str]] = {
    "before": (
        "Before the recording",
        (
            "Was there when the recording began and has no name in the file: without the hook's list of storages "
            "all of it. Else what is no parameter, buffer, state or workspace, and what blocks have beyond what "
            "was asked."
        ),
    ),
    "parameters": ("Parameters", "Of the model."),
    "buffers": ("Buffers", "Of the model, such as running means."),
    "optimizer_state": (
        "Optimizer state",
        "What the optimizer keeps from step to step, such as momentum.",
    ),
    "gradients": (
        "Gradients",
        "Of parameters: allocated by an op of the backward pass and there when the optimizer's step begins.",
    ),
    "activations": (
        "Activations",
        "Allocated by an op of the forward pass and kept when that op had ended: what the backward pass needs.",
    ),
    "casts": ("Casts", "Copies in another data type that the forward pass keeps, such as autocast makes of weights."),
    "activation_gradients": (
        "Gradients of activations",
        "Allocated by an op of the backward pass and kept when that op had ended, up to the next one.",
    ),
    "temporary": (
        "Temporary",
        "Freed within the op that allocated it, or within the optimizer's step: intermediate results.",
    ),
    "workspaces": (
        "Workspaces",
        "Scratch memory of libraries: freed within the op and of the size of no tensor of it, or cuBLAS' own.",
    ),
    "communication": ("Communication", "Buffers of collectives, by the op or range around them."),
    "other": ("Input and other", "The rest: batches, losses that are kept, allocations outside of any op."),
}


class MemoryDevice(msgspec.Struct, frozen=True):
    """A device whose memory was recorded; ``key`` is what the route's parameter ``device`` takes."""

    key: str
    label: str


class MemoryFigures(msgspec.Struct, frozen=True):
    """Totals of the selected iterations (bytes). ``fragmentation_bytes`` is reserved less allocated at the peak.

    Percents are of the device's memory. ``growth_bytes`` is from the end of one iteration to that of the next, their
    median; None of a single one. ``grows`` is True if each grew. ``relative`` is True if neither addresses nor totals
    were recorded: allocated bytes then count from the lowest moment of the recording, so the total and its share are
    unknown; at least ``known_before_bytes`` were allocated when the recording began.
    """

    peak_allocated_bytes: Annotated[int, PEAK_ALLOCATED]
    peak_allocated_percent: float | None
    peak_reserved_bytes: Annotated[int | None, PEAK_RESERVED]
    peak_reserved_percent: float | None
    fragmentation_bytes: Annotated[
        int | None,
        Definition(
            "memoryFragmentation",
            "Reserved less allocated bytes at the peak: held by the allocator but not by tensors.",
        ),
    ]
    fragmentation_percent: float | None
    device_memory_bytes: Annotated[int | None, GPU_MEMORY]
    growth_bytes: Annotated[
        int | None,
        Definition(
            "memoryGrowthRate",
            "From the end of an iteration to the end of the next: the median; 0 where the last one ends with no more "
            "than the first.",
        ),
    ]
    grows: bool
    relative: bool
    known_before_bytes: int


class MemoryCurve(msgspec.Struct, frozen=True):
    """Columns with one entry per moment; each holds from its time (ns after the start) to the next one's.

    ``categories`` has one column per category of the page, empty where it is unknown, and none where all are;
    ``reserved`` is empty where it was not recorded. ``moments`` counts those of the recording, of which the highest and
    lowest were kept.
    """

    time_ns: list[int]
    allocated: list[int]
    reserved: list[int]
    categories: list[list[int]]
    stop_ns: int
    moments: int


class MemoryIteration(msgspec.Struct, frozen=True):
    """One selected iteration: from ``start_ns`` after the first; ``category_bytes`` at its own peak, or empty."""

    number: Annotated[int, Column("Iteration", "Its number, as the training counts it; select one to see only it.")]
    peak_allocated_bytes: Annotated[int, Column(), PEAK_ALLOCATED]
    peak_reserved_bytes: Annotated[int | None, Column(), PEAK_RESERVED]
    growth_bytes: Annotated[int, Column("Growth", "memoryGrowth")]
    allocations: Annotated[int, Column("Allocations", "Allocations that it made.")]
    index: int
    start_ns: int
    category_bytes: list[int | None]


class MemoryPage(msgspec.Struct, frozen=True):
    """Memory of one device; all but the headline and ``how_to_record`` is empty where none was recorded.

    ``rows`` are the largest of the ``total_rows`` allocations alive at the peak, ``iterations`` at most the first 500
    selected ones. If the recording does not show which allocations are alive, ``not_attributed`` gives the reason, and
    ``categories``, ``modules``, ``op_types`` and ``rows`` are empty; else it is "". ``peak_parts`` says in words
    when the peak is and what it holds; ``parts`` sum to it, by module and category. ``limits`` is None for the
    CPU.
    """

    ref: RunRef
    headline: str
    range: SelectedRange
    how_to_record: str
    devices: list[MemoryDevice]
    device: str | None
    figures: MemoryFigures | None
    limits: MemoryLimits | None
    peak: MemoryMoment | None
    peak_parts: list[TextPart]
    categories: list[MemoryCategory]
    curve: MemoryCurve | None
    iterations: list[MemoryIteration]
    not_attributed: str
    parts: list[MemoryPart]
    modules: list[MemoryGroup]
    op_types: list[MemoryGroup]
    rows: list[MemoryAllocation]
    total_rows: int | None
    notes: list[str]


DeviceOption = Annotated[str | None, Option("Number of a GPU, or cpu; the first recorded GPU by default.")]


def memory_page(
    view: ProfileView,
    ref: RunRef,
    selection: Selection,
    device: DeviceOption = None,
) -> MemoryPage:
    """Memory of a device ("0", "cpu"); by default of the first GPU, and of the CPU where no GPU's was recorded.

    Raises:
        KeyError: memory of that device was not recorded.
    """
    devices = {device_key(number): number for number in recorded_devices(view.profile)}
    if device is not None and device not in devices:
        raise KeyError(device)
    if not devices:
        return _nothing_recorded(view, ref, selection)
    key = device if device is not None else next(iter(devices))
    return _PageOfDevice(view, selection, devices[key]).page(
        ref, [_device(view, number) for number in devices.values()], key
    )


def device_key(device: int) -> str:
    """A device's name in addresses and options: "cpu", or the GPU's number."""
    return "cpu" if device == CPU else str(device)


def _device(view: ProfileView, device: int) -> MemoryDevice:
    name = next((gpu.name for gpu in view.profile.system.gpus if gpu.id == device), None)
    label = "CPU" if device == CPU else f"GPU {device}" + (f" ({name})" if name else "")
    return MemoryDevice(device_key(device), label)


def _nothing_recorded(view: ProfileView, ref: RunRef, selection: Selection) -> MemoryPage:
    return MemoryPage(
        ref=ref,
        headline=sentence("Memory was not recorded", remedies_for(view.profile.source).memory),
        range=selected_range(view, selection),
        how_to_record=HOW_TO_RECORD if view.profile.source.format == "kineto" else "",
        devices=[], device=None, figures=None, limits=None, peak=None, peak_parts=[], categories=[], curve=None,
        iterations=[], not_attributed="", parts=[], modules=[], op_types=[], rows=[], total_rows=None, notes=[],
    )  # fmt: skip


class _PageOfDevice:
    """The page of one device and selection, part by part."""

    def __init__(self, view: ProfileView, selection: Selection, device: int) -> None:
        self.view, self.selection, self.device = view, selection, device
        self.memory = DeviceMemory(view, device)
        self.made_by, self.bill = Allocators(self.memory), MemoryBill(self.memory)
        self.window = self.memory.window(selection.first, selection.last)
        self.peak = self.memory.peak(self.window)
        self.growth = growth(self.memory, selection)
        most = self.bill.most(self.window.first, self.window.last)
        self.shown = [at for at, size in enumerate(most) if size or (size is None and HOLDERS[at] == "before")]

    def page(self, ref: RunRef, devices: list[MemoryDevice], key: str) -> MemoryPage:
        """All parts together."""
        figures, moment, categories = self._figures(), self._moment(), self._categories()
        modules, op_types, rows, total_rows = self._tables()
        label = next(item.label for item in devices if item.key == key)
        return MemoryPage(
            ref=ref,
            headline=self._headline(label, figures, categories),
            range=selected_range(self.view, self.selection),
            how_to_record=HOW_TO_RECORD if self.view.profile.source.format == "kineto" else "",
            devices=devices,
            device=key,
            figures=figures,
            limits=memory_limits(self.view, self.device) if self.device != CPU else None,
            peak=moment,
            peak_parts=peak_sentence(moment, categories, modules),
            categories=categories,
            curve=self._curve(),
            iterations=self._iterations(),
            not_attributed="" if self.memory.partners_known else _NOT_ATTRIBUTED,
            parts=memory_parts(self.made_by, self.bill, self.peak, _PARTS) if self.memory.partners_known else [],
            modules=modules[:_GROUPS],
            op_types=op_types[:_GROUPS],
            rows=rows,
            total_rows=total_rows,
            notes=self._notes(),
        )

    def _tables(self) -> tuple[list[MemoryGroup], list[MemoryGroup], list[MemoryAllocation], int | None]:
        """Modules, types of op and the largest allocations alive at the peak with their number: nothing if unknown."""
        memory, made_by, bill, peak = self.memory, self.made_by, self.bill, self.peak
        if not memory.partners_known:
            return [], [], [], None
        alive = np.flatnonzero(memory.alive(peak.state))
        largest = alive[np.argsort(-memory.bytes[alive], kind="stable")[:_ROWS]]
        modules, op_types = (rows(made_by, bill, peak, self.window) for rows in (module_rows, op_type_rows))
        rows = [*allocation_rows(made_by, bill, peak, largest), *held_rows(bill, peak)]
        rows = sorted(rows, key=lambda row: -row.bytes)[:_ROWS]
        return modules, op_types, rows, len(alive) + len(bill.held)

    def _figures(self) -> MemoryFigures:
        peak, reserved = self.peak, self.memory.peak_reserved(self.window)
        gpu = next((gpu for gpu in self.view.profile.system.gpus if gpu.id == self.device), None)
        limit = gpu.memory_bytes if gpu else None
        whole = not self.memory.relative
        fragmentation = peak.reserved - peak.allocated if whole and peak.reserved is not None else None
        return MemoryFigures(
            peak_allocated_bytes=peak.allocated,
            peak_allocated_percent=percent(peak.allocated, limit) if whole else None,
            peak_reserved_bytes=reserved,
            peak_reserved_percent=percent(reserved, limit),
            fragmentation_bytes=fragmentation,
            fragmentation_percent=percent(fragmentation, peak.reserved),
            device_memory_bytes=limit,
            growth_bytes=growth_per_iteration(self.growth),
            grows=len(self.growth) > _GROWING_ITERATIONS and min(self.growth[1:]) > 0,
            relative=self.memory.relative,
            known_before_bytes=self.memory.known_before,
        )

    def _moment(self) -> MemoryMoment:
        peak, iterations = self.peak, self.view.profile.iterations
        index = max(int(self.view.iteration_at(np.array([peak.time_ns]))[0]), self.selection.first)
        # A peak that was carried into the window has no event of its own in it.
        event = peak.state - 1 if peak.call >= 0 else None
        return MemoryMoment(
            time_ns=peak.time_ns - self.window.start_ns,
            step_time_ns=max(0, peak.time_ns - self.memory.window(index, index).start_ns),
            iteration_number=int(iterations.number[index]),
            op="" if event is None else self.made_by.op(event),
            op_id=None if event is None else self.made_by.op_id(event),
            direction="" if event is None else self.made_by.direction(event),
            allocated_bytes=peak.allocated,
        )

    def _categories(self) -> list[MemoryCategory]:
        if not self.memory.partners_known:
            return []
        at_peak, own = self.bill.at(self.peak.state), self.bill.most(self.window.first, self.window.last)
        return [
            MemoryCategory(
                HOLDERS[at], *_LABELS[HOLDERS[at]], at_peak[at], percent(at_peak[at], self.peak.allocated), own[at]
            )
            for at in self.shown
        ]

    def _curve(self) -> MemoryCurve:
        memory, window = self.memory, self.window
        states = memory.curve_states(window, _POINTS)
        time = memory.time_ns[np.maximum(states - 1, 0)] - window.start_ns
        time[0] = 0
        columns = self.bill.bytes[self.shown][:, states].tolist() if memory.partners_known else []
        if columns and not memory.before_known:
            columns[self.shown.index(HOLDERS.index("before"))] = []
        return MemoryCurve(
            time_ns=time.tolist(),
            allocated=memory.allocated[states].tolist(),
            reserved=[] if memory.reserved is None else memory.reserved[states].tolist(),
            categories=columns,
            stop_ns=window.stop_ns - window.start_ns,
            moments=window.last - window.first + 1,
        )

    def _iterations(self) -> list[MemoryIteration]:
        memory, iterations = self.memory, self.view.profile.iterations
        shown = range(self.selection.first, min(self.selection.last, self.selection.first + _ITERATIONS - 1) + 1)
        result = []
        for index, grown in zip(shown, self.growth, strict=False):
            window = memory.window(index, index)
            peak = memory.peak(window)
            result.append(
                MemoryIteration(
                    index=index,
                    number=int(iterations.number[index]),
                    start_ns=window.start_ns - self.window.start_ns,
                    peak_allocated_bytes=peak.allocated,
                    peak_reserved_bytes=memory.peak_reserved(window),
                    category_bytes=self._shown_at(peak.state) if memory.partners_known else [],
                    growth_bytes=grown,
                    allocations=int(memory.is_allocation[window.first : window.last].sum()),
                )
            )
        return result

    def _shown_at(self, state: int) -> list[int | None]:
        sizes = self.bill.at(state)
        return [sizes[at] for at in self.shown]

    def _headline(self, label: str, figures: MemoryFigures, categories: list[MemoryCategory]) -> str:
        size = byte_size(figures.peak_allocated_bytes)
        if figures.device_memory_bytes and figures.peak_allocated_percent is not None:
            share = "under 0.1" if figures.peak_allocated_percent < 0.1 else f"{figures.peak_allocated_percent:.1f}"
            size += f", {share} % of the {byte_size(figures.device_memory_bytes)} it has"
        if figures.known_before_bytes:
            size += " above its lowest moment"
        elif figures.relative:
            size += " above what was there before the recording, which is unknown"
        elif not self.memory.before_known:
            size += " of what was allocated while it recorded"
        sentence = f"{label} holds at most {size}"
        largest = max(categories, key=lambda category: category.bytes or 0, default=None)
        if largest is not None and largest.bytes and largest.percent is not None:
            verb = "was there" if largest.key == "before" else f"is {largest.label.lower()}"
            what = "before the recording began" if largest.key == "before" else ""
            sentence += f"; {largest.percent:.1f} % of it {verb} {what}".rstrip()
        if figures.known_before_bytes:
            sentence += (
                f"; what was there before the recording is unknown, at least {byte_size(figures.known_before_bytes)}"
            )
        return f"{sentence}.{self._growth_sentence(figures)}"

    def _growth_sentence(self, figures: MemoryFigures) -> str:
        """A hint at a leak, only if memory grows in every iteration."""
        if not figures.grows or not figures.growth_bytes:
            return ""
        text = f" Memory grows in each iteration, usually by {byte_size(figures.growth_bytes)}"
        text += ": something keeps tensors from step to step"
        if not self.memory.partners_known:
            return f"{text}; which op made them is unknown."
        kept = np.flatnonzero(kept_allocations(self.memory, self.selection) & (self.made_by.op_type >= 0))
        if not len(kept):
            return f"{text}."
        event = self.made_by.most_bytes(kept)
        made_by = with_direction(self.made_by.op(event), self.made_by.direction(event))
        return f"{text}, most of them made by {made_by}."

    def _notes(self) -> list[str]:
        memory = self.memory
        notes = []
        if self.device == CPU:
            notes.append(
                "The CPU's memory is counted only while the profiler records: weights and all else allocated before "
                "are in no figure."
            )
            if memory.before_known:
                notes.append(
                    "Memory left by an earlier recording of this process counts as allocated before the recording."
                )
        elif memory.relative:
            notes.append(
                "The device's totals were not recorded: allocated is the running sum of the events, counted from its "
                "lowest moment. Its share of the device's memory is unknown."
            )
        elif not memory.has_totals:
            notes.append("The device's totals were not recorded: the figures count recorded allocations only.")
        if memory.contradictions:
            notes.append(
                f"{memory.contradictions} of {len(memory)} events do not fit the device's total: the difference counts "
                "as memory from before the recording."
            )
        if self.bill.held and not self.bill.listed:
            notes.append(
                "Sizes of parameters and states from before the recording are derived from those of gradients: the "
                "file has no list of storages."
            )
        if memory.partners_known and not self.made_by.modules_recorded:
            notes.append(sentence("Module names were not recorded", remedies_for(self.view.profile.source).modules))
        return notes
