"""The ``on_trace_ready`` callable: a drop-in for ``torch.profiler.tensorboard_trace_handler``.

In the training process the trace is written exactly as torch writes it, facts are read and a process is started, which
does the rest. Nothing here raises: a failure is a `TbDlprofWarning`, and the training continues.
"""

from __future__ import annotations

import itertools
import os
import shlex
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.capture import arguments
from tb_dlprof_plugin.capture.analysis_job import SPOOL, AnalysisJob
from tb_dlprof_plugin.capture.around_window import OutsideSteps
from tb_dlprof_plugin.capture.compiled.compilations import COMPILATIONS
from tb_dlprof_plugin.capture.compiled.provenance import PROVENANCE
from tb_dlprof_plugin.capture.export import TraceExportError, export_trace, remove, why_not_writable
from tb_dlprof_plugin.capture.facts.collect import collect_facts
from tb_dlprof_plugin.capture.facts.garbage import GarbageWatch
from tb_dlprof_plugin.capture.facts.gpu_memory import PeakMemory
from tb_dlprof_plugin.capture.facts.identity import (
    default_worker_name,
    new_session,
    rank_and_world_size,
    safe_session,
    shared_session,
)
from tb_dlprof_plugin.capture.facts.loader import dataloader_facts
from tb_dlprof_plugin.capture.facts.machine import system_of_training
from tb_dlprof_plugin.capture.facts.optimizer import OptimizerWatch
from tb_dlprof_plugin.capture.loader.watch import LOADERS
from tb_dlprof_plugin.capture.modules import ModuleRanges
from tb_dlprof_plugin.capture.process_pool import EXIT_WAIT_S, AnalysisProcess, reap, start_analysis, wait_for_analysis
from tb_dlprof_plugin.capture.record_options import NAMES, RecordOptions
from tb_dlprof_plugin.capture.user_profiler import follow
from tb_dlprof_plugin.capture.warn import probe, warn
from tb_dlprof_plugin.interop.torch_tb_profiler.file_names import copy_name, original_name
from tb_dlprof_plugin.interop.torch_tb_profiler.wanted import wants_copy
from tb_dlprof_plugin.model import addresses
from tb_dlprof_plugin.model.run_facts import LossScale, RunFacts, System
from tb_dlprof_plugin.model.shell_path import shell_path

_handler_numbers = itertools.count()
_MOST_LOSS_SCALES = 1000
"""Each profile holds those of the cycles before it."""


def trace_handler(
    logdir: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,
    *,
    subdirectory: str | None = None,
    model: Any = None,
    dataloader: Any = None,
    optimizer: Any = None,
    batch_size: int | None = None,
    run_name: str | None = None,
    rank: int | None = None,
    session: str | None = None,
    keep_trace: bool = True,
    pytorch_views: bool | None = None,
    module_ranges: bool = True,
    exit_wait_s: float = EXIT_WAIT_S,
    use_python_export: bool = False,
) -> TraceHandler:
    """An ``on_trace_ready`` for ``torch.profiler.profile``, and so for Lightning and Accelerate, which pass it on.

    Writes the trace to ``logdir``, and starts a separate process that writes the profile next to it, and a trace that
    the PyTorch Profiler tab can read.

    Args:
        logdir: the run's directory; made if missing. At an address such as "s3://bucket/runs/fp32" the profiles are
            written alone; traces do not leave the machine.
        worker_name: unique for each worker; ``{hostname}_{pid}`` by default.
        use_gzip: compress the trace. The separate process does it, the training does not wait.
        subdirectory: write the event file to this directory under ``logdir``: needed where a SummaryWriter writes to
            ``logdir`` itself and TensorBoard runs with ``--load_fast=false``, which reads only a directory's last file.
        model: the ``torch.nn.Module`` in training: records its facts, and ranges named after its modules.
        dataloader: the training's DataLoader, for its settings.
        optimizer: by default the first one that steps.
        batch_size: by default that of the model's inputs.
        run_name: shown with the run's directory.
        rank: by default that of torch.distributed, else RANK, else 0.
        session: names this training run; by default one name for all ranks of a torch.distributed run.
        keep_trace: False removes the trace once its profile is written.
        pytorch_views: leave what the PyTorch Profiler tab (torch-tb-profiler 0.4.3) reads as a rewritten trace with
            right device times and steps; the trace as torch writes it is then in the subdirectory ``kineto``. By
            default where torch-tb-profiler is installed and the trace is kept; TB_DLPROF_PYTORCH_VIEWS=0 or 1 overrides
            it.
        module_ranges: False leaves the model without hooks.
        exit_wait_s: seconds that the interpreter's exit waits for a running analysis.
        use_python_export: as in torch, for versions that have it.
    """
    given = {name: value for name, value in locals().items() if name in NAMES}
    return TraceHandler(**given).begin(arguments.flag("module_ranges", module_ranges, True))


