"""Cuts a recording into one Timeline for each process that used a GPU, and decides which ranges are ops."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.dtypes import dtype_named
from tb_dlprof_plugin.model.grouping import distinct, group_rows
from tb_dlprof_plugin.model.lookup import rows_with, take_or, take_rows
from tb_dlprof_plugin.model.process_groups import ProcessGroup
from tb_dlprof_plugin.model.timeline import (
    CounterSamples,
    DeviceEvents,
    HostEvents,
    HostKind,
    Ints,
    MemoryEvents,
    PythonFrames,
    StepMarks,
    Timeline,
    TraceNote,
)
from tb_dlprof_plugin.names.ops import MODULE_PREFIX
from tb_dlprof_plugin.readers.cupti.communication import communications_of, process_groups
from tb_dlprof_plugin.readers.cupti.processes import processes, rank_numbers
from tb_dlprof_plugin.readers.cupti.range_facts import in_ops, launched_by_programs
from tb_dlprof_plugin.readers.cupti.recording import CuptiRecording, ProcessFacts
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.nvtx import xla
from tb_dlprof_plugin.readers.nvtx.emit_nvtx import Emitted
from tb_dlprof_plugin.readers.nvtx.iterations import FOUND_BY_EXECUTIONS, MarkedRanges, iterations
from tb_dlprof_plugin.readers.nvtx.meanings import LEFT_OUT, Meanings, framework_of, meanings
from tb_dlprof_plugin.readers.nvtx.nesting import parent_rows
from tb_dlprof_plugin.readers.nvtx.parts import stated_parts
from tb_dlprof_plugin.readers.nvtx.ranges import NvtxRanges
from tb_dlprof_plugin.readers.nvtx.structure import by_structure, of_xla
from tb_dlprof_plugin.readers.options import Markers
from tb_dlprof_plugin.readers.sqlite_tables import MISSING
from tb_dlprof_plugin.readers.warm_up import without_warm_up

_LONGEST_RECORDING_NS = 2**46  # 19.5 hours: what starts or lasts longer is a broken clock
_MODULE, _RANGE, _CALL = 0, 1, 2  # at the same times, what stands first is around what follows


def timelines(recording: CuptiRecording, markers: Markers, nothing: str) -> list[Timeline]:
    """The Timelines of the processes with GPU work; where none has any, of those with ranges or CUDA calls.

    Args:
        recording: of all processes.
        markers: the convention of the ranges.
        nothing: what to say, after the file's name, where there is neither.

    Raises:
        TraceError: there is nothing that counts.
    """
    _sound(recording)
    if markers is Markers.NONE:
        recording.ranges = NvtxRanges.none()
    if not len(recording.activities) and not len(recording.ranges):
        raise TraceError(f"{recording.source} {nothing}")
    keys, notes = processes(recording)
    all_meanings = _all_meanings(recording, markers)
    groups = process_groups(recording.nccl.communicators, rank_numbers(keys, recording))
    made = [_Process(recording, key, markers, *all_meanings).timeline(len(keys), groups) for key in keys]
    for timeline in made:
        timeline.notes.extend(notes)
    return made


def _sound(recording: CuptiRecording) -> None:
    """Takes out rows with absurd times, ends before their start, and what is open ends with the recording."""
    tables = (recording.calls, recording.activities, recording.overhead, recording.ranges)
    starts = np.concatenate([table.start_ns for table in tables])
    starts = starts[(starts > -(2**62)) & (starts < 2**62)]
    middle = int(np.sort(starts)[len(starts) // 2]) if len(starts) else 0
    lost, last = 0, middle
    for name in ("calls", "activities", "overhead", "ranges"):
        table = getattr(recording, name)
        start, stop = table.start_ns, table.stop_ns
        in_reach = (start > middle - _LONGEST_RECORDING_NS) & (start < middle + _LONGEST_RECORDING_NS)
        open_ = stop == MISSING
        kept = in_reach & (open_ | ((stop > middle - _LONGEST_RECORDING_NS) & (stop < middle + _LONGEST_RECORDING_NS)))
        if not kept.all():
            lost += int((~kept).sum())
            table = take_rows(table, kept)
            setattr(recording, name, table)
        ended = table.stop_ns[table.stop_ns != MISSING]
        last = max(last, int(ended.max(initial=middle)), int(table.start_ns.max(initial=middle)))
    for name in ("calls", "activities", "overhead", "ranges"):
        table = getattr(recording, name)
        stop = np.where(table.stop_ns == MISSING, last, table.stop_ns)
        table.stop_ns = np.maximum(stop, table.start_ns)
    if lost:
        recording.notes.append(TraceNote("absurd_time", "Events with impossible times were left out.", lost))


def _all_meanings(recording: CuptiRecording, markers: Markers) -> tuple[Ints, Meanings]:
    """Per range the row of its meaning, and the meanings of all texts."""
    ranges = recording.ranges
    if not len(ranges):
        return np.zeros(0, dtype=np.int64), meanings([], markers, recording.tables)
    (text, domain), row = group_rows(ranges.text, ranges.domain)
    texts, domains = recording.texts, recording.domains
    pairs = [(texts[t], domains[d]) for t, d in zip(text.tolist(), domain.tolist(), strict=True)]
    return row, meanings(pairs, markers, recording.tables)


class _Process:
    """One process of a recording."""

    def __init__(self, recording: CuptiRecording, key: int, markers: Markers, row: Ints, found: Meanings) -> None:
        self._recording, self._key, self._markers, self._found = recording, key, markers, found
        self._facts = recording.processes.get(key, ProcessFacts())
        self._calls = take_rows(recording.calls, recording.calls.process == key)
        self._activities = take_rows(recording.activities, recording.activities.process == key)
        self._overhead = take_rows(recording.overhead, recording.overhead.process == key)
        mine = recording.ranges.process == key
        kept = mine & (found.kind[row] != LEFT_OUT) if len(row) else mine
        self._ranges = take_rows(recording.ranges, kept)
        self._row = row[kept]
        self._texts = [text.name if isinstance(text, Emitted) else text for text in recording.texts]

    def timeline(self, processes: int, groups: list[ProcessGroup]) -> Timeline:
        """The process's Timeline; ``processes`` is how many the recording has, ``groups`` are its communicators."""
        recording, tables = self._recording, self._recording.tables
        call_thread, overhead_thread, range_thread = self._threads()
        thread_numbers = dict(zip(self._ranges.thread.tolist(), range_thread.tolist(), strict=True))
        kind, name, steps = self._kinds(range_thread)
        notes: list[TraceNote] = []
        if steps is not None and steps.found_by == FOUND_BY_EXECUTIONS:
            steps, notes = without_warm_up(steps)
        host = self._host(kind, name, range_thread, call_thread, overhead_thread)
        device = self._device()
        first = min(int(table.start_ns.min()) for table in (host, device) if len(table))
        for start in (host.start_ns, device.start_ns):
            start -= first
        frames = self._frames(range_thread, first)
        if steps is not None:
            steps = StepMarks(steps.number, steps.start_ns - first, steps.stop_ns - first, steps.found_by)
        communications = communications_of(recording, self._key, thread_numbers, first, groups)
        used = set(distinct(device.device).tolist()) if len(device) else set()
        return Timeline(
            source=recording.source,
            base_time_unix_ns=recording.epoch_unix_ns + first,
            strings=list(tables.strings.values),
            host=host,
            device=device,
            launch_configs=recording.configs,
            device_properties=[one for one in self._facts.devices if one.id in used or not used],
            rank=self._facts.rank,
            cuda_driver_version=recording.cuda_driver_version,
            notes=[*recording.notes, *self._notes(), *notes],
            frames=frames,
            frame_places=tables.places.values,
            events=recording.rows if processes == 1 else len(host) + len(device),
            input_shapes=tables.shapes.values,
            input_dtypes=tables.dtypes.values,
            format=recording.format,
            framework=framework_of(self._found.conventions, self._kernel_names(), self._range_texts()),
            system=recording.system,
            step_marks=steps,
            stated_ops={tables.strings.add(name): stated for name, stated in tables.stated.items()},
            by_time=True,
            tensor_samples=self._samples(first, used),
            memory=self._memory(first, call_thread),
            communications=communications,
            process_groups=groups,
        )

    def _threads(self) -> tuple[Ints, Ints, Ints]:
        """The number of the thread of each call's, overhead's and range's.

        Start/end ranges of a domain in which one ends on another thread belong to no thread's calls: they get a lane of
        their own behind the threads.
        """
        ranges = self._ranges
        keys = np.unique(np.concatenate((self._calls.thread, self._overhead.thread, ranges.thread)))
        number = [
            np.searchsorted(keys, column) for column in (self._calls.thread, self._overhead.thread, ranges.thread)
        ]
        lanes = ~ranges.nested & (ranges.end_thread != ranges.thread)
        crossing = distinct(ranges.domain[lanes]) if lanes.any() else np.zeros(0, dtype=np.int64)
        for lane, domain in enumerate(crossing.tolist()):
            number[2] = np.where(~ranges.nested & (ranges.domain == domain), len(keys) + lane, number[2])
        of_calls, of_overhead, of_ranges = (column.astype(np.int64) for column in number)
        return of_calls, of_overhead, of_ranges

    def _kinds(self, thread: Ints) -> tuple[Ints, Ints, StepMarks | None]:
        """Kind and name of each range, and the iterations that they mark."""
        meaning, row, tables = self._found, self._row, self._recording.tables
        kind, name, users = meaning.kind[row], meaning.name[row], meaning.users[row]
        if not len(row):
            return kind, name, None
        of_domain = np.array([domain == xla.DOMAIN for domain in self._recording.domains], dtype=np.bool_)
        of_thunk = np.array([xla.is_xla(text) for text in self._texts], dtype=np.bool_)
        of_xla_rows = of_domain[self._ranges.domain] | of_thunk[self._ranges.text]
        # What lies in what matters to these alone, and ops of PyTorch are many.
        matters = np.flatnonzero(users | of_xla_rows)
        inner = parent_rows(thread[matters], self._ranges.start_ns[matters], self._ranges.stop_ns[matters])
        parent = np.full(len(row), -1, dtype=np.int64)
        parent[matters] = take_or(matters, inner, -1)
        steps, marks = iterations(
            MarkedRanges(
                thread, self._ranges.start_ns, self._ranges.stop_ns, self._ranges.text, kind, users, parent,
                *launched_by_programs(self._ranges, self._texts, parent, self._calls, self._activities),
                in_ops(self._ranges, thread, kind, name, users, tables.strings.values), self._texts,
            )
        )  # fmt: skip
        kind = of_xla(kind, name, of_xla_rows, parent, tables.strings.values)
        own = users & ~marks
        by_hand = self._markers is Markers.RANGES or (
            self._markers in (Markers.AUTO, Markers.TENSORFLOW) and not (kind == HostKind.OP).any()
        )
        if by_hand:
            kind, name = by_structure(own, kind, name, parent, tables.strings)
        parts = stated_parts(own, self._texts, self._ranges.text, kind, name, parent, tables.strings.values)
        for text, stated in parts.items():
            tables.stated.setdefault(text, stated)
        return kind, name, steps

    def _host(self, kind: Ints, name: Ints, range_thread: Ints, call_thread: Ints, overhead_thread: Ints) -> HostEvents:
        meaning, row, ranges, tables = self._found, self._row, self._ranges, self._recording.tables
        strings = tables.strings
        # A module's range and the module of an op are named as the hook names its own.
        modules = kind == HostKind.PYTHON_MODULE
        paths = {
            index: strings.add(MODULE_PREFIX + strings.values[index]) for index in np.unique(name[modules]).tolist()
        }
        named = name.copy()
        for index, path in paths.items():
            named[modules & (name == index)] = path
        works_for = (
            np.flatnonzero((meaning.module[row] > 0) & (kind == HostKind.OP)) if len(row) else modules.nonzero()[0]
        )
        of_module = meaning.module[row][works_for]
        module_names = np.zeros(len(strings.values) + 1, dtype=np.int64)
        for index in np.unique(of_module).tolist():
            module_names[index] = strings.add(MODULE_PREFIX + strings.values[index])
        backward = meaning.backward[row] if len(row) else np.zeros(0, dtype=np.bool_)
        count, calls, overhead = len(ranges), self._calls, self._overhead

        def column(of_ranges: Ints, of_modules: int | Ints, of_calls: int | Ints, of_overhead: int | Ints) -> Ints:
            parts = ((of_modules, len(works_for)), (of_calls, len(calls)), (of_overhead, len(overhead)))
            return np.concatenate(
                [of_ranges, *(np.full(n, p, dtype=np.int64) if isinstance(p, int) else p for p, n in parts)]
            )

        duration, module_duration = ranges.stop_ns - ranges.start_ns, (ranges.stop_ns - ranges.start_ns)[works_for]
        columns = {
            "name": column(named, module_names[of_module], calls.name, overhead.name),
            "kind": column(
                np.where(modules, int(HostKind.ANNOTATION), kind), int(HostKind.ANNOTATION), int(HostKind.RUNTIME),
                int(HostKind.OVERHEAD),
            ),
            "thread": column(range_thread, range_thread[works_for], call_thread, overhead_thread),
            "start_ns": column(ranges.start_ns, ranges.start_ns[works_for], calls.start_ns, overhead.start_ns),
            "duration_ns": column(
                duration, module_duration, calls.stop_ns - calls.start_ns, overhead.stop_ns - overhead.start_ns
            ),
            "correlation": column(np.full(count, -1, dtype=np.int64), -1, calls.correlation, -1),
            "external_id": column(np.maximum(meaning.op_id[row], ranges.op_id), -1, -1, -1),
            "sequence_number": column(np.maximum(meaning.sequence_number[row], ranges.sequence_number), -1, -1, -1),
            # The forward op's thread is not recorded: any number above 0 says that this is a backward node.
            "forward_thread": column(np.where(backward, 1, -1), -1, -1, -1),
            "shapes": column(meaning.shapes[row], 0, 0, 0),
            "dtypes": column(meaning.dtypes[row], 0, 0, 0),
        }  # fmt: skip
        self._add_sizes(columns["shapes"], columns["dtypes"])
        rank = column(np.where(modules, _MODULE, _RANGE), _MODULE, _CALL, _CALL)
        order = np.lexsort((rank, -columns["duration_ns"], columns["start_ns"], columns["thread"]))
        return HostEvents(**{key: values[order] for key, values in columns.items()})

    def _add_sizes(self, shapes: Ints, dtypes: Ints) -> None:
        """Sets the inputs of collectives that say their bytes, in columns whose first rows are the ranges."""
        sizes = self._ranges.input_bytes
        tables = self._recording.tables
        for size in distinct(sizes[sizes >= 0]).tolist():
            rows = np.flatnonzero(sizes == size)
            shapes[rows] = tables.shapes.add(((size,),))
            dtypes[rows] = tables.dtypes.add((dtype_named("unsigned char"),))

    def _device(self) -> DeviceEvents:
        one = self._activities
        stream = one.stream
        pairs, _ = group_rows(np.maximum(one.device, -1), np.maximum(stream, -1), np.maximum(one.context, -1))
        together = np.unique(np.stack(pairs[:2]), axis=1).shape[1] if len(one) else 0
        if len(one) and together < len(pairs[0]):
            # Streams are numbered in each context.
            _, stream = group_rows(np.maximum(one.context, -1), np.maximum(stream, -1))
        order = np.argsort(one.start_ns, kind="stable")
        columns = {
            "name": one.name, "kind": one.kind, "device": np.maximum(one.device, 0), "stream": stream,
            "start_ns": one.start_ns, "duration_ns": one.stop_ns - one.start_ns,
            "correlation": np.where(one.external_id > 0, -1, one.correlation), "external_id": one.external_id,
            "bytes": one.bytes, "config": one.config,
        }  # fmt: skip
        return DeviceEvents(**{key: values[order] for key, values in columns.items()})

    def _frames(self, thread: Ints, first: int) -> PythonFrames:
        if not len(self._row):
            return PythonFrames.none()
        place = self._found.place[self._row]
        rows = np.flatnonzero(place > 0)
        ranges = self._ranges
        return PythonFrames(
            place[rows], thread[rows], ranges.start_ns[rows] - first, (ranges.stop_ns - ranges.start_ns)[rows]
        )

    def _samples(self, first: int, used: set[int]) -> CounterSamples:
        """Those of the GPUs that the process used, by CUDA's ordinals."""
        samples, ordinals = self._recording.tensor_samples, self._facts.ordinals
        if not len(samples):
            return samples
        device = np.array([ordinals.get(gpu, gpu if not ordinals else -1) for gpu in samples.device.tolist()], np.int64)
        in_reach = np.abs(samples.time_ns - first) < _LONGEST_RECORDING_NS
        rows = np.flatnonzero(in_reach & np.isin(device, sorted(used)))
        rows = rows[np.lexsort((samples.time_ns[rows], device[rows]))]
        return CounterSamples(samples.time_ns[rows] - first, device[rows], samples.percent[rows], samples.metric)

    def _memory(self, first: int, call_thread: Ints) -> MemoryEvents:
        made = self._recording.memory
        rows = np.flatnonzero((made.process == self._key) & (np.abs(made.time_ns - first) < _LONGEST_RECORDING_NS))
        correlation = made.correlation[rows]
        thread = take_or(
            call_thread, np.where(correlation > 0, rows_with(self._calls.correlation, correlation), -1), -1
        )
        unknown = np.full(len(rows), -1, dtype=np.int64)
        return MemoryEvents(
            made.time_ns[rows] - first,
            thread,
            made.device[rows],
            made.address[rows],
            made.bytes[rows],
            unknown,
            unknown,
        )

    def _kernel_names(self) -> list[str]:
        strings = self._recording.tables.strings.values
        return [strings[index] for index in np.unique(self._activities.name).tolist()]

    def _range_texts(self) -> list[str]:
        return [self._texts[index] for index in np.unique(self._ranges.text).tolist()]

    def _notes(self) -> list[TraceNote]:
        notes = []
        activities, strings = self._activities, self._recording.tables.strings.values
        if len(activities):
            duration = activities.stop_ns - activities.start_ns
            graph = np.array([text.startswith(GRAPH_PREFIX) for text in strings], dtype=np.bool_)[activities.name]
            if graph.any():
                share = 100 * int(duration[graph].sum()) / max(1, int(duration.sum()))
                notes.append(
                    TraceNote(
                        "whole_graphs",
                        f"{share:.0f} % of the GPU's time ran in CUDA graphs that were recorded whole: their kernels "
                        "are not recorded. nsys profile --cuda-graph-trace=node records each.",
                        int(graph.sum()),
                    )
                )
        if not len(activities):
            notes.append(
                TraceNote("no_gpu_trace", "No kernel was recorded; nsys profile --trace=cuda,nvtx records kernels too.")
            )
        return notes


GRAPH_PREFIX = "CUDA graph "
"""Before the number of a graph that was recorded whole."""
