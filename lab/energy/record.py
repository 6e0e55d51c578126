"""Measures the energy of ten models on one GPU, unprofiled, and records them with the hook.

    python -m lab.energy.record --out DIRECTORY [--seconds 58]

In rounds, the most important first, until the time is over: idle power and loops of one kernel; each model in FP32 and
in BF16 autocast with a recording of each; twice the batch in BF16; TF32 with a recording; twice the batch in FP32;
BF16 and FP32 again. A window is about 1.2 s of steps between two ticks of the GPU's energy counter, read by a thread.
What fails is a row with its error. Without a counter the rows hold times alone, and the table says so.

Writes DIRECTORY/dev.tgz and DIRECTORY/held_out.tgz: event files in <model>/<precision>, and truth.json. The table that
is printed last has no row of a held-out model.
"""

from __future__ import annotations

import argparse
import json
import tarfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

import tb_dlprof_plugin
from tb_dlprof_plugin.capture.facts.nvml import NvmlDevice, NvmlError

from .subjects import SUBJECTS, Subject

BEGAN_S = time.monotonic()
WINDOW_S, LOOP_S = 1.25, 0.8
SETTLING_S = 0.35
"""Left out at the begin of each window: the counter lags behind the GPU."""
NOT_TIMED = 6
"""Steps after a recording that the hook's light window takes."""


