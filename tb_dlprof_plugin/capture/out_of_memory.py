"""Explains a failed allocation of GPU memory: who held what when it failed.

torch calls an observer when the GPU has refused memory even after all cached blocks were given back. The observer reads
the allocator's blocks, and the addresses of parameters, gradients, optimizer states and buffers. It cannot tell whether
the error is caught, as torch does it for a workspace of cuDNN: files are written only when the error leaves the
block of `profile`, the block of `explain_oom`, or the process. Until an allocation fails nothing of it runs.

Nothing here raises, waits for the GPU or changes the error.
"""

from __future__ import annotations

import functools
import os
import pickle
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal

import msgspec
import torch

from tb_dlprof_plugin.capture import arguments
from tb_dlprof_plugin.capture.facts.gpu_memory import allocator_settings
from tb_dlprof_plugin.capture.facts.identity import rank_and_world_size
from tb_dlprof_plugin.capture.facts.nvml import NvmlDevice
from tb_dlprof_plugin.capture.facts.storages import named_addresses
from tb_dlprof_plugin.capture.modules import walk
from tb_dlprof_plugin.capture.warn import probe, warn
from tb_dlprof_plugin.model.addresses import is_remote
from tb_dlprof_plugin.model.out_of_memory import SNAPSHOT_NAME, SUMMARY_NAME, GpuProcess, OomSummary, Pass
from tb_dlprof_plugin.model.run_facts import StorageKind
from tb_dlprof_plugin.model.shell_path import shell_path
from tb_dlprof_plugin.model.whole_file import whole_file
from tb_dlprof_plugin.readers.memory_snapshot.blocks import held_of

Stacks = Literal["stacks"]
_ENTRIES = 100_000
"""Of torch's history: two to three steps of a large model; without a limit a dump takes minutes."""
_MOST_OBSERVED_S = 5.0
"""Time that all observations may take together: where failures are caught again and again, later ones are numbers
alone."""
_PROTOCOL = 4
"""torch's viewer of snapshots reads no later one."""
_MOST_FRAMES = 20
_MOST_CAUSES = 20
_GENERATED = f"{os.sep}torchinductor_"
"""In the paths of code that torch.compile has written."""
_TORCH, _OWN = os.path.dirname(torch.__file__), os.path.dirname(__file__)


def explain_oom(
    logdir: str | os.PathLike[str] = "runs", model: Any = None, optimizer: Any = None, *, stacks: bool = False
) -> OutOfMemoryWatch:
    """From here on, a CUDA out-of-memory error that ends the process leaves an explanation for `tb-dlprof oom`.

    As a context manager it writes it where the error leaves the block, too. Without a model and an optimizer they are
    found when an allocation fails.

    Args:
        logdir: where the files go; made if missing.
        model: the ``torch.nn.Module`` in training.
        optimizer: of the training.
        stacks: record the Python stack of each allocation, up to 100,000; costs some microseconds an allocation.
    """
    directory = arguments.path_of(logdir)
    return OutOfMemoryWatch(directory, model, optimizer, bool(arguments.flag("stacks", stacks, False))).begin()


@dataclass
class _Failure:
    """One refused request, as it was observed."""

    device: int
    requested: int
    limit: int
    device_free: int
    at_s: float = field(default_factory=time.time)
    snapshot: Any = None
    names: dict[int, tuple[StorageKind, str]] = field(default_factory=dict)
    model: str = ""
    module: str = ""
    during: Pass = ""
    batch_size: int | None = None
    where: list[str] = field(default_factory=list)
    retries: int | None = None
    processes: list[GpuProcess] = field(default_factory=list)