class TraceHandler:
    """Handles the traces of one training process; see `trace_handler` for the arguments."""

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        worker_name: str | None = None,
        use_gzip: bool = False,
        **options: Any,
    ) -> None:
        given = RecordOptions(logdir=logdir, worker_name=worker_name, use_gzip=use_gzip, **options)
        self._options = given
        # Absolute from here on: the training may change its working directory, and the analysis process has another
        # one.
        self.has_logdir = given.logdir is not None
        """Otherwise nothing is recorded."""
        self.logdir = addresses.with_slashes(os.fspath(given.logdir or os.curdir))
        remote = addresses.is_remote(self.logdir)
        if not remote:
            self.logdir = os.path.abspath(self.logdir)
        # Traces wait here for their analysis. Where profiles are written to a store, only these leave the machine.
        self._folder = tempfile.mkdtemp(prefix=SPOOL) if remote else self.logdir
        self.cycle = 0
        self.ranges: ModuleRanges | None = None
        self.watch = OptimizerWatch()
        self.garbage = GarbageWatch()
        self.peaks = PeakMemory()
        self._user_of_loaders = object()
        self.outside = OutsideSteps(self._folder)
        self.goes_on: Callable[[TraceHandler, Any], bool] = follow
        """Whether steps after a recording by this profiler are going to be measured."""
        self.announces = False
        """Whether rank 0 prints a line about its first recording, when that is analysed."""
        self._event_directory = addresses.join(self.logdir, given.subdirectory) if given.subdirectory else self.logdir
        # The settings are read now and the loader is not kept: if a loader with persistent workers lives until the
        # interpreter's exit, torch waits five seconds there for each worker.
        self._loader_facts = probe(lambda: dataloader_facts(given.dataloader))
        self._loader_kind = type(given.dataloader)
        given.dataloader = None
        self._keep_trace = given.keep_trace and not remote
        wants = given.pytorch_views
        self._pytorch_views = (wants_copy(self._keep_trace) if wants is None else wants) and not remote
        self._session = None if given.session is None else safe_session(given.session)
        self._own_session = new_session()
        self._number = next(_handler_numbers)
        self._loss_scales: list[LossScale] = []
        self._system: System | None = None
        self._workers: list[AnalysisProcess] = []
        self._awaiting: AnalysisProcess | None = None
        self._announcing: AnalysisProcess | None = None
        self._finalizer: Any = None
        self._pid = os.getpid()
        if self.has_logdir:
            PROVENANCE.install()
            COMPILATIONS.install()
        where = self._folder if remote else self._event_directory
        why = probe(lambda: why_not_writable(where)) if self.has_logdir else None
        if why is not None:
            warn(f"{where} cannot be written ({why}), so there will be no profile: choose another logdir.")

    @property
    def session(self) -> str:
        """Name of this training run in TensorBoard; determined on first use."""
        if self._session is None:
            self._session = shared_session(self._number, self._own_session)
        return self._session

    def begin(self, module_ranges: bool = True) -> TraceHandler:
        """Observe model and optimizer, until `close` or until the handler is garbage-collected."""
        if not self.has_logdir:
            return self
        ranges = make_ranges(self._options.model, on_outermost=self.peaks.begin) if module_ranges else None
        self.ranges = ranges
        watch, garbage = self.watch, self.garbage
        if ranges is not None:
            probe(ranges.install)
        probe(watch.install)
        probe(garbage.install)
        self.watch_loaders()
        self._finalizer = weakref.finalize(self, _stop_watching, ranges, watch, garbage, self._user_of_loaders)
        self._finalizer.atexit = False
        return self

    def watch_loaders(self) -> None:
        """Measure the DataLoaders that the training iterates over, until `close`. Never raises."""
        LOADERS.install(self._user_of_loaders)
        LOADERS.watch_foreign(self._loader_kind)

    def close(self) -> None:
        """Remove the hooks from model, optimizer and DataLoaders. Traces can still be handled."""
        LOADERS.remove(self._user_of_loaders)
        if self._finalizer is not None:
            self._finalizer()

    @property
    def awaits_after(self) -> bool:
        """Whether steps after the last recording are still being measured."""
        self._forget_parent()
        return self._awaiting is not None

    def announce(self) -> None:
        """Print the line about the first recording if its analysis has ended; does not wait. Never raises."""
        self._forget_parent()
        worker = self._announcing
        if worker is not None and probe(worker.finished):
            self._announcing = None
            worker.announce()
            self.announces = self.announces and not worker.announced

    def complete(self) -> None:
        """End the measurement after the last recording and begin its analysis. Never raises."""
        self._forget_parent()
        worker, self._awaiting = self._awaiting, None
        if worker is not None:
            worker.complete()

    def set_hooks(self, on: bool) -> None:
        """Remove the hooks from model and optimizer temporarily, or install them again; never after `close`."""
        if self._finalizer is None or not self._finalizer.alive:
            return
        for hooks in (self.ranges, self.watch, self.garbage):
            if hooks is not None:
                probe(hooks.install if on else hooks.remove)

    def release(self) -> None:
        """Drop the references to model and optimizer, so that the training can free their memory."""
        self.close()
        self._options.model = self._options.optimizer = self.ranges = None

    def __call__(self, prof: Any) -> None:
        """Export and analyse the trace of ``prof``. Never raises."""
        if not self.has_logdir:
            return
        cycle, self.cycle = self.cycle, self.cycle + 1
        self.complete()
        self.announce()
        try:
            self._handle(prof, cycle)
        except Exception as error:
            warn(f"The profile of cycle {cycle} in {self.logdir} was lost: {type(error).__name__}: {error}.")
        probe(reap)
        if self.ranges is not None:
            probe(self.ranges.new_cycle)
        self.watch.new_cycle()
        self.garbage.new_cycle()
        self.peaks.forget()
        LOADERS.new_cycle()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for this handler's running analyses, ``timeout`` seconds at most; whether all profiles were written."""
        self.complete()
        workers, self._workers = self._workers, []
        return wait_for_analysis(timeout, workers)

    def _handle(self, prof: Any, cycle: int) -> None:
        rank, world_size = rank_and_world_size()
        rank = rank if self._options.rank is None else self._options.rank
        if not self._options.worker_name:
            self._options.worker_name = default_worker_name()
        stem = f"{self._options.worker_name}.{time.time_ns()}"
        final, tab_copy = f"{stem}.pt.trace.json{'.gz' if self._options.use_gzip else ''}", ""
        if self._pytorch_views:
            final, tab_copy = original_name(stem, self._options.use_gzip), os.path.join(self._folder, copy_name(stem))
        trace = final = os.path.join(self._folder, final)
        if self._options.use_gzip or self._pytorch_views:
            # A name that no reader of the directory takes for a trace: the file is removed later.
            trace = os.path.join(self._folder, f".{stem}.waiting.json")
        unprofiled_ns, light = probe(self.outside.before) or ([], None)
        try:
            export_trace(prof, trace, self._options.use_python_export)
        except TraceExportError as error:
            if light is not None:
                remove(light.path)
            warn(f"The trace {final} was not written: {error}.")
            return
        job = AnalysisJob(
            trace=trace,
            final_trace=final,
            keep_trace=self._keep_trace,
            event_directory=self._event_directory,
            facts=self._facts(prof, cycle, rank, world_size),
            system=self._system_facts(),
            session=self.session,
            rank=rank,
            cycle=cycle,
            worker=self._options.worker_name,
            tab_copy=tab_copy,
            light=light,
            compiled_graphs=tuple(PROVENANCE.graphs.values()),
        )
        job.batches = probe(lambda: LOADERS.fill(job.facts))
        # Of several recordings the first: the others are in the same directory.
        if self.announces and rank == 0 and self._announcing is None:
            job.announce_as = probe(self._as_typed) or ""
        job.facts.unprofiled_before_ns = unprofiled_ns
        probe(lambda: self.outside.fill_energy(job.facts))
        goes_on = bool(probe(lambda: self.goes_on(self, prof)))
        worker = start_analysis(job, self._options.exit_wait_s, self.outside.after if goes_on else None)
        self._awaiting = worker if goes_on else None
        if worker is not None and job.announce_as:
            self._announcing = worker
        self._workers = [known for known in self._workers if not known.finished()]
        if worker is not None:
            self._workers.append(worker)

    def _forget_parent(self) -> None:
        """In a forked child: the analyses are the parent's, which alone can wait for them."""
        if self._pid != os.getpid():
            self._pid, self._workers = os.getpid(), []
            self._awaiting = self._announcing = None
            self.outside = OutsideSteps(self._folder)

    def _as_typed(self) -> str:
        """The run's directory for a shell."""
        return shlex.quote(self.logdir) if addresses.is_remote(self.logdir) else shell_path(Path(self.logdir))

    def _facts(self, prof: Any, cycle: int, rank: int, world_size: int) -> RunFacts:
        ranges = self.ranges
        options = {name: getattr(prof, name, None) for name in ("record_shapes", "with_stack", "profile_memory")}
        facts = probe(
            lambda: collect_facts(
                model=self._options.model,
                dataloader=self._loader_facts,
                optimizer=self._options.optimizer,
                watch=self.watch,
                observation=None if ranges is None else ranges.observation,
                peaks=self.peaks,
                batch_size=self._options.batch_size,
                rank=rank,
                world_size=world_size,
                run_name=self._options.run_name,
                module_ranges=ranges is not None and ranges.recorded,
                **{name: value if isinstance(value, bool) else None for name, value in options.items()},
            )
        )
        facts = facts or RunFacts()
        probe(lambda: self.garbage.fill(facts))
        probe(lambda: COMPILATIONS.fill(facts))
        if facts.grad_scaler_scale is not None:
            step = getattr(prof, "step_num", None)
            known = LossScale(cycle, facts.grad_scaler_scale, facts.grad_scaler_growth_tracker, step)
            self._loss_scales = [*self._loss_scales, known][-_MOST_LOSS_SCALES:]
            facts.loss_scales = self._loss_scales
        return facts

    def _system_facts(self) -> System:
        if self._system is None:
            self._system = probe(system_of_training) or System()
        return self._system


def make_ranges(model: Any, on_outermost: Callable[[], None] | None = None) -> ModuleRanges | None:
    """The ranges of ``model``; None where there is none, with a warning if it is not a module."""
    if model is None:
        return None
    try:
        return ModuleRanges(model, on_outermost)
    except TypeError as error:
        warn(f"The module names are not recorded: {error}.")
        return None


def _stop_watching(ranges: ModuleRanges | None, watch: OptimizerWatch, garbage: GarbageWatch, user: object) -> None:
    if ranges is not None:
        probe(ranges.remove)
    probe(watch.remove)
    probe(garbage.remove)
    LOADERS.remove(user)