class Sensor:
    """Reads the counter of a GPU in a thread, each change with its time, and at times what else the driver knows."""

    def __init__(self, device: str) -> None:
        self.missing: str | None = "a CPU has no counter"
        self.ticks: list[tuple[int, int]] = []
        self.states: list[dict[str, Any]] = []
        self.call_ms: list[float] = []
        self._gpu: NvmlDevice | None = None
        if device == "cuda":
            try:
                self._gpu = NvmlDevice(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
                self.missing = None if self._gpu.energy_mj is not None else "the driver gives no energy"
            except NvmlError as error:
                self.missing = f"NVML: {error}"
        if self.missing is None:
            threading.Thread(target=self._read, daemon=True).start()

    @property
    def power_limit_mw(self) -> int | None:
        """The limit in force."""
        return self._gpu.power_limit_mw if self._gpu is not None else None

    def _read(self) -> None:
        assert self._gpu is not None
        before_ns, last, state_ns = time.perf_counter_ns(), self._gpu.energy_mj, 0
        while True:
            began_ns = time.perf_counter_ns()
            value = self._gpu.energy_mj
            now_ns = time.perf_counter_ns()
            self.call_ms.append((now_ns - began_ns) / 1e6)
            if value is not None and value != last:
                self.ticks.append(((before_ns + began_ns) // 2, value))
                last = value
            before_ns = now_ns
            if now_ns - state_ns > 200_000_000:
                state_ns = now_ns
                self.states.append(
                    {
                        "time_ns": now_ns,
                        "clock_mhz": self._gpu.sm_clock_mhz,
                        "temperature_c": self._gpu.temperature_c,
                        "limits": self._gpu.clock_limits,
                    }
                )
            time.sleep(0.003)

    def between(self, marks: list[int]) -> dict[str, Any]:
        """What the counter says of steps that ended at ``marks``: joules and milliseconds of a step, watts."""
        start_ns = marks[0] + int(SETTLING_S * 1e9)
        inside = np.array([tick for tick in self.ticks if start_ns <= tick[0] <= marks[-1]], dtype=np.float64)
        timed = np.array([mark for mark in marks if mark >= start_ns])
        found: dict[str, Any] = {
            "step_ms": round(float(np.diff(timed).mean()) / 1e6, 4) if len(timed) > 1 else None,
            "steps": len(marks) - 1,
        }
        if len(inside) < 3:
            return found
        steps = np.interp(inside[:, 0], marks, np.arange(len(marks)))
        joules = inside[:, 1] / 1e3
        middle = len(inside) // 2
        halves = [(joules[b] - joules[a]) / (steps[b] - steps[a]) for a, b in ((0, middle), (middle, -1))]
        known = [state for state in self.states if inside[0, 0] <= state["time_ns"] <= inside[-1, 0]]
        clocks = [state["clock_mhz"] for state in known if state["clock_mhz"] is not None]
        limits = sorted({limit for state in known for limit in state["limits"]})
        return found | {
            "joules_per_step": round(float((joules[-1] - joules[0]) / (steps[-1] - steps[0])), 5),
            "halves": [round(float(half), 5) for half in halves],
            "watts": round(float((joules[-1] - joules[0]) / (inside[-1, 0] - inside[0, 0]) * 1e9), 2),
            "ticks": len(inside),
            "seconds": round(float(inside[-1, 0] - inside[0, 0]) / 1e9, 4),
            "clock_mhz": round(float(np.mean(clocks))) if clocks else None,
            "temperature_c": max((s["temperature_c"] for s in known if s["temperature_c"] is not None), default=None),
            "limits": {limit: sum(limit in state["limits"] for state in known) for limit in limits},
            "readings": len(known),
        }


class Training:
    """A subject on the device, with two batches."""

    def __init__(self, subject: Subject, device: str, scale: int) -> None:
        torch.manual_seed(0)
        self.subject, self.device = subject, device
        self.model = subject.build().to(device).train()
        parameters = self.model.parameters()
        self.optimizer: torch.optim.Optimizer = (
            torch.optim.AdamW(parameters, lr=1e-4) if subject.adam else torch.optim.SGD(parameters, 1e-3, momentum=0.9)
        )
        self.batch_size = max(1, subject.batch_size // scale)
        twice = subject.batch(2 * self.batch_size)
        self.batches = {
            factor: tuple(tensor[: factor * self.batch_size].to(device) for tensor in twice) for factor in (1, 2)
        }
        self.bf16, self.factor = False, 1

    def set(self, precision: str, factor: int) -> None:
        """Of the steps from now on."""
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
        self.bf16, self.factor = precision == "bf16", factor

    def __call__(self) -> None:
        """One training step."""
        inputs, target = self.batches[self.factor]
        self.optimizer.zero_grad()
        with torch.autocast(self.device, torch.bfloat16, enabled=self.bf16):
            loss = self.subject.loss(self.model, inputs, target)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()


def run(step: Callable[[], None], seconds: float, device: str, least: int = 4) -> list[int]:
    """Steps for so long; the times at which the GPU ended them. At most two are under way.

    Those are left out at the end: where the CPU sets the pace they follow each other faster than steps do.
    """
    ahead: deque[Any] = deque()
    marks: list[int] = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s or len(marks) < least:
        step()
        if device == "cuda":
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record()
            ahead.append(event)
            if len(ahead) < 3:
                continue
            ahead.popleft().synchronize()
        marks.append(time.perf_counter_ns())
    for event in ahead:
        event.synchronize()
        if len(marks) <= least:
            marks.append(time.perf_counter_ns())
    return marks


class Measurements:
    """The rows and recordings, dev and held-out apart."""

    def __init__(self, out: Path, device: str, scale: int) -> None:
        self.out, self.device, self.scale = out, device, scale
        self.sensor = Sensor(device)
        self.rows: list[dict[str, Any]] = []
        self.sessions: list[Any] = []
        self.trainings: dict[str, Training] = {}

    def attempt(self, what: dict[str, Any], held_out: bool, measure: Callable[[], dict[str, Any]]) -> None:
        """Add the row; one that fails says why."""
        began_s = time.monotonic()
        try:
            found = measure()
        except Exception as error:
            traceback.print_exc()
            found = {"failed": f"{type(error).__name__}: {error}"[:300]}
        took = round(time.monotonic() - began_s, 2)
        self.rows.append({"held_out": held_out, **what, **found, "at_s": round(began_s - BEGAN_S, 1), "took_s": took})

    def idle(self, name: str) -> None:
        """A second without work."""

        def measure() -> dict[str, Any]:
            if self.device == "cuda":
                torch.cuda.synchronize()
            marks = [time.perf_counter_ns()]
            time.sleep(1.0 / self.scale)
            return self.sensor.between([*marks, time.perf_counter_ns()])

        self.attempt({"model": "idle", "precision": name}, False, measure)

    def loops(self) -> None:
        """One kernel again and again, on normal values."""
        n = 8192 // self.scale
        a, b = torch.randn(n, n, device=self.device), torch.randn(n, n, device=self.device)
        half_a, half_b = a.bfloat16(), b.bfloat16()
        large, other = (torch.randn(n * n * 4, device=self.device) for _ in range(2))
        small = torch.randn(n * n // 16, device=self.device)

        def product(tf32: bool) -> None:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.mm(a, b)

        kinds: dict[str, tuple[Callable[[], object], int, int]] = {
            "mm_fp32": (lambda: product(False), 2 * n**3, 0),
            "mm_tf32": (lambda: product(True), 2 * n**3, 0),
            "mm_bf16": (lambda: torch.mm(half_a, half_b), 2 * n**3, 0),
            "copy": (lambda: large.copy_(other), 0, 8 * n * n * 4),
            "small_add": (lambda: small.add_(1.0), 0, 8 * n * n // 16),
        }
        image = torch.randn(64, 64, n // 64, n // 64, device=self.device)
        heads = torch.randn(16, 16, n // 8, 64, device=self.device, dtype=torch.bfloat16)
        table, rows = torch.randn(n * 4, 1024, device=self.device), torch.randint(n * 4, (n * 16,), device=self.device)
        kinds |= {
            "normalise": (lambda: functional.layer_norm(large.view(-1, 1024), (1024,)), 0, 8 * n * n * 4),
            "softmax": (lambda: large.view(-1, 1024).softmax(-1), 0, 8 * n * n * 4),
            "gelu": (lambda: functional.gelu(large), 0, 8 * n * n * 4),
            "batch_norm": (lambda: functional.batch_norm(image, None, None, training=True), 0, 12 * image.numel()),
            "sum": (lambda: large.sum(), 0, 4 * n * n * 4),
            "gather": (lambda: table[rows], 0, 8 * 1024 * n * 16),
            "attention_bf16": (
                lambda: functional.scaled_dot_product_attention(heads, heads, heads),
                4 * 256 * (n // 8) ** 2 * 64,
                0,
            ),
        }
        for name, (kernel, flops, moved) in kinds.items():
            # Steps of some milliseconds, so that the CPU is far ahead.
            times = 200 if name == "small_add" else 4

            def step(kernel: Callable[[], object] = kernel, times: int = times) -> None:
                for _ in range(times):
                    kernel()

            what = {"model": "loop", "precision": name, "flops": flops * times, "bytes": moved * times}
            self.attempt(what, False, lambda step=step: self.window(step, LOOP_S))  # type: ignore[misc]

    def window(self, step: Callable[[], None], seconds: float = WINDOW_S) -> dict[str, Any]:
        """Steps without the profiler."""
        return self.sensor.between(run(step, SETTLING_S + seconds / self.scale, self.device))

    def of(self, subject: Subject) -> Training:
        """The subject's training, made once."""
        if subject.name not in self.trainings:
            self.trainings[subject.name] = Training(subject, self.device, self.scale)
        return self.trainings[subject.name]

    def configuration(self, subject: Subject, precision: str, factor: int, record: bool, again: bool = False) -> None:
        """One row; with ``record`` an event file, too."""
        batch_size = factor * max(1, subject.batch_size // self.scale)
        what = {"model": subject.name, "precision": precision, "batch_size": batch_size, "again": again}

        def measure() -> dict[str, Any]:
            training = self.of(subject)
            training.set(precision, factor)
            for _ in range(2):
                training()
            if record and precision == "fp32":
                return self.recorded(training, precision, WINDOW_S)
            if record:
                self.recorded(training, precision, 0.0)
            return self.window(training)

        self.attempt(what, subject.held_out, measure)

    def recorded(self, training: Training, precision: str, seconds: float) -> dict[str, Any]:
        """An event file of two steps; with ``seconds`` the steps after it, which the hook measures as well."""
        subject = training.subject
        directory = self.out / ("held_out" if subject.held_out else "dev") / subject.name / precision
        with tb_dlprof_plugin.profile(
            directory,
            training.model,
            optimizer=training.optimizer,
            batch_size=training.factor * training.batch_size,
            schedule={"wait": 0, "warmup": 1, "active": 2, "repeat": 1},
            profile_memory=precision == "fp32",
            keep_trace=False,
            quiet=True,
            wait=False,
        ) as session:
            self.sessions.append(session)

            def step() -> None:
                training()
                session.step()

            for _ in range(3):
                step()
            if not seconds:
                return {}
            for _ in range(NOT_TIMED):
                step()
            return self.window(step, seconds)

    def write(self) -> None:
        """Pack dev and held-out apart."""
        properties = torch.cuda.get_device_properties(0) if self.device == "cuda" else None
        machine: dict[str, Any] = {
            "gpu": properties.name if properties else None,
            "torch": torch.__version__,
            "energy_missing": self.sensor.missing,
            "power_limit_mw": self.sensor.power_limit_mw,
            "call_ms": [round(float(p), 3) for p in np.percentile(self.sensor.call_ms or [0.0], (5, 50, 95, 100))],
        }
        for name, held_out in (("dev", False), ("held_out", True)):
            folder = self.out / name
            folder.mkdir(parents=True, exist_ok=True)
            written: dict[str, Any] = machine | {"rows": [row for row in self.rows if row["held_out"] is held_out]}
            if not held_out:
                written |= {"ticks": self.sensor.ticks, "states": self.sensor.states}
            (folder / "truth.json").write_text(json.dumps(written) + "\n")
            with tarfile.open(self.out / f"{name}.tgz", "w:gz") as packed:
                packed.add(folder, arcname=name)

    def table(self) -> str:
        """A line per row; of held-out models only whether there is one."""
        lines = [f"energy: {self.sensor.missing or 'measured'}"]
        for row in self.rows:
            name = f"{row['model']:7} {row['precision']:9} {row.get('batch_size', ''):>6}"
            if "failed" in row:
                lines.append(f"{name} FAILED {row['failed'][:120]}")
            elif row["held_out"]:
                lines.append(f"{name} {'measured' if 'joules_per_step' in row else 'times alone'} {row['took_s']} s")
            else:
                shown = [
                    row.get(key) for key in ("step_ms", "joules_per_step", "watts", "clock_mhz", "halves", "limits")
                ]
                lines.append(f"{name} {' '.join(str(value) for value in shown)} {row['took_s']} s")
        return "\n".join(lines)


def main() -> None:
    """Measure until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=58, help="since the start; nothing new begins after it")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--scale", type=int, default=1, help="divide batches and windows by it, to try the script")
    parser.add_argument("--subjects", nargs="*", default=[subject.name for subject in SUBJECTS])
    parser.add_argument("--again", type=int, default=0, help="this many windows of one training each, before TF32")
    parser.add_argument("--again-of", nargs="*", default=["resnet", "gpt"], help="subjects of --again")
    parser.add_argument("--no-loops", action="store_true", help="leave the loops of one kernel out")
    given = parser.parse_args()
    by_name = {subject.name: subject for subject in SUBJECTS}
    subjects = [by_name[name] for name in given.subjects]
    if given.device == "cuda":
        torch.zeros(1, device="cuda")
    found = Measurements(given.out, given.device, given.scale)
    found.idle("start")
    if not given.no_loops:
        found.loops()
    found.idle("after work")
    repeated = [by_name[name] for name in given.again_of]
    rounds = [
        [(subject, precision, 1, True, False) for subject in subjects for precision in ("fp32", "bf16")],
        [
            (subject, precision, 1, False, i > 0 or subject in subjects)
            for subject in repeated
            for precision in ("fp32", "bf16")
            for i in range(given.again)
        ],
        [(subject, "bf16", 1, False, True) for subject in subjects],
        [(subject, "tf32", 1, True, False) for subject in subjects],
        [(subject, "bf16", 2, False, False) for subject in subjects],
        [(subject, "bf16", 1, False, True) for subject in subjects],
        [(subject, "fp32", 2, False, False) for subject in subjects],
        [(subject, "fp32", 1, False, True) for subject in subjects],
    ]
    for configuration in (configuration for round_ in rounds for configuration in round_):
        if time.monotonic() - BEGAN_S < given.seconds:
            found.configuration(*configuration)
    for session in found.sessions:
        session.wait(20)
    found.write()
    print(found.table())
    print(f"{time.monotonic() - BEGAN_S:.1f} s since the imports")


if __name__ == "__main__":
    main()