class OutOfMemoryWatch:
    """Watches one training; see `explain_oom`. Nothing is watched without a directory."""

    def __init__(
        self,
        directory: str | os.PathLike[str] | None,
        model: Any = None,
        optimizer: Any = None,
        stacks: bool = False,
        rank: int | None = None,
        batch_size: int | None = None,
    ) -> None:
        self._directory = None if directory is None else os.fspath(directory)
        self._model, self._optimizer = _weakly(model), _weakly(optimizer)
        self._stacks, self._records = stacks, False
        self._rank, self._batch_size = rank, batch_size
        self._failure: _Failure | None = None
        self._caught = 0
        self._observed_s = 0.0
        self._watches = False
        self._pid = os.getpid()
        self.written: Path | None = None
        """The explanation, once it is written."""

    def begin(self) -> OutOfMemoryWatch:
        """Watch from now on. Never raises."""
        if self._directory is not None and is_remote(self._directory):
            warn(f"A failed allocation is not explained: {self._directory} is no directory of this machine.")
        elif self._directory is not None and not self._watches:
            self._directory = os.path.abspath(self._directory)
            self._watches = True
            _WATCHES.append(self)
            probe(_attach)
            _chain_excepthook()
            if self._stacks:
                probe(lambda: _when_initialized(self._record_stacks))
        return self

    def end(self) -> None:
        """Watch no more. Never raises."""
        if self._watches:
            self._watches = False
            _WATCHES.remove(self)
        if self._records:
            self._records = False
            probe(lambda: torch.cuda.memory._record_memory_history(enabled=None))
        self._failure = None

    def __enter__(self) -> OutOfMemoryWatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.left_by(error)
        self.end()

    def left_by(self, error: BaseException | None) -> Path | None:
        """An error leaves the training: writes the explanation if it is one of memory, once. Never raises."""
        if error is None or self.written is not None or self._failure is None or self._pid != os.getpid():
            return None
        if probe(lambda: _is_out_of_memory(error)):
            failure = self._failure
            self.written = probe(lambda: self._write(failure, str(error)))
            if self.written is not None:
                warn(f"The GPU's memory did not suffice; what held it: tb-dlprof oom {shell_path(self.written)}")
            else:
                warn(f"The GPU's memory did not suffice, and {self._directory} could not be written.")
        return self.written

    def observe(self, device: int, requested: int, limit: int, device_free: int) -> None:
        """A request was refused. Never raises, never waits for the GPU."""
        if self._pid != os.getpid():
            return
        began = time.perf_counter()
        self._caught += self._failure is not None
        failure = _Failure(device, requested, limit, device_free, batch_size=self._batch_size)
        # Before it is complete: whatever cannot be read must not lose the numbers.
        self._failure = failure
        if self._observed_s < _MOST_OBSERVED_S:
            probe(lambda: self._read(failure))
        self._observed_s += time.perf_counter() - began

    def _read(self, failure: _Failure) -> None:
        device = failure.device
        failure.snapshot = probe(torch.cuda.memory._snapshot)
        failure.retries = probe(lambda: torch.cuda.memory_stats(device).get("num_alloc_retries"))
        model, optimizers = self._objects()
        failure.names = probe(lambda: named_addresses(device, model, optimizers)) or {}
        failure.model = "" if model is None else type(model).__name__
        probe(lambda: _place(failure, model))
        failure.processes = probe(lambda: _processes(device)) or []

    def _objects(self) -> tuple[Any, list[Any]]:
        """The model and the optimizers: those that were given, else what lives and is in training."""
        model, optimizer = self._model(), self._optimizer()
        optimizers = [] if optimizer is None else [optimizer]
        if model is not None and optimizers:
            return model, optimizers
        from tb_dlprof_plugin.capture.launcher.live_objects import find_live_objects
        from tb_dlprof_plugin.capture.launcher.root_modules import as_one, choose_roots

        live = probe(find_live_objects)
        if live is None:
            return model, optimizers
        optimizers = optimizers or live.optimizers
        if model is None:
            model = probe(lambda: as_one(choose_roots(live.modules, optimizers, None)))
        return model, optimizers

    def _record_stacks(self) -> None:
        """Unless the script records already: its choice stays."""
        enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
        if self._watches and not (enabled is not None and enabled()):
            record: Any = torch.cuda.memory._record_memory_history
            record(enabled="all", context="state", stacks="python", max_entries=_ENTRIES)
            self._records = True

    def _write(self, failure: _Failure, error: str) -> Path:
        assert self._directory is not None
        folder = Path(self._directory)
        folder.mkdir(parents=True, exist_ok=True)
        rank = probe(lambda: rank_and_world_size()[0]) if self._rank is None else self._rank
        stem = f"rank{rank or 0}.{time.strftime('%Y%m%d-%H%M%S', time.localtime(failure.at_s))}-{os.getpid()}"
        path = folder / SUMMARY_NAME.format(stem=stem)
        summary = self._summary(failure, rank or 0, error)
        with whole_file(path) as file:
            file.write(msgspec.json.encode(summary))
        if failure.snapshot is not None:
            probe(lambda: _dump(failure.snapshot, folder / SNAPSHOT_NAME.format(stem=stem)))
        return path

    def _summary(self, failure: _Failure, rank: int, error: str) -> OomSummary:
        device = failure.device
        properties = probe(lambda: torch.cuda.get_device_properties(device))
        snapshot = failure.snapshot if failure.snapshot is not None else {"segments": []}
        notes = [] if failure.snapshot is not None else ["The allocator's blocks could not be read."]
        return OomSummary(
            made_s=failure.at_s,
            rank=rank,
            torch=str(torch.__version__),
            gpu="" if properties is None else str(properties.name),
            device_total=None if properties is None else int(properties.total_memory),
            model=failure.model,
            batch_size=failure.batch_size,
            allocator_settings=probe(allocator_settings) or "",
            requested=failure.requested,
            limit=failure.limit,
            device_free=failure.device_free,
            retries=failure.retries,
            error=error[:2000],
            module=failure.module,
            during=failure.during,
            where=failure.where,
            caught=self._caught,
            processes=failure.processes,
            held=held_of(snapshot, device, failure.names),  # type: ignore[arg-type]
            notes=notes,
        )


_WATCHES: list[OutOfMemoryWatch] = []
_attached: list[bool] = []
_hooked: list[bool] = []


