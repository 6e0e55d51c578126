"""Reads the tables of an exported report into a `CuptiRecording`.

The schema is that of the nsys that exported, and changes from version to version; tables without rows are absent. So a
table's columns are asked for, and what is not there counts as missing. What each table holds, and what is wrong in them
(``CUPTI_ACTIVITY_KIND_RUNTIME`` has a second row for a call with a backtrace, ``syncType`` lies,
``TARGET_INFO_GPU.id`` is not CUDA's ordinal): docs/inputs.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tb_dlprof_plugin.model.lookup import joined
from tb_dlprof_plugin.model.timeline import Ints, TraceNote
from tb_dlprof_plugin.readers.cupti.columns import (
    COPIES,
    LAUNCH,
    SETS,
    TIMES,
    ActivityTables,
    named,
    positive,
    process_of_calls,
    string_rows,
)
from tb_dlprof_plugin.readers.cupti.recording import (
    Activities,
    CudaCalls,
    CuptiRecording,
    MemoryCalls,
    ProcessFacts,
)
from tb_dlprof_plugin.readers.cupti.timelines import GRAPH_PREFIX
from tb_dlprof_plugin.readers.nsys.gpu_metrics import read_tensor_samples
from tb_dlprof_plugin.readers.nsys.graph_nodes import with_replayed_ranges
from tb_dlprof_plugin.readers.nsys.machine import pid_of, process_key, read_machine
from tb_dlprof_plugin.readers.nsys.memory_calls import read_memory_calls
from tb_dlprof_plugin.readers.nsys.nccl_payloads import input_bytes, nccl_calls, payloads_of
from tb_dlprof_plugin.readers.nsys.ranges import read_ranges
from tb_dlprof_plugin.readers.nvtx.emit_nvtx import Emitted
from tb_dlprof_plugin.readers.sqlite_tables import MISSING, Database, filled

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES = "NVTX_EVENTS"
OVERHEAD = "PROFILER_OVERHEAD"
STRINGS = "StringIds"
ALL = (KERNELS, COPIES, SETS, GRAPHS, RUNTIME, RANGES, OVERHEAD, STRINGS)
"""What is read row by row."""

_COMMON = (*TIMES, "globalPid", "graphNodeId")
_NAMES = ("demangledName", "shortName", "mangledName")
_BACKTRACE = 67
"""``eventClass`` of a call's second row, which has its CUDA backtrace."""
_VERSION = re.compile(r"(?:_v\d+|_ptsz|_ptds)+\Z")
_LARGEST_GRAPH = 2**40
_WARNING = 2
_LOSS = re.compile(r"(?=.*CUDA).*(?:not all|lost|dropped|incomplete|failed to collect)", re.IGNORECASE | re.DOTALL)
_TOLD_CHARACTERS = 300
_MOST_DIAGNOSTICS = 3


def read_tables(database: Database, shown: Path) -> CuptiRecording:
    """The contents of an exported report. ``shown`` is the path that the user knows it by."""
    return _NsysReader(database, shown).read()


