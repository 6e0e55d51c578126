"""Which remedies are tried and chosen, with processes whose times are made up."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.model.trial_result import INSIDE, TriedRemedy
from tb_dlprof_plugin.trial import measuring
from tb_dlprof_plugin.trial.experiment import Bench
from tb_dlprof_plugin.trial.inside.remedy import Remedy
from tb_dlprof_plugin.trial.isolation import Isolation, IsolationKind
from tb_dlprof_plugin.trial.measuring import GRACE_S
from tb_dlprof_plugin.trial.protocol import Block, Checks, Ready
from tb_dlprof_plugin.trial.search import Search
from tb_dlprof_plugin.trial.statistics import Gain
from tb_dlprof_plugin.trial.variant import Laboratory, VariantError

STEP_S, START_S = 0.1, 5.0
NOISE = (0.004, -0.003, 0.001, -0.002, 0.003, -0.001)
SAME = Checks([1.0, 0.9], [1.0, 1.0], [0.1, 0.1], [False, False], [{"SGD.0.lr": 0.1}] * 2)
OTHER_RATE = Checks([1.0, 0.9], [1.0, 1.0], [0.2, 0.2], [False, False], [{"SGD.0.lr": 0.2}] * 2)


@dataclass
class Planted(Remedy):
    """A remedy that multiplies the time of a step by ``factor``."""

    name: str
    factor: float = 1.0
    group: str = ""
    samples: float = 1.0
    measures_kernels: bool = False
    in_running_process: bool = True
    of_kernels: bool = False
    usual_percent: float = 1.0
    checks: Checks = field(default_factory=lambda: SAME)
    error: str = ""
    no_effect: str = ""
    may_change: str = "Nothing."

    @property
    def compiles(self) -> bool:
        return self.name.startswith("compile")

    @property
    def title(self) -> str:
        return self.name


class Machine:
    """A clock, and variants that take its time."""

    def __init__(self, remedies: Sequence[Remedy], together: Mapping[tuple[str, ...], float] | None = None) -> None:
        self.remedies = {one.name: one for one in remedies}
        self.together = {frozenset(names): factor for names, factor in (together or {}).items()}
        self.now_s = 0.0
        self.blocks = 0
        self.alive: list[tuple[str, ...]] = []
        self.luck: dict[tuple[tuple[str, ...], int], float] = {}
        """Of one process of a variant, by the number of its start: a factor of its steps."""
        self.starts: dict[tuple[str, ...], int] = {}
        self.free_bytes: int | None = None
        self.cpu_count = 1
        self.chooses_kernels, self.padding, self.collecting_s = False, 0.0, 0.0
        self.most_alive = self.most_at_once = 0
        """Processes that were on their way at the same time."""
        self.under_way = 0
        self.fails: frozenset[str] = frozenset({"no", "such"})
        """Remedies that fail together."""
        self.world_size, self.start_s, self.compile_s = 1, START_S, 0.0
        self.fresh_s = 0.0
        """What starts with remedies takes more."""
        self.first_steps_s = 0.0
        """From the end of the first step until a process arrives."""
        self.disturbs = 1.0
        """Times the unchanged step while a process starts."""
        self.at_start: dict[str, Checks] = {}
        """By names of remedies, the first steps of a process that begins with them, where they are others than when
        switched."""
        self.ran: list[tuple[str, ...]] = []
        """Remedies of each block."""
        self.blocks_next_to_a_start = 0
        self.switched: list[tuple[str, ...]] = []
        """Sets that were checked in a running process."""

    def step_s(self, names: Sequence[str]) -> float:
        factor = self.together.get(frozenset(names), math.prod(self.remedies[one].factor for one in names))
        self.blocks += 1
        disturbed = self.disturbs if self.under_way and not names else 1.0
        return STEP_S * factor * (1 + NOISE[self.blocks % len(NOISE)]) * disturbed

    def checked(self, names: Sequence[str]) -> Ready:
        """What the first steps say. Raises VariantError."""
        own = [self.remedies[one] for one in names]
        failed = next((one.error for one in own if one.error), "")
        if failed and "CUDA error" in failed:
            ready = Ready(1, checks=SAME)
            ready.failed = failed
            return ready
        if failed or self.fails <= set(names):
            raise VariantError(failed or "RuntimeError: not together")
        ready = Ready(1, checks=next((one.checks for one in own if one.checks is not SAME), SAME))
        ready.no_effect = {one.name: one.no_effect for one in own if one.no_effect}
        ready.cpu_count, ready.measures_kernels, ready.padding = self.cpu_count, self.chooses_kernels, self.padding
        ready.world_size, ready.first_step_s = self.world_size, self.now_s - self.first_steps_s
        ready.collecting_s = self.collecting_s
        if self.free_bytes is not None:
            ready.cuda, ready.memory_bytes, ready.free_memory_bytes = True, 10**9, self.free_bytes
        return ready

    def variant(self, laboratory: Any, remedies: Sequence[str] = (), *more: Any) -> Process:
        return Process(self, tuple(remedies), more[2] if len(more) > 2 else 1.0)


class Process:
    """As `trial.variant.Variant`."""

    def __init__(self, machine: Machine, remedies: tuple[str, ...], samples: float) -> None:
        self._machine, self._remedies, self.samples = machine, remedies, samples
        self.alive, self.starts, self.host = False, 0, self
        self.ready: list[Ready] = []
        self.environment: dict[str, str] = {}
        self._arrives_s: float | None = None
        self._takes_s, self._wait_until_s = 0.0, math.inf

    def start(self, timeout_s: float, budget_s: float = math.inf) -> list[Ready]:
        self.launch(timeout_s)
        return self.arrived()

    def launch(self, timeout_s: float, budget_s: float = math.inf) -> None:
        self.end()
        machine = self._machine
        more_s = machine.compile_s * ("compile" in self._remedies) + machine.fresh_s * bool(self._remedies)
        self._takes_s = machine.start_s + more_s
        self._arrives_s, self._wait_until_s = machine.now_s + self._takes_s, machine.now_s + timeout_s
        machine.under_way += 1
        machine.most_at_once = max(machine.most_at_once, machine.under_way)
        machine.starts[self._remedies] = machine.starts.get(self._remedies, 0) + 1
        machine.alive.append(self._remedies)
        machine.most_alive = max(machine.most_alive, len(machine.alive))
        self.alive = True
        self.starts += 1

    def arrived(self) -> list[Ready]:
        machine = self._machine
        if self._arrives_s is not None:
            if self._arrives_s > self._wait_until_s:
                machine.now_s = max(machine.now_s, self._wait_until_s)
                self.end()
                raise VariantError("its first steps took longer")
            machine.now_s = max(machine.now_s, self._arrives_s)
            machine.under_way -= 1
            self._arrives_s = None
            try:
                self.ready = [machine.checked(self._remedies)]
                self.ready[0].since_start_s = self._takes_s
                names = set(self._remedies)
                wrong = next(
                    (checks for some, checks in machine.at_start.items() if set(some.split("+")) <= names), None
                )
                self.ready[0].checks = wrong or self.ready[0].checks
            except VariantError:
                self.end()
                raise
        return self.ready

    def wait_at_most(self, seconds: float) -> None:
        self._wait_until_s = min(self._wait_until_s, self._machine.now_s + seconds)

    @property
    def starts_still(self) -> bool:
        return self._arrives_s is not None and self._arrives_s > self._machine.now_s

    def run(self, steps: int, timeout_s: float, switched: Sequence[str] = ()) -> Block:
        machine = self._machine
        if not self.alive:
            self.start(timeout_s)
        names = (*self._remedies, *switched)
        seconds = steps * machine.step_s(names) * machine.luck.get((names, machine.starts.get(names, 0)), 1.0)
        machine.now_s += seconds
        machine.ran.append(names)
        machine.blocks_next_to_a_start += machine.under_way > 0
        return Block(steps, seconds)

    def check(self, switched: Sequence[str], seed: int, steps: int, timeout_s: float) -> Ready:
        machine = self._machine
        if not self.alive:
            self.start(timeout_s)
        if self._compiles_too_long(switched, timeout_s):
            self.end()
            raise VariantError("steps took longer")
        ready = machine.checked(switched)
        machine.switched.append(tuple(switched))
        machine.now_s += steps * machine.step_s(switched)
        return ready

    def _compiles_too_long(self, switched: Sequence[str], timeout_s: float) -> bool:
        machine = self._machine
        compiles = any(machine.remedies[one].compiles for one in switched) and tuple(switched) not in machine.switched
        takes_s = machine.compile_s if compiles else 0.0
        machine.now_s += min(takes_s, timeout_s)
        return takes_s > timeout_s

    def end(self) -> None:
        if self._arrives_s is not None:
            self._machine.under_way -= 1
            self._arrives_s = None
        if self.alive:
            self.alive = False
            self._machine.alive.remove(self._remedies)


class Silent:
    """Prints nothing."""

    def started(self, budget_s: float, left_s: float) -> None: ...

    def phase(self, text: str) -> None: ...

    def progress(self, remedy: str, gain: Gain) -> None: ...

    def row(self, row: TriedRemedy) -> None: ...


def searched_by(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    budget_s: float = 600.0,
    forecasts: Mapping[str, float] | None = None,
) -> tuple[Search, Any]:
    monkeypatch.setattr(measuring, "Variant", machine.variant)

    def clock() -> float:
        return machine.now_s

    search = Search(
        Laboratory(["true"], Path(), Path(), Isolation(IsolationKind.in_place, "/")),
        Bench(1.0, clock=clock),
        budget_s,
        Silent(),
        clock,
    )
    search.start_baseline()
    remedies = list(machine.remedies.values())
    best = search.run(remedies, forecasts or {})
    search.end()
    assert machine.alive == []
    return search, best


def row(search: Search, name: str) -> TriedRemedy:
    return next(one for one in search.rows if one.remedy == name)


def test_gains_are_called_and_losses_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    search, best = searched_by(Machine([Planted("half", 0.5), Planted("worse", 1.3), Planted("same")]), monkeypatch)
    assert [one.remedy for one in search.rows] == ["half", "same", "worse"]
    assert row(search, "half").gain_percent == pytest.approx(50, abs=1)
    assert [one.is_gain for one in search.rows] == [True, False, False]
    assert (best.remedies, best.gain_percent) == (["half"], pytest.approx(50, abs=1))


def test_what_does_not_add_up_is_not_in_the_best_set(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = Planted("a", 0.6), Planted("b", 0.7), Planted("c", 0.8)
    # b does the same as a; c is as good after it.
    machine = Machine([a, b, c], {("a", "b"): 0.6, ("a", "b", "c"): 0.48})
    _, best = searched_by(machine, monkeypatch)
    assert (best.remedies, best.gain_percent) == (["a", "c"], pytest.approx(52, abs=1))


def test_of_a_group_only_the_best_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    remedies = [Planted("compile", 0.7, "compile"), Planted("tune", 0.6, "compile"), Planted("fused", 0.8)]
    _, best = searched_by(Machine(remedies), monkeypatch)
    assert set(best.remedies) == {"tune", "fused"}


def test_another_training_is_never_in_the_best_set(monkeypatch: pytest.MonkeyPatch) -> None:
    search, best = searched_by(Machine([Planted("wrong", 0.3, checks=OTHER_RATE), Planted("right", 0.8)]), monkeypatch)
    assert row(search, "wrong").verdict == "differs"
    assert "lr is 0.2 instead of 0.1" in row(search, "wrong").verdict_text
    assert best.remedies == ["right"]


def test_a_lucky_process_is_no_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("nothing", in_running_process=False)])
    machine.luck = {(("nothing",), 1): 0.93, (("nothing",), 2): 1.02}
    search, best = searched_by(machine, monkeypatch)
    assert machine.starts["nothing",] == 2
    assert not row(search, "nothing").is_gain
    assert best.remedies == []


def test_a_failure_and_no_effect_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    remedies = [
        Planted("fails", error="RuntimeError: no"),
        Planted("idle", no_effect="It is on."),
        Planted("good", 0.5),
    ]
    search, best = searched_by(Machine(remedies), monkeypatch)
    assert row(search, "fails").error == "RuntimeError: no"
    assert (row(search, "idle").no_effect, row(search, "idle").gain_percent) == ("It is on.", None)
    assert best.remedies == ["good"]


def test_what_is_expected_to_gain_is_put_together_first_and_the_rest_says_that_the_budget_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remedies = [Planted("a", 0.9), Planted("b", 0.9), Planted("c", 0.5), Planted("same", no_effect="It is on.")]
    machine = Machine(remedies)
    search, best = searched_by(machine, monkeypatch, 20.0, {"same": 50.0, "c": 40.0, "a": 5.0, "b": -1.0})
    assert next(names for names in machine.switched if names) == ("same", "c", "a")
    assert row(search, "same").no_effect == "It is on."
    assert "larger --budget" in row(search, "b").not_tried
    assert set(best.remedies) == {"c", "a"}
    # The budget is kept: a block may end after it.
    assert machine.now_s < search.deadline_s + measuring.GRACE_S


def test_without_a_gain_nothing_is_kept_for_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    # The baseline and the other seed take 12 s, a remedy 15 s and more.
    search, _ = searched_by(Machine([Planted("half", 0.5)]), monkeypatch, 32.0)
    assert row(search, "half").gain_percent == pytest.approx(50, abs=1)


def test_a_larger_batch_is_measured_by_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    search, _ = searched_by(Machine([Planted("batch", 1.5, samples=2.0)]), monkeypatch)
    assert row(search, "batch").gain_percent == pytest.approx(25, abs=1)


def test_where_memory_is_for_one_process_remedies_are_switched_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("half", 0.5)])
    machine.free_bytes = 10**8
    search, best = searched_by(machine, monkeypatch, 60.0)
    assert search.notes == []
    assert machine.most_alive == 1
    assert best.remedies == ["half"]


def test_several_ranks_are_processes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("half", 0.5), Planted("same")])
    machine.world_size = 2
    _, best = searched_by(machine, monkeypatch)
    assert machine.switched == []
    assert machine.starts["half",] >= 1
    assert best.remedies == ["half"]


@pytest.mark.parametrize("cpus", [2, 16])
def test_what_compiles_starts_in_the_background_where_a_start_is_slow_and_cpus_are_free(
    cpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine([Planted("compile", 0.5, "compile"), Planted("half", 0.6), Planted("same")])
    machine.start_s, machine.cpu_count, machine.free_bytes = 20.0, cpus, 100 * 10**9
    _, best = searched_by(machine, monkeypatch, 120.0)
    assert machine.starts.get(("half", "same", "compile"), 0) == (cpus == 16)
    assert {"compile", "half"} <= set(best.remedies)
    assert best.gain_percent == pytest.approx(70, abs=1)


@pytest.mark.parametrize(("share", "count"), [(0.05, 0), (0.42, 1)])
def test_much_padding_is_a_sentence(share: float, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("half", 0.5)])
    machine.padding = share
    search, _ = searched_by(machine, monkeypatch)
    assert sum("42 % of the places in its batches are padding" in note for note in search.notes) == count


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_frozen_heap_is_likely_to_gain_where_the_collector_takes_time(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine([Planted("half", 0.5), Planted("frozen_garbage")])
    machine.collecting_s = share * STEP_S
    searched_by(machine, monkeypatch)
    assert set(machine.switched[3]) == ({"half", "frozen_garbage"} if share else {"half"})


def test_while_a_process_compiles_remedies_are_measured_alone_and_one_that_comes_too_late_is_not_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("one", "two", "three", "four", "five", "six")
    machine = Machine([Planted("compile", 0.5, "compile"), *(Planted(name, 1.02) for name in names)])
    machine.cpu_count, machine.free_bytes, machine.compile_s, machine.disturbs = 16, 100 * 10**9, 200.0, 1.5
    search, best = searched_by(machine, monkeypatch, 120.0)
    assert best.remedies == []
    assert sum("compile" in one for one in machine.starts) == 1
    # What seems to gain while a process starts is none.
    alone = [row(search, name) for name in names]
    assert all(-3 < one.gain_percent < 0.5 for one in alone if one.gain_percent is not None)
    assert sum(one.gain_percent is not None or bool(one.stopped) for one in alone) >= 5
    assert machine.now_s < 120 + START_S


@pytest.mark.parametrize(
    ("remedies", "steps", "best"),
    [
        # Alone both precisions are as fast; compiled, FP32 with TF32 is faster.
        (
            [Planted("half", 0.7, "precision", of_kernels=True), Planted("tf32", 0.7, of_kernels=True)],
            {
                ("half", "tf32"): 0.7,
                ("half", "tf32", "compile"): 0.5,
                ("half", "compile"): 0.5,
                ("tf32", "compile"): 0.35,
            },
            {"tf32", "compile"},
        ),
        # Its blocks alone are compiled sooner, but gain less.
        (
            [Planted("compile_blocks", 0.9, "compile", usual_percent=2.0), Planted("half", 0.7, "precision")],
            {("half", "compile_blocks"): 0.65, ("half", "compile"): 0.4},
            {"half", "compile"},
        ),
        # Shorter kernels gain nothing until the CPU launches them at once.
        (
            [
                Planted("half", 1.0, "precision", of_kernels=True),
                Planted("compile_reduce_overhead", 0.6, "compile", usual_percent=2.0),
            ],
            {("half", "compile"): 0.5, ("half", "compile_reduce_overhead"): 0.3},
            {"half", "compile_reduce_overhead"},
        ),
    ],
    ids=["precision", "blocks", "pace"],
)
def test_what_is_compiled_is_compiled_otherwise_while_there_is_time(
    remedies: list[Remedy],
    steps: dict[tuple[str, ...], float],
    best: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine([*remedies, Planted("compile", 0.5, "compile")], steps)
    machine.cpu_count, machine.free_bytes, machine.compile_s = 16, 100 * 10**9, 15.0
    _, found = searched_by(machine, monkeypatch, 120.0)
    assert best <= set(found.remedies)
    assert found.confirmed
    assert machine.now_s < 120 + START_S
    compiled = [one for one in machine.starts if any(name.startswith("compile") for name in one)]
    assert len(compiled) > 1


def test_what_gains_less_than_another_set_is_measured_shortly_and_in_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks = Planted("compile_blocks", 1.02, "compile", usual_percent=2.0)
    machine = Machine([Planted("half", 0.85), blocks])
    machine.cpu_count, machine.free_bytes = 16, 100 * 10**9
    search, best = searched_by(machine, monkeypatch)
    both = next(one for one in search.sets if one.remedy == "half+compile_blocks")
    assert best.remedies == ["half"]
    assert (both.quads, both.is_gain, both.stopped) == (4, False, "another set gains more")
    assert machine.starts["half", "compile_blocks"] == 1


@pytest.mark.parametrize(("budget_s", "best"), [(120.0, {"tf32", "compile"}), (60.0, {"half"})])
def test_what_compiled_trains_otherwise_is_said_and_compiled_in_more_precision_while_there_is_time(
    budget_s: float, best: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    precisions = [Planted("half", 0.7, "precision", of_kernels=True), Planted("tf32", 0.75, of_kernels=True)]
    machine = Machine(
        [*precisions, Planted("compile", 0.5, "compile")],
        {("half", "tf32"): 0.7, ("half", "tf32", "compile"): 0.3, ("half", "compile"): 0.3},
    )
    machine.cpu_count, machine.free_bytes, machine.compile_s = 16, 100 * 10**9, 15.0
    machine.at_start["half+compile"] = OTHER_RATE
    search, found = searched_by(machine, monkeypatch, budget_s)
    assert best <= set(found.remedies)
    assert any("compile in a fresh process trains otherwise: " in note for note in search.notes)


def test_what_fails_when_the_budget_is_used_loses_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("half", 0.5), Planted("compile", 0.9, "compile")])
    machine.compile_s = 200.0
    _, best = searched_by(machine, monkeypatch, 60.0)
    assert best.remedies == ["half"]
    assert machine.now_s <= 60 + START_S + GRACE_S


def test_on_a_cpu_nothing_starts_next_to_a_race(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("half", 0.8), Planted("needless"), Planted("compile", 0.7, "compile")])
    machine.cpu_count = 16
    _, best = searched_by(machine, monkeypatch, 120.0)
    assert set(best.remedies) >= {"half", "compile"}
    assert best.confirmed
    assert machine.blocks_next_to_a_start == 0


def test_on_a_cpu_a_race_does_not_wait_for_a_slow_start(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("half", 0.5), Planted("harms", 1.3), Planted("other", 0.8, usual_percent=-1.0)])
    machine.start_s = 20.0
    _, best = searched_by(machine, monkeypatch, 60.0)
    assert set(best.remedies) == {"half", "other"}
    assert machine.blocks_next_to_a_start == 0


def test_the_best_set_is_confirmed_in_a_fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("half", 0.5), Planted("less", 0.8)])
    _, best = searched_by(machine, monkeypatch)
    assert machine.starts["half", "less"] == 1
    assert set(best.remedies) == {"half", "less"}


def test_a_remedy_of_the_environment_is_measured_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("half", 0.5), Planted("malloc", 0.8, in_running_process=False)])
    _, best = searched_by(machine, monkeypatch)
    assert set(best.remedies) == {"half", "malloc"}


def test_a_set_that_was_measured_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("a", 0.5), Planted("b", 0.6), Planted("c", 0.7)])
    _, best = searched_by(machine, monkeypatch)
    assert best.remedies == ["a", "b", "c"]
    assert machine.starts["a", "b", "c"] == 1


TRANSFORMER = {
    (): 83.0, ("tf32",): 30.1, ("bf16",): 28.6, ("fused",): 80.7, ("attention",): 82.5,
    ("tf32", "bf16"): 33.5, ("tf32", "fused"): 27.8, ("tf32", "attention"): 34.3, ("bf16", "fused"): 22.5,
    ("bf16", "attention"): 30.4, ("fused", "attention"): 80.4, ("tf32", "bf16", "fused"): 22.1,
    ("tf32", "bf16", "attention"): 18.2, ("tf32", "fused", "attention"): 32.0, ("bf16", "fused", "attention"): 13.8,
    ("tf32", "bf16", "fused", "attention"): 13.8,
}  # fmt: skip
CONVNET = {
    (): 98.0, ("tf32",): 40.5, ("bf16",): 31.8, ("channels",): 101.3, ("search",): 98.0,
    ("tf32", "bf16"): 31.8, ("tf32", "channels"): 27.1, ("tf32", "search"): 40.6, ("bf16", "channels"): 15.6,
    ("bf16", "search"): 31.6, ("channels", "search"): 101.2, ("tf32", "bf16", "channels"): 15.5,
    ("tf32", "bf16", "search"): 31.7, ("tf32", "channels", "search"): 27.1, ("bf16", "channels", "search"): 15.6,
    ("tf32", "bf16", "channels", "search"): 15.4,
}  # fmt: skip
"""Steps in ms of two trainings on an H200, each with all sets of four remedies (`lab.trying.grid`)."""


@pytest.mark.parametrize(
    ("steps", "expected"),
    [(TRANSFORMER, {"bf16", "fused", "attention"}), (CONVNET, {"bf16", "channels"})],
    ids=["transformer", "convnet"],
)
@pytest.mark.parametrize("cpus", [2, 16])
def test_what_pays_only_next_to_others_is_found(
    steps: dict[tuple[str, ...], float], expected: set[str], cpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_set = {frozenset(names): value / steps[()] for names, value in steps.items()}
    names = [one[0] for one in steps if len(one) == 1]
    orders = itertools.chain.from_iterable(itertools.permutations(names, count) for count in range(5))
    machine = Machine([Planted(name) for name in names], {one: by_set[frozenset(one)] for one in orders})
    machine.cpu_count, machine.free_bytes = cpus, 100 * 10**9
    _, best = searched_by(machine, monkeypatch, 300.0)
    assert expected <= set(best.remedies)
    assert best.gain_percent == pytest.approx(100 * (1 - by_set[frozenset(expected)]), abs=1)


def test_those_that_exclude_each_other_are_added_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    remedies = [Planted("a", 0.5), Planted("b", 0.6), Planted("c", 0.7), Planted("d")]
    machine = Machine(remedies)
    machine.fails = frozenset({"b", "c"})
    _, best = searched_by(machine, monkeypatch)
    assert best.remedies == ["a", "b"]


def test_of_many_that_do_nothing_none_is_left_in_the_set(monkeypatch: pytest.MonkeyPatch) -> None:
    remedies = [Planted("a", 0.5), Planted("b", 0.6), *(Planted(f"idle{number}") for number in range(12))]
    machine = Machine(remedies)
    _, best = searched_by(machine, monkeypatch, 1200.0)
    assert best.remedies == ["a", "b"]
    # Less than one start for each of them.
    assert sum(count for names, count in machine.starts.items() if len(names) > 1) < 9


def test_what_is_left_of_the_time_for_sets_is_for_other_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    remedies = [Planted("a", 0.5), *(Planted(f"worse{number}", 1.2) for number in range(6)), Planted("last", 0.9)]
    search, best = searched_by(Machine(remedies), monkeypatch, 170.0)
    assert row(search, "last").gain_percent == pytest.approx(10, abs=1)
    assert best.remedies[0] == "a"


def test_what_differs_from_a_fresh_process_s_first_step_on_is_in_no_best_set(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a remedy that the script answers with another learning rate, at its start alone
    machine = Machine([Planted("wrong", 0.5), Planted("right", 0.8)])
    machine.at_start["wrong"] = OTHER_RATE
    search, best = searched_by(machine, monkeypatch)
    assert row(search, "wrong").verdict == "differs"
    assert best.remedies == ["right"]


def test_what_is_measured_next_to_a_start_in_the_background_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a script that the CPUs pace, on a machine on which starts take long
    machine = Machine([Planted("compile", 0.9, "compile"), Planted("half", 0.5), Planted("same")])
    machine.start_s, machine.cpu_count, machine.free_bytes, machine.disturbs = 20.0, 16, 100 * 10**9, 3.0
    search, best = searched_by(machine, monkeypatch, 120.0)
    # THEN nothing is said of the unchanged script that was measured next to the start
    assert machine.starts["half", "same", "compile"] == 1
    assert best.gain_percent == pytest.approx(55, abs=1)
    assert all((one.gain_percent or 0.0) < 60 for one in (*search.rows, *search.sets))
    assert {*best.remedies} >= {"half", "compile"}
    assert best.confirmed


def test_what_gained_inside_the_script_is_said_where_no_fresh_process_came_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine([Planted("compile", 0.9, "compile"), Planted("half", 0.5), Planted("same")])
    machine.start_s, machine.cpu_count, machine.free_bytes, machine.compile_s = 30.0, 16, 100 * 10**9, 60.0
    _, best = searched_by(machine, monkeypatch, 60.0)
    assert machine.starts["half", "same", "compile"] == 1
    assert best.remedies[0] == "half"
    assert best.gain_percent == pytest.approx(50, abs=1)
    assert not best.confirmed


def test_fresh_processes_that_come_too_late_do_not_take_back_what_was_measured_inside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine([Planted("half", 0.5), Planted("less", 0.8)])
    machine.free_bytes = 100 * 10**9
    machine.fresh_s = 50.0
    search, best = searched_by(machine, monkeypatch, 60.0)
    assert machine.starts["half", "less"] == 1
    assert best.remedies == ["half", "less"]
    assert best.gain_percent == pytest.approx(60, abs=1)
    assert not best.confirmed
    assert [one.stopped for one in search.sets if one.remedy == "half+less"] == [INSIDE]


def test_steps_that_take_the_whole_budget_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("half", 0.5)])
    machine.first_steps_s = 70.0
    with pytest.raises(VariantError, match="its first steps took the budget of 60 s; give a larger --budget"):
        searched_by(machine, monkeypatch, 60.0)


def test_no_process_starts_in_the_background_that_cannot_be_measured_within_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine([Planted("compile", 0.9, "compile"), Planted("half", 0.5), Planted("same")])
    machine.start_s, machine.cpu_count, machine.free_bytes = 55.0, 16, 100 * 10**9
    _, best = searched_by(machine, monkeypatch, 60.0)
    assert ("half", "same", "compile") not in machine.starts
    assert set(best.remedies) == {"half", "compile"}
    assert not best.confirmed


def test_what_harms_a_set_that_gains_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("a", 0.5), Planted("harm", 1.2), Planted("b", 0.7)])
    search, best = searched_by(machine, monkeypatch, 120.0)
    assert set(best.remedies) == {"a", "b"}
    assert best.gain_percent == pytest.approx(65, abs=1)
    assert row(search, "harm").stopped or row(search, "harm").gain_percent == pytest.approx(-20, abs=1)


def test_where_the_gpu_waits_for_the_cpu_what_spares_the_cpu_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a step that is paced by the CPU, which a half precision costs more time
    half, tf32 = Planted("half", 1.3, of_kernels=True, usual_percent=30.0), Planted("tf32", of_kernels=True)
    machine = Machine([half, tf32, Planted("fused", 0.8), Planted("graphs", 0.5, "compile", usual_percent=10.0)])
    machine.free_bytes = 100 * 10**9
    _, best = searched_by(machine, monkeypatch, 60.0)
    assert ("fused", "graphs") in [tuple(sorted(one)) for one in machine.switched]
    assert set(best.remedies) == {"fused", "graphs"}
    assert best.gain_percent == pytest.approx(60, abs=1)


def test_what_spares_the_cpu_is_chosen_where_it_gains_more(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN two remedies of kernels, which cost the same whether one or both are there
    half, tf32 = (Planted(name, 1.3, of_kernels=True, usual_percent=30.0) for name in ("half", "tf32"))
    machine = Machine(
        [half, tf32, Planted("fused", 0.6)],
        {("half", "tf32", "fused"): 0.8, ("half", "fused"): 0.8, ("tf32", "fused"): 0.8},
    )
    machine.free_bytes = 100 * 10**9
    _, best = searched_by(machine, monkeypatch, 60.0)
    # Both are out at once, before any set that differs by one.
    assert [one for one in machine.switched if one][1] == ("fused",)
    assert best.remedies == ["fused"]
    assert best.gain_percent == pytest.approx(40, abs=1)


def test_what_clearly_loses_a_race_is_soon_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Planted("a", 0.5), *(Planted(f"worse{number}", 1.2, usual_percent=-1.0) for number in range(9))])
    _, best = searched_by(machine, monkeypatch, 120.0)
    # Two quads, with two blocks each, and one block before them.
    blocks = sum(len(names) > 1 for names in machine.ran)
    assert 0 < blocks <= 9 * (2 * 2 + 1)
    assert best.remedies == ["a"]


def test_a_cuda_error_ends_its_process_and_no_other_remedy_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = "AcceleratorError: CUDA error: operation failed due to a previous error during capture"
    machine = Machine([Planted("graphs", error=broken, usual_percent=9.0), Planted("good", 0.5)])
    ended: list[int] = []
    end = Process.end
    monkeypatch.setattr(Process, "end", lambda process: (ended.append(process.starts), end(process))[1])
    search, best = searched_by(machine, monkeypatch, 60.0)
    assert row(search, "graphs").error == broken
    assert best.remedies == ["good"]
    # The running script was started again after the set, and after the remedy alone.
    assert max(ended) == 3


class BusyMachine(Machine):
    """Its steps vary by 5 %, some take half as long again, and its pace changes every other second."""

    def __init__(self, remedies: Sequence[Remedy], drawn: random.Random) -> None:
        super().__init__(remedies)
        self._drawn, self._pace, self._until_s = drawn, 1.0, 0.0

    def step_s(self, names: Sequence[str]) -> float:
        if self.now_s >= self._until_s:
            self._until_s = self.now_s + self._drawn.expovariate(0.5)
            self._pace = math.exp(self._drawn.gauss(0.0, 0.1))
        noise = math.exp(self._drawn.gauss(0.0, 0.05)) * (1.5 if self._drawn.random() < 0.05 else 1.0)
        return STEP_S / 5 * math.prod(self.remedies[one].factor for one in names) * self._pace * noise


def test_on_a_busy_machine_a_minute_finds_nearly_all_of_what_can_be_gained(monkeypatch: pytest.MonkeyPatch) -> None:
    shares, ends_s = [], []
    for seed in range(20):
        drawn = random.Random(seed)
        factors = [drawn.choice((0.6, 0.8, 0.9, 0.95, 1.0, 1.0, 1.0, 1.0, 1.05, 1.2)) for _ in range(10)]
        remedies = [Planted(f"r{number}", factor, usual_percent=5.0) for number, factor in enumerate(factors)]
        least = math.prod(factor for factor in factors if factor < 1)
        machine = BusyMachine(remedies, drawn)
        _, best = searched_by(machine, monkeypatch, 60.0)
        ends_s.append(machine.now_s)
        if least < 0.95:
            reached = math.prod(machine.remedies[one].factor for one in best.remedies)
            shares.append((1 - reached) / (1 - least))
    assert len(shares) > 10
    assert statistics.median(shares) > 0.97
    assert statistics.mean(shares) > 0.85
    # From the script's first step on, and 5 s before it.
    assert max(ends_s) < START_S + 60 + measuring.GRACE_S


def test_on_a_busy_machine_nothing_is_called_where_nothing_gains(monkeypatch: pytest.MonkeyPatch) -> None:
    called = 0
    for seed in range(50):
        remedies = [Planted(f"r{number}", usual_percent=1.0 - number % 3) for number in range(10)]
        _, best = searched_by(BusyMachine(remedies, random.Random(seed)), monkeypatch, 60.0)
        called += bool(best.remedies)
    assert called == 0
