"""A live process of the user's script, with some remedies or none, that runs steps when it is its turn."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.model.visible import VisibleMessage, visible
from tb_dlprof_plugin.trial import prepared
from tb_dlprof_plugin.trial.isolation import Isolation, IsolationKind
from tb_dlprof_plugin.trial.overlay import remove_folder
from tb_dlprof_plugin.trial.process_tree import end, freeze_below, thaw_below
from tb_dlprof_plugin.trial.protocol import VARIABLE, Block, Ready, TrialRequest, decode, lines

_POLL_S = 0.05
_LAST_LINES = 30
_LONGEST_LINE = 300
_NEVER_STEPPED = "it ended before its first steps were done: it trains too few, or without an optimizer of torch"
_NEARLY_FULL_BYTES = 1 << 20
_LARGEST_COPY_BYTES = 100_000_000
"""Each process that waits has a copy of its own."""
_PORT_TAKEN = "address already in use"
"""As torch's TCPStore says it."""


class VariantError(VisibleMessage):
    """The script could not be tried this way. The message says why."""


class PortTakenError(VariantError):
    """The command names the port at which its ranks meet, and another process of the trial has it."""


@dataclass
class Laboratory:
    """What all processes of one trial share.

    Attributes:
        command: that starts the script.
        folder: scratch; removed at the end.
        injected: folder with the ``sitecustomize`` that attaches the remedies.
        isolation: where the writes of the script go.
    """

    command: Sequence[str]
    folder: Path
    injected: Path
    isolation: Isolation
    _count: int = field(default=0, init=False)
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list, init=False)
    _waiting: list[prepared.WaitingProcess] = field(default_factory=list, init=False)
    _turns: list[int] = field(default_factory=list, init=False)
    """Descriptors of the pipes of all that have waited."""

    def new_folder(self) -> Path:
        """Of the next process."""
        self._count += 1
        made = self.folder / str(self._count)
        made.mkdir()
        return made

    def start(self, folder: Path, request: TrialRequest, more: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the script; its output goes to ``log.txt`` in the folder.

        Raises:
            VariantError: it cannot be started.
        """
        request.write(folder)
        if request.socket and prepared.script_of(self.command, self.isolation.folder) is not None:
            more = {**more, prepared.VARIABLE: "1"}
        return self._start(folder, more)

    def prepare(self, count: int) -> None:
        """Start so many processes that wait with their first imports done; none where that is not possible."""
        script = prepared.script_of(self.command, self.isolation.folder)
        if sys.platform != "linux" or script is None or self.isolation.copied_bytes > _LARGEST_COPY_BYTES:
            return
        with contextlib.suppress(OSError, VariantError):
            for _ in range(count):
                folder = self.new_folder()
                turn = prepared.WaitingProcess.turn_in(folder)
                self._turns.append(turn)
                process = self._start(folder, {prepared.VARIABLE: "1"})
                self._waiting.append(prepared.WaitingProcess(folder, process, turn))

    def start_waiting(self, make_request: Callable[[Path], TrialRequest]) -> prepared.WaitingProcess | None:
        """Have a process that waits run the script; None where there is none, or none whose imports are done.

        Args:
            make_request: what it is to do, by its folder.
        """
        one = next((one for one in self.waiting if one.imports_s is not None), None)
        if one is not None:
            self._waiting.remove(one)
            one.ask(make_request(one.folder))
        return one

    def end_waiting(self) -> None:
        """End the processes that wait. Never raises."""
        for one in self._waiting:
            end(one.process)
            remove_folder(one.folder)
        self._waiting = []

    @property
    def waiting(self) -> list[prepared.WaitingProcess]:
        """Processes that wait with their imports done, or will."""
        return [one for one in self._waiting if one.process.poll() is None]

    def _start(self, folder: Path, more: Mapping[str, str]) -> subprocess.Popen[bytes]:
        for name in ("tmp", "cache"):
            (folder / name).mkdir(exist_ok=True)
        with (folder / "log.txt").open("wb") as log:
            try:
                process = subprocess.Popen(
                    self.isolation.command(self.command, self.folder, folder),
                    env={**self._environment(folder), **more},
                    # Its end is this process's end, to the supervisor.
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError as error:
                raise VariantError(f"{self.command[0]} cannot be started: {error}") from None
        self._running = [*(one for one in self._running if one.returncode is None), process]
        return process

    def close(self) -> None:
        """End all processes that still run, and remove the folder. Never raises."""
        for process in self._running:
            if process.returncode is None:
                end(process)
        for turn in self._turns:
            os.close(turn)
        self._turns = []
        remove_folder(self.folder)

    def _environment(self, folder: Path) -> dict[str, str]:
        env = dict(os.environ)
        caches = self.folder / "cache"
        env[VARIABLE] = str(folder)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(self.injected), env.get("PYTHONPATH"))))
        env["TMPDIR"] = str(folder / "tmp")
        # torchrun without a port has the same one for each process up to torch 2.12: the second could not start.
        env["PET_MASTER_PORT"] = str(_free_port())
        # One cache for all processes: the second one that compiles the same finds it.
        for name, place in {
            "TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "CUDA_CACHE_PATH": "cuda",
            "MPLCONFIGDIR": "matplotlib", "NUMBA_CACHE_DIR": "numba", "TORCH_EXTENSIONS_DIR": "extensions",
        }.items():  # fmt: skip
            if name not in os.environ:
                env[name] = str(caches / place)
        env |= _QUIET
        for name, value in _DEFAULTS.items():
            env.setdefault(name, value)
        env["MLFLOW_TRACKING_URI"] = f"file:{folder}/mlruns"
        return env


_QUIET = {
    # Nothing of a trial is a result that anyone wants to keep.
    "WANDB_MODE": "disabled", "COMET_MODE": "disabled", "NEPTUNE_MODE": "debug", "CLEARML_OFFLINE_MODE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    # A frozen process answers no heartbeat.
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "KINETO_LOG_LEVEL": "9",
}  # fmt: skip
_DEFAULTS = {"PYTHONHASHSEED": "0", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}


class Variant:
    """One process with its ranks. Between two turns all its processes are frozen.

    Args:
        laboratory: what all share.
        remedies: names of those that are applied.
        environment: variables that they set.
        seed_offset: another seed than the baseline's.
        samples: samples per step relative to the baseline's.
    """

    def __init__(
        self,
        laboratory: Laboratory,
        remedies: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        seed_offset: int = 0,
        samples: float = 1.0,
    ) -> None:
        self.laboratory, self.remedies, self.samples = laboratory, tuple(remedies), samples
        self.environment, self._seed_offset = dict(environment or {}), seed_offset
        self._process: subprocess.Popen[bytes] | None = None
        self._listener: socket.socket | None = None
        self._ranks: list[socket.socket] = []
        self._buffers: list[bytearray] = []
        self._folder: Path | None = None
        self._arrive_by: tuple[float, float] | None = None
        """Until when its ranks have to arrive, and how long they may take, where they are on their way."""
        self.ready: list[Ready] = []
        self.restarts = self.starts = 0

    @property
    def alive(self) -> bool:
        """Whether it has a process."""
        return self._process is not None

    @property
    def starts_still(self) -> bool:
        """Whether none of its ranks has done its first steps yet, though it has not ended."""
        if self._arrive_by is None or self._process is None or self._listener is None:
            return False
        return self._process.poll() is None and not select.select([self._listener], [], [], 0)[0]

    @property
    def host(self) -> Variant:
        """The process in which its steps run."""
        return self

    def start(self, timeout_s: float, budget_s: float = math.inf) -> list[Ready]:
        """Start a new process, and wait until all its ranks have done their first steps; what they say, by rank.

        Raises:
            VariantError: it ended or failed before, or takes longer than ``timeout_s``; or it calls its model and does
                not train, and ``budget_s`` are over.
        """
        self.launch(timeout_s, budget_s)
        return self.arrived()

    def launch(self, timeout_s: float, budget_s: float = math.inf) -> None:
        """Start a new process, and do not wait for it.

        Raises:
            VariantError: it cannot be started.
        """
        self.end()
        self.starts += 1
        ends_s = time.monotonic() + budget_s

        def make_request(folder: Path) -> TrialRequest:
            self._folder, address = folder, str(folder / "gate")
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(address)
            self._listener.listen(1024)
            self._listener.settimeout(_POLL_S)
            return TrialRequest(self.remedies, address, seed_offset=self._seed_offset, budget_ends_s=ends_s)

        # Variables are read when libraries are imported or start.
        waiting = None if self.environment else self.laboratory.start_waiting(make_request)
        if waiting is not None:
            self._process = waiting.process
        else:
            folder = self.laboratory.new_folder()
            self._process = self.laboratory.start(folder, make_request(folder), self.environment)
        self._arrive_by = time.monotonic() + timeout_s, timeout_s

    def wait_at_most(self, seconds: float) -> None:
        """Have `arrived` wait no longer, where it is on its way."""
        if self._arrive_by is not None:
            by_s, timeout_s = self._arrive_by
            self._arrive_by = min(by_s, time.monotonic() + seconds), timeout_s

    def arrived(self) -> list[Ready]:
        """What its ranks say once all have done their first steps; they wait for it where they have not.

        Raises:
            VariantError: it ended or failed before, or takes too long.
        """
        if self._arrive_by is not None:
            assert self._process is not None
            try:
                self.ready = self._arrivals(*self._arrive_by)
            except BaseException:
                self.end()
                raise
            self._arrive_by = None
            freeze_below(self._process.pid)
        return self.ready

    def run(self, steps: int, timeout_s: float, switched: Sequence[str] = ()) -> Block:
        """Run steps; the time of the rank that needs longest.

        Args:
            steps: how many.
            timeout_s: for all of them.
            switched: names of remedies that are switched on in the running process for these steps.

        Raises:
            VariantError: the script failed; or it ended, and ended again when started again.
        """
        blocks = self._asked({"kind": "run", "steps": steps, "remedies": list(switched)}, timeout_s)
        longest = max(blocks, key=lambda one: one.seconds)
        peaks = [one.peak_bytes for one in blocks if one.peak_bytes is not None]
        failed = next((one.failed for one in blocks if one.failed), "")
        return Block(steps, longest.seconds, max(peaks, default=None), failed=failed)

    def check(self, switched: Sequence[str], seed: int, steps: int, timeout_s: float) -> Ready:
        """Steps from the same state each time, with the same batches, in the running process of one rank.

        Args:
            switched: names of remedies that are switched on for them.
            seed: of random numbers; 0: they are the same each time, too.
            steps: how many.
            timeout_s: for all of them.

        Raises:
            VariantError: as `run`.
        """
        asked = {"kind": "check", "steps": steps, "remedies": list(switched), "seed": seed}
        (ready,) = self._asked(asked, timeout_s)
        return ready

    def _asked(self, message: Mapping[str, Any], timeout_s: float) -> list[Any]:
        """The answer of each rank."""
        for again in (True, False):
            if self._process is None:
                self.start(timeout_s)
            try:
                return self._answers(message, timeout_s)
            except _EndedError:
                # Its data or its epochs are over.
                self.end()
                self.restarts += 1
                if not again:
                    raise VariantError("the script is too short: it ends within one block of steps") from None
        raise AssertionError

    def end(self) -> None:
        """Kill all its processes, and remove what they wrote. Never raises."""
        process, self._process, self._arrive_by = self._process, None, None
        for one in (*self._ranks, self._listener):
            if one is not None:
                with contextlib.suppress(OSError):
                    one.close()
        self._ranks, self._buffers, self._listener = [], [], None
        if process is not None:
            end(process)
        if self._folder is not None:
            remove_folder(self._folder)
            self._folder = None

    def _answers(self, message: Mapping[str, Any], timeout_s: float) -> list[Any]:
        assert self._process is not None
        thaw_below(self._process.pid)
        try:
            line = json.dumps(message).encode() + b"\n"
            for rank in self._ranks:
                rank.sendall(line)
            deadline = time.monotonic() + timeout_s
            return [self._answer(number, deadline, timeout_s) for number in range(len(self._ranks))]
        except OSError:
            raise _EndedError from None
        finally:
            if self._process is not None:
                freeze_below(self._process.pid)

    def _answer(self, number: int, deadline: float, timeout_s: float) -> Any:
        buffer, rank = self._buffers[number], self._ranks[number]
        rank.settimeout(_POLL_S)
        while True:
            for line in lines(buffer):
                kind, message = decode(line)
                if kind in ("block", "ready"):
                    return message
            try:
                received = rank.recv(65536)
            except TimeoutError:
                received = None
            if received:
                buffer += received
            elif received == b"":
                self._ended()
            elif time.monotonic() > deadline:
                raise VariantError(f"steps took longer than {timeout_s:.0f} s")

    def _ended(self) -> None:
        """A rank has gone: by the end of the script, or by an error."""
        assert self._process is not None
        try:
            status = self._process.wait(5)
        except subprocess.TimeoutExpired:
            status = 1
        if status == 0:
            raise _EndedError
        assert self._folder is not None
        raise _error_of(self.laboratory, self._folder, status)

    def _arrivals(self, deadline: float, timeout_s: float) -> list[Ready]:
        assert self._process is not None
        assert self._folder is not None
        assert self._listener is not None
        found: list[tuple[Ready, socket.socket, bytearray]] = []
        while not found or len(found) < max(one[0].world_size for one in found):
            try:
                rank, _ = self._listener.accept()
            except TimeoutError:
                status = self._process.poll()
                failed = self._failure()
                if failed:
                    raise VariantError(failed) from None
                if status is not None:
                    if status:
                        raise _error_of(self.laboratory, self._folder, status) from None
                    raise VariantError(_NEVER_STEPPED) from None
                if time.monotonic() > deadline:
                    raise VariantError(
                        f"its first steps took longer than {timeout_s:.0f} s; give a larger --budget, unless it trains "
                        "without an optimizer of torch"
                    ) from None
                continue
            buffer = bytearray()
            rank.settimeout(_POLL_S * 100)
            ready = None
            while ready is None:
                try:
                    received = rank.recv(65536)
                except TimeoutError:
                    received = b""
                if not received:
                    break
                buffer += received
                for line in lines(buffer):
                    kind, message = decode(line)
                    if kind == "ready":
                        assert isinstance(message, Ready)
                        ready = message
            if ready is not None:
                found.append((ready, rank, buffer))
        found.sort(key=lambda one: one[0].rank)
        self._ranks = [one[1] for one in found]
        self._buffers = [one[2] for one in found]
        return [one[0] for one in found]

    def _failure(self) -> str:
        """What the injected code says of a failure of its own."""
        assert self._folder is not None
        for path in self._folder.glob("*.status.json"):
            with contextlib.suppress(OSError, ValueError):
                said = json.loads(path.read_text()).get("said", "")
                return visible(str(said))
        return ""


def why_ended(laboratory: Laboratory, folder: Path, status: int) -> str:
    """How the script of the process in a folder ended with an error, as the rest of a sentence."""
    last = _last_line(folder)
    if not last and shutil.disk_usage(laboratory.folder).free < _NEARLY_FULL_BYTES:
        last = f"the folder for temporary files, {laboratory.folder.parent}, is full; set TMPDIR to another one"
    if "PermissionError" in last and laboratory.isolation.kind is IsolationKind.copy:
        last += "; it runs in a copy of its folder and can write nowhere else, unless with --in-place"
    how = f"signal {-status}" if status < 0 else f"status {status}"
    return f"it ended with {how}" + (f": {last}" if last else "")


def _error_of(laboratory: Laboratory, folder: Path, status: int) -> VariantError:
    why = why_ended(laboratory, folder, status)
    return PortTakenError(why) if _PORT_TAKEN in why else VariantError(why)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _last_line(folder: Path) -> str:
    """The error in what the script printed last."""
    with contextlib.suppress(OSError):
        text = (folder / "log.txt").read_bytes()[-20000:].decode(errors="replace")
        printed = [line.strip() for line in text.splitlines() if line.strip()][-_LAST_LINES:]
        errors = [line for line in printed if "Error" in line.split(":")[0] or "Exception" in line.split(":")[0]]
        return visible((errors or printed or [""])[-1])[:_LONGEST_LINE]
    return ""


class _EndedError(Exception):
    """The script is over, without an error."""


def scratch_folder() -> Path:
    """A new one; short, because a socket's path is at most 108 characters long."""
    return Path(tempfile.mkdtemp(prefix="tbt_"))