class _NsysReader:
    def __init__(self, database: Database, shown: Path) -> None:
        self._database, self._shown = database, shown
        self._work = ActivityTables(database, _COMMON, lambda columns: process_key(columns["globalPid"]), "memKind")
        self._notes: list[TraceNote] = []

    def read(self) -> CuptiRecording:
        """Everything."""
        database = self._database
        database.expect(ALL)
        kernels = database.columns(KERNELS, (*_COMMON, _NAMES[0], *LAUNCH))
        calls = database.columns(RUNTIME, ("start", "end", "eventClass", "globalTid", "correlationId", "nameId"))
        overhead = database.columns(OVERHEAD, ("start", "end", "globalTid", "nameId"))
        ranges, texts, domains, wanted = read_ranges(database)

        kernel_name = self._kernel_names(kernels[_NAMES[0]])
        for column in (kernel_name, calls["nameId"], overhead["nameId"]):
            wanted.update(np.unique(column).tolist())
        found = database.texts(STRINGS, "id", "value", wanted)
        texts = [found.get(text, "") if isinstance(text, int) else text for text in texts]

        plain = [text.name if isinstance(text, Emitted) else text for text in texts]
        payloads = payloads_of(database, ranges, domains)
        ranges.input_bytes = input_bytes(payloads, ranges, plain)
        nccl = nccl_calls(payloads, ranges, plain)
        call_rows = self._calls(calls, found)
        parts = [self._work.kernels(kernels, kernel_name, found), self._copies(), self._work.sets(), self._graphs()]
        work = joined(parts, Activities)
        # Activities of tables that do not say the process belong to that of the call with their number.
        work.process = np.where(work.process == MISSING, process_of_calls(work, call_rows), work.process)
        ranges, notes = with_replayed_ranges(database, ranges, call_rows, self._work.tables.strings.values, work)
        self._notes += notes
        keys = np.unique(np.concatenate((work.process, ranges.process, call_rows.process))).tolist()
        machine = read_machine(database, keys)
        self._work.limit_configs(machine.limits)
        self._note_losses()
        return CuptiRecording(
            source=str(self._shown),
            format="nsys",
            tables=self._work.tables,
            calls=call_rows,
            activities=work,
            overhead=self._overhead(overhead, found),
            ranges=ranges,
            texts=texts,
            domains=domains,
            configs=self._work.configs,
            processes={
                key: ProcessFacts(
                    pid_of(key), machine.ranks.get(key), machine.devices.get(key, []), machine.ordinals.get(key, {})
                )
                for key in keys
            },
            epoch_unix_ns=machine.epoch_unix_ns,
            system=machine.system,
            cuda_driver_version=machine.cuda_driver_version,
            notes=self._notes,
            tensor_samples=read_tensor_samples(database),
            memory=self._memory(),
            nccl=nccl,
            rows=database.rows_read,
        )

    def _kernel_names(self, name: Ints) -> Ints:
        """Ids of the kernels' names, from the other columns where the usual one has none."""
        if not (name == MISSING).any():
            return name
        others = self._database.columns(KERNELS, _NAMES[1:])
        return _first_known([name, *(one for one in others.values() if len(one) == len(name))])

    def _calls(self, columns: dict[str, Ints], found: dict[int, str]) -> CudaCalls:
        kept = (columns["start"] != MISSING) & (columns["eventClass"] != _BACKTRACE)
        columns = {name: column[kept] for name, column in columns.items()}
        return CudaCalls(
            process=filled(process_key(columns["globalTid"]), -1),
            thread=filled(columns["globalTid"], -1),
            start_ns=columns["start"],
            stop_ns=columns["end"],
            correlation=positive(columns["correlationId"]),
            name=string_rows(columns["nameId"], found, self._work.tables.strings, lambda text: _VERSION.sub("", text)),
        )

    def _overhead(self, columns: dict[str, Ints], found: dict[int, str]) -> CudaCalls:
        kept = (columns["start"] != MISSING) & (columns["globalTid"] != MISSING)
        columns = {name: column[kept] for name, column in columns.items()}
        return CudaCalls(
            process=process_key(columns["globalTid"]),
            thread=columns["globalTid"],
            start_ns=columns["start"],
            stop_ns=columns["end"],
            correlation=np.full(len(columns["start"]), -1, dtype=np.int64),
            name=string_rows(columns["nameId"], found, self._work.tables.strings),
        )

    def _copies(self) -> Activities:
        copies, unified = self._work.copies()
        if unified:
            text = "Page faults copied unified memory: no call asked for these copies, and they are in no op's time."
            self._notes.append(TraceNote("unified_memory", text, unified))
        return copies

    def _graphs(self) -> Activities:
        columns = self._database.columns(GRAPHS, (*_COMMON, "graphId", "graphExecId"))
        number = np.clip(_first_known([columns["graphExecId"], columns["graphId"]]), -1, _LARGEST_GRAPH)
        names = named(
            [number], self._work.tables.strings, lambda one: f"{GRAPH_PREFIX}{one if one >= 0 else '(unknown)'}"
        )
        return self._work.graphs(columns, names)

    def _memory(self) -> MemoryCalls:
        made = read_memory_calls(self._database)
        if len(made):
            text = (
                "Memory is what CUDA handed out and took back (cudaMalloc and its kin): blocks that a framework's "
                "allocator divides up are not seen."
            )
            self._notes.append(TraceNote("memory_of_cuda", text))
        return made

    def _note_losses(self) -> None:
        self._notes += self._work.damage_notes("Export the report again.")
        told: set[str] = set()
        for levels, texts in self._database.batches("DIAGNOSTIC_EVENT", ("severity",), ("text",)):
            for level, text in zip(levels, texts, strict=True):
                serious = isinstance(level, int) and level >= _WARNING and isinstance(text, str)
                if serious and _LOSS.search(text[:2000]) and len(told) < _MOST_DIAGNOSTICS:
                    told.add(" ".join(text.split())[:_TOLD_CHARACTERS])
        self._notes += [TraceNote("nsys_warning", f"Nsight Systems says: {text}") for text in sorted(told)]


def _first_known(columns: Sequence[Ints]) -> Ints:
    """Per row the first value that is not missing."""
    result = columns[0]
    for column in columns[1:]:
        result = np.where(result == MISSING, column, result)
    return result