def _attach() -> None:
    """Attach the one observer of this process, once CUDA is there: before, torch crashes, and it has no way to detach
    one. CPU builds have none."""
    if _attached or not hasattr(torch._C, "_cuda_attach_out_of_memory_observer"):
        return
    _attached.append(True)
    cuda: Any = torch._C
    _when_initialized(lambda: cuda._cuda_attach_out_of_memory_observer(_observe))


def _when_initialized(action: Callable[[], Any]) -> None:
    lazily: Any = torch.cuda._lazy_call
    lazily(lambda: probe(action))


def _observe(device: int, requested: int, limit: int, device_free: int) -> None:
    for watch in tuple(_WATCHES):
        probe(functools.partial(watch.observe, device, requested, limit, device_free))


def _chain_excepthook() -> None:
    if _hooked:
        return
    _hooked.append(True)
    before = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        for watch in tuple(_WATCHES):
            probe(functools.partial(watch.left_by, error))
        before(kind, error, trace)

    sys.excepthook = excepthook


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether it is torch's error or was raised for one, as frameworks wrap it."""
    known: set[int] = set()
    waiting = [error]
    while waiting and len(known) < _MOST_CAUSES:
        one = waiting.pop()
        if isinstance(one, torch.cuda.OutOfMemoryError):
            return True
        known.add(id(one))
        causes = (one.__cause__, None if one.__suppress_context__ else one.__context__)
        waiting += [cause for cause in causes if cause is not None and id(cause) not in known]
    return False


def _weakly(given: Any) -> Callable[[], Any]:
    """The hook keeps no object of the training alive."""
    return probe(lambda: weakref.ref(given)) or (lambda: None) if given is not None else lambda: None


def _place(failure: _Failure, model: Any) -> None:
    """In which module's call, in which pass, and the user's lines."""
    # The backward pass runs on a thread of its own, without frames of Python but those of the script's own functions.
    frames = _frames(sys._getframe())
    if not frames or isinstance(threading.current_thread(), threading._DummyThread):
        frames += _frames(sys._current_frames().get(threading.main_thread().ident or 0))
    paths = {} if model is None else {id(module): path for path, module in walk(model)}
    called: FrameType | None = None
    for frame in frames:
        code = frame.f_code
        if code.co_name == "_engine_run_backward":
            failure.during = failure.during or "backward"
        elif code.co_name in ("_call_impl", "_wrapped_call_impl") and code.co_filename.startswith(_TORCH):
            failure.during = failure.during or "forward"
            called = frame
            module = frame.f_locals.get("self")
            failure.module = failure.module or paths.get(id(module), "")
        elif isinstance(frame.f_locals.get("self"), torch.optim.Optimizer):
            failure.during = failure.during or "optimizer"
    users = [
        frame
        for frame in frames
        if not frame.f_code.co_filename.startswith(_TORCH) and _GENERATED not in frame.f_code.co_filename
    ]
    if failure.batch_size is None:
        failure.batch_size = probe(lambda: _batch_of(called, users))
    failure.where = [
        f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}" for frame in users[:_MOST_FRAMES]
    ]


def _batch_of(called: FrameType | None, users: list[FrameType]) -> int | None:
    """Samples of the step: the first size of the outermost module's first tensor; outside of a call that of most
    tensors without a gradient among the user's variables."""
    if called is not None:
        given = [*called.f_locals.get("args", ()), *called.f_locals.get("kwargs", {}).values()]
        return next((size for one in given if (size := _first_size(one)) is not None), None)
    sizes = Counter(
        size
        for frame in users
        for value in frame.f_locals.values()
        for one in _within(value)
        if (size := _first_size(one)) is not None and one.is_leaf and not one.requires_grad
    )
    return sizes.most_common(1)[0][0] if sizes else None


def _within(value: Any) -> Iterable[Any]:
    """What a batch is made of."""
    if isinstance(value, (tuple, list)):
        return value[:_MOST_FRAMES]
    return tuple(value.values())[:_MOST_FRAMES] if isinstance(value, dict) else (value,)


def _first_size(given: Any) -> int | None:
    return int(given.shape[0]) if isinstance(given, torch.Tensor) and given.is_cuda and given.dim() > 0 else None


def _frames(frame: FrameType | None) -> list[FrameType]:
    found: list[FrameType] = []
    while frame is not None and len(found) < 1000:
        if not frame.f_code.co_filename.startswith(_OWN):
            found.append(frame)
        frame = frame.f_back
    return found


def _processes(device: int) -> list[GpuProcess]:
    gpu = NvmlDevice(f"GPU-{torch.cuda.get_device_properties(device).uuid}")
    own = os.getpid()
    return [GpuProcess(pid, size, pid == own) for pid, size in gpu.process_bytes]


def _dump(snapshot: Any, path: Path) -> None:
    with whole_file(path) as file:
        pickle.dump(snapshot, file, protocol=_PROTOCOL)
