"""Measures the GPUs' energy over steps without the profiler, by the counter that the driver keeps.

A thread reads the counter, because a reading takes milliseconds. On an H200 it changes ten times a second, so a window
begins and ends where a change is seen: without that, a window of two seconds would be wrong by up to a tenth.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tb_dlprof_plugin.capture.facts.gpu_memory import used_devices
from tb_dlprof_plugin.capture.facts.nvml import NvmlDevice
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import ClockLimit, GpuEnergy

_SETTLING_S = 0.3
"""After the begin of a window: the counter lags behind the GPU, which rested until then."""
_BETWEEN_S = 0.35
"""Between two readings: few enough that the driver is hardly asked, enough that a short window loses little."""
_POLL_S = 0.002
_LONGEST_S = 10.0
"""Of a window: a training that goes on for hours is not read all the time."""
_LONGEST_TICK_S = 0.5
"""A counter that does not change for so long is none."""
TOO_SHORT = "the steps without the profiler were over before the energy counter had changed twice"


@dataclass(frozen=True, slots=True)
class EnergyReading:
    """The counter as it changed: the CPU's time in the middle of the two calls around the change."""

    time_ns: int
    millijoules: int


def read_at_tick(gpu: NvmlDevice, stop: threading.Event | None = None) -> EnergyReading | None:
    """Wait for the counter's next change; None where it has none, or ``stop`` is set before."""
    before_ns, first = time.perf_counter_ns(), gpu.energy_mj
    until_ns = before_ns + int(_LONGEST_TICK_S * 1e9)
    while first is not None and before_ns < until_ns:
        if stop is None:
            time.sleep(_POLL_S)
        elif stop.wait(_POLL_S):
            return None
        now_ns, value = time.perf_counter_ns(), gpu.energy_mj
        if value is None:
            return None
        if value != first:
            return EnergyReading((before_ns + now_ns) // 2, value)
        before_ns = now_ns
    return None


@dataclass(slots=True)
class _Window:
    """One stretch of steps; its thread adds readings until ``stop`` is set."""

    stop: threading.Event = field(default_factory=threading.Event)
    readings: list[list[EnergyReading]] = field(default_factory=list)
    clocks: list[list[int]] = field(default_factory=list)
    temperatures: list[list[int]] = field(default_factory=list)
    limits: list[Counter[str]] = field(default_factory=list)


class EnergyMeter:
    """Measures between `begin` and `end`; neither waits for the GPU or for NVML. Its methods never raise."""

    def __init__(self) -> None:
        self._gpus: dict[int, NvmlDevice] = {}
        self._refused: str | None = None
        self._windows: list[_Window] = []
        self._current: _Window | None = None

    @property
    def missing(self) -> str | None:
        """Why a training on a GPU has no energy; None where it has, or uses none."""
        if self._refused is not None or not self._gpus or self.measured():
            return self._refused
        return TOO_SHORT

    @property
    def running(self) -> bool:
        """Whether a window is open in which something can be measured."""
        return self._current is not None

    def begin(self) -> None:
        """Open a window; within an open one nothing happens."""
        if self._current is not None:
            return
        if not self._gpus and self._refused is None:
            self._gpus, self._refused = _find_gpus()
        if not self._gpus:
            return
        count = len(self._gpus)
        window = _Window(
            readings=[[] for _ in range(count)],
            clocks=[[] for _ in range(count)],
            temperatures=[[] for _ in range(count)],
            limits=[Counter() for _ in range(count)],
        )
        thread = threading.Thread(
            target=_measure, args=(window, list(self._gpus.values())), name="tb_dlprof energy", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            # The interpreter is ending, or the process has as many threads as it may have.
            return
        self._current = window
        self._windows.append(window)

    def end(self) -> None:
        """Close the open window, if there is one."""
        if self._current is not None:
            self._current.stop.set()
            self._current = None

    def forget(self) -> None:
        """Drop all that was measured; an open window goes on from now."""
        goes_on = self._current is not None
        self.end()
        self._windows = []
        if goes_on:
            self.begin()

    def measured(self) -> list[GpuEnergy]:
        """A row per GPU of whose steps two ticks were seen."""
        found = [self._of(i, gpu) for i, gpu in enumerate(self._gpus)]
        return [energy for energy in found if energy is not None]

    def _of(self, i: int, gpu: int) -> GpuEnergy | None:
        millijoules, duration_ns, readings = _sums([window.readings[i] for window in self._windows])
        if not duration_ns:
            return None
        clocks = [clock for window in self._windows for clock in window.clocks[i]]
        limits: Counter[str] = sum((window.limits[i] for window in self._windows), Counter())
        device = list(self._gpus.values())[i]
        return GpuEnergy(
            gpu=gpu,
            millijoules=millijoules,
            duration_ns=duration_ns,
            readings=readings,
            power_limit_mw=probe(lambda: device.power_limit_mw),
            sm_clock_mhz=round(sum(clocks) / len(clocks)) if clocks else None,
            temperature_c=max((t for window in self._windows for t in window.temperatures[i]), default=None),
            clock_limits=[ClockLimit(name, count) for name, count in sorted(limits.items())],
        )


def _sums(windows: Sequence[Sequence[EnergyReading]]) -> tuple[int, int, int]:
    """Energy (mJ) and time (ns) from the first to the last reading of each window, and the number of readings."""
    whole = [tuple(window) for window in windows if len(window) > 1]
    return (
        sum(window[-1].millijoules - window[0].millijoules for window in whole),
        sum(window[-1].time_ns - window[0].time_ns for window in whole),
        sum(len(window) for window in whole),
    )


def _measure(window: _Window, gpus: Sequence[NvmlDevice]) -> None:
    """The thread: GPUs one after the other, each at its own tick."""
    until_s = time.monotonic() + _LONGEST_S
    if window.stop.wait(_SETTLING_S):
        return
    while time.monotonic() < until_s:
        for i, gpu in enumerate(gpus):
            reading = probe(lambda gpu=gpu: read_at_tick(gpu, window.stop))  # type: ignore[misc]
            if window.stop.is_set():
                return
            if reading is None:
                continue
            window.readings[i].append(reading)
            clock, temperature = probe(lambda gpu=gpu: gpu.sm_clock_mhz), probe(lambda gpu=gpu: gpu.temperature_c)  # type: ignore[misc]
            window.clocks[i] += [clock] if clock is not None else []
            window.temperatures[i] += [temperature] if temperature is not None else []
            window.limits[i].update(probe(lambda gpu=gpu: gpu.clock_limits) or [])  # type: ignore[misc]
        if window.stop.wait(_BETWEEN_S):
            return


def _find_gpus() -> tuple[dict[int, NvmlDevice], str | None]:
    """Those on which this process has allocated so far, and why their energy cannot be read."""
    import torch

    found: dict[int, NvmlDevice] = {}
    for index in probe(used_devices) or []:
        try:
            # torch numbers the visible GPUs, the driver all of them: the UUID is the same in both.
            gpu = NvmlDevice(f"GPU-{torch.cuda.get_device_properties(index).uuid}")
            if gpu.energy_mj is None:
                return {}, "this GPU has no energy counter, or the driver does not let this process read it"
        except Exception as error:
            return {}, f"NVML: {error}"
        found[index] = gpu
    return found, None
