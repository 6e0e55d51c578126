"""The energy counter is read at its ticks, over steps without the profiler, and what is missing is said."""

from __future__ import annotations

import time

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture.facts import energy  # noqa: E402
from tb_dlprof_plugin.capture.facts.collect import collect_facts  # noqa: E402
from tb_dlprof_plugin.capture.facts.energy import TOO_SHORT, EnergyMeter, read_at_tick  # noqa: E402
from tb_dlprof_plugin.model.run_facts import ClockLimit  # noqa: E402

_TICK_S, _WATTS = 0.02, 400.0


class Board:
    """A GPU of 400 W whose counter changes each 20 ms, at its power limit."""

    power_limit_mw, sm_clock_mhz, temperature_c, clock_limits = 700_000, 1980, 51, ("power cap",)

    @property
    def energy_mj(self) -> int | None:
        return round(time.perf_counter() // _TICK_S * _TICK_S * _WATTS * 1e3)


class Still(Board):
    """One whose counter stands still."""

    energy_mj = 17


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "_find_gpus", lambda: ({0: Board()}, None))
    for name, value in (("_SETTLING_S", 0.02), ("_BETWEEN_S", 0.05), ("_LONGEST_TICK_S", 0.1)):
        monkeypatch.setattr(energy, name, value)


def test_a_reading_is_taken_where_the_counter_changes() -> None:
    first, second = read_at_tick(Board()), read_at_tick(Board())
    assert first is not None
    assert second is not None
    watts = (second.millijoules - first.millijoules) * 1e6 / (second.time_ns - first.time_ns)
    assert watts == pytest.approx(_WATTS, rel=0.5)
    # A time of its own for each tick, not that of the call.
    assert abs(first.time_ns / 1e9 % _TICK_S - _TICK_S / 2) > 0.0


def test_a_counter_that_stands_still_gives_none(board: None) -> None:
    assert read_at_tick(Still()) is None


def test_a_window_gives_the_energy_between_its_first_and_last_tick(board: None) -> None:
    meter = EnergyMeter()
    meter.begin()
    time.sleep(0.8)
    meter.end()
    (found,) = meter.measured()
    assert found.millijoules * 1e6 / found.duration_ns == pytest.approx(_WATTS, rel=0.15)
    assert 0.2e9 < found.duration_ns < 0.8e9
    assert (found.power_limit_mw, found.sm_clock_mhz, found.temperature_c) == (700_000, 1980, 51)
    assert found.clock_limits == [ClockLimit("power cap", found.readings)]
    assert meter.missing is None
    meter.forget()
    assert (meter.measured(), meter.missing) == ([], TOO_SHORT)


def test_a_window_without_two_ticks_says_so(board: None) -> None:
    meter = EnergyMeter()
    meter.begin()
    meter.end()
    assert (meter.measured(), meter.missing) == ([], TOO_SHORT)


def test_a_training_on_the_cpu_lacks_nothing() -> None:
    if torch.cuda.is_available():
        pytest.skip("needs a machine without a GPU")
    meter = EnergyMeter()
    meter.begin()
    assert (meter.running, meter.measured(), meter.missing) == (False, [], None)
    assert (collect_facts().energy, collect_facts().energy_missing) == ([], None)


def test_a_driver_without_a_counter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Properties:
        uuid = "known"

    class Refusing(Board):
        energy_mj = None

        def __init__(self, uuid: str) -> None:
            assert uuid == "GPU-known"

    monkeypatch.setattr(energy, "used_devices", lambda: [0])
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Properties())
    monkeypatch.setattr(energy, "NvmlDevice", Refusing)
    meter = EnergyMeter()
    meter.begin()
    assert (meter.running, meter.measured()) == (False, [])
    assert meter.missing is not None
    assert "has no energy counter" in meter.missing
