"""Variants of one script: how they are started, and what one gains over another one."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tb_dlprof_plugin.capture.facts.machine import usable_cores
from tb_dlprof_plugin.model.trial_result import BUDGET_USED, TriedRemedy
from tb_dlprof_plugin.trial.experiment import Bench, Measured, least_s, look_s
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy, environment_of
from tb_dlprof_plugin.trial.loading import Loading
from tb_dlprof_plugin.trial.protocol import Checks, Ready
from tb_dlprof_plugin.trial.statistics import WORTH, Gain
from tb_dlprof_plugin.trial.switched import CHECKED, Host, OfScript, Switched
from tb_dlprof_plugin.trial.variant import Laboratory, PortTakenError, Variant, VariantError
from tb_dlprof_plugin.trial.verdict import compare

_START_FACTOR, _START_MORE_S = 4.0, 60.0
"""A process may take so many times as long to start as the first one, and so many seconds more: it may compile."""
_LEAST_START_S = 120.0
"""The first one may take so long until its first steps are done, or the budget, where that is longer."""
_OTHER_SEED = 1
_MARGIN = 1.1
"""Of the baseline's memory that must be free for a second process."""
_CONTEXT_BYTES = 600e6
"""Of a CUDA context with its libraries."""
_ROOM = 1.5
"""Times the memory that a process should need."""
_LEAST_CHECKED, _SHARE_OF_CHECK = 3, 0.02
"""Steps, and the share of the budget that they may take each time."""
_PAGE_FAULT_S = 1.4e-6
"""Of one page of 4 KiB that is mapped, cleared and unmapped: a new tensor of 32 MB that is filled against one that is
filled again, on a virtual machine."""
_PREPARED, _CORES_TO_PREPARE = 3, 4
"""Processes that wait with their imports done: the final set, the unchanged script, and a second one of the set. With
fewer cores they delay the first start by as much as they save later (`lab.trying.prepared_tries`)."""
_SHARE_OF_START = 0.1
"""Of the first start, that one without imports takes at least."""
_SLOW = 2.5
"""Times the unchanged step."""
GRACE_S = 6.0
"""After the end of the budget, in which a block of steps may end."""


class Listener(Protocol):
    """Receives the progress of a trial."""

    def started(self, budget_s: float, left_s: float) -> None:
        """The script has made its first steps, and the budget runs."""
        ...

    def phase(self, text: str) -> None:
        """Something begins that takes seconds."""
        ...

    def progress(self, remedy: str, gain: Gain) -> None:
        """A quad was measured."""
        ...

    def row(self, row: TriedRemedy) -> None:
        """A remedy or a set is measured against the unchanged script."""
        ...


@dataclass(frozen=True)
class _Yardstick:
    """The unchanged steps in a running process: as they were, with another seed, and once more."""

    baseline: Ready
    step_s: float
    seeds: tuple[Checks, ...]
    repeated: Checks | None = None


@dataclass
class Measuring:
    """Measures variants of one script.

    Attributes:
        laboratory: what its processes share; None: the steps are those of a host alone.
        bench: takes turns.
        budget_s: seconds from the script's first step on.
        listener: receives the progress.
        host: the process in which remedies are switched; None where they are not, as with several ranks.
        baseline: the unchanged script.
        deadline_s: of `clock`.
        fitting: how many processes more than the baseline the GPU has memory for; None: that is not known.
        start_s: from the start of the first process to the end of its first steps.
    """

    laboratory: Laboratory | None
    bench: Bench
    budget_s: float
    listener: Listener
    clock: Callable[[], float] = time.monotonic
    host: Host | None = None
    baseline: OfScript = field(init=False)
    baseline_step_ms: float = math.nan
    ready: list[Ready] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    deadline_s: float = math.inf
    fitting: int | None = None
    start_s: float = 0.0
    _process: Variant | None = None
    _seeds: list[Checks] = field(default_factory=list)
    _idle: tuple[tuple[str, ...], Variant] | None = None
    """The last chosen set, where remedies are not switched in one process."""
    _switched: dict[tuple[str, ...], Switched] = field(default_factory=dict)
    _yardsticks: dict[int, _Yardstick] = field(default_factory=dict)
    """By the number of the host's start."""

    @property
    def left_s(self) -> float:
        """Of the budget."""
        return self.deadline_s - self.clock()

    @property
    def on_gpu(self) -> bool:
        """Whether the script uses a GPU."""
        return bool(self.ready) and self.ready[0].cuda

    @property
    def least_s(self) -> float:
        """Seconds of a measurement in which a gain can be certain."""
        return least_s(self.baseline_step_ms / 1e3)

    @property
    def look_s(self) -> float:
        """Seconds of a measurement that shows which of two sets is better."""
        return look_s(self.baseline_step_ms / 1e3)

    @property
    def checked_steps(self) -> int:
        """Steps that are compared in a running process: fewer where they are slow, as fresh processes compare more."""
        return max(_LEAST_CHECKED, min(CHECKED, int(_SHARE_OF_CHECK * self.budget_s * 1e3 / self.baseline_step_ms)))

    def start_baseline(self) -> Ready:
        """Start the unchanged script; what its first rank says. The budget begins with its first step.

        Raises:
            VariantError: it does not train, or fails by itself.
        """
        assert self.laboratory is not None
        self.listener.phase("The unchanged script starts")
        self._process = process = Variant(self.laboratory)
        began = self.clock()
        longest = max(_LEAST_START_S, self.budget_s)
        # A process that does not train says so at the end of that time.
        process.launch(longest + GRACE_S, longest)
        if (usable_cores() or 1.0) >= _CORES_TO_PREPARE:
            self.laboratory.prepare(_PREPARED)
        self.ready = process.arrived()
        self.start_s = self.clock() - began
        first = self.ready[0]
        if first.sets_variables:
            self.laboratory.end_waiting()
        self.deadline_s = (first.first_step_s or self.clock()) + self.budget_s
        self.listener.started(self.budget_s, self.left_s)
        if self.left_s <= 0:
            raise VariantError(f"its first steps took the budget of {self.budget_s:.0f} s; give a larger --budget")
        if first.world_size == 1:
            self.host, self.baseline = process, Switched(process)
        else:
            self.baseline = process
        self.bench.limit, self.bench.left_s = self._within, lambda: self.left_s
        self.baseline_step_ms = 1e3 * self.bench.warm_up(process, self.start_timeout_s)
        if first.cuda and first.free_memory_bytes is not None:
            needed = _MARGIN * (first.memory_bytes or 0) + _CONTEXT_BYTES
            self.fitting = int(first.free_memory_bytes / (_ROOM * needed))
            if first.free_memory_bytes < needed:
                self._one_at_a_time("The GPU has no memory for two processes of this training")
        return first

    def start_here(self, host: Host) -> None:
        """Measure the steps of a host, from now on. Raises VariantError."""
        self.host, self.baseline = host, Switched(host)
        self.deadline_s = self.clock() + self.budget_s
        self.bench.limit, self.bench.left_s = self._within, lambda: self.left_s
        self.baseline_step_ms = 1e3 * self.bench.warm_up(self.baseline, self.start_timeout_s)

    def switches(self, candidates: Sequence[Remedy]) -> bool:
        """Whether these can be switched on in the host."""
        return self.host is not None and all(one.in_running_process for one in candidates)

    def variant(self, candidates: Sequence[Remedy]) -> OfScript:
        """One with these remedies, not started: in the host where that is possible."""
        names = tuple(one.name for one in candidates)
        if self.switches(candidates):
            assert self.host is not None
            samples = math.prod(one.samples for one in candidates)
            return self._switched.setdefault(names, Switched(self.host, names, samples, self.checked_steps))
        idle = self._idle
        if idle is not None and idle[0] == names:
            self._idle = None
            return idle[1]
        return self.fresh(candidates)

    def keep_idle(self, candidates: Sequence[Remedy], variant: OfScript) -> None:
        """Keep the process of a variant for the next one with these remedies; another one that was kept ends."""
        self.end_idle()
        if candidates and not isinstance(variant, Switched):
            self._idle = tuple(one.name for one in candidates), variant

    def end_idle(self) -> None:
        """End the process that was kept. Never raises."""
        if self._idle is not None:
            self._idle[1].end()
        self._idle = None

    def fresh(self, candidates: Sequence[Remedy], seed_offset: int = 0) -> Variant:
        """A process of its own with these remedies, not started."""
        assert self.laboratory is not None
        return Variant(
            self.laboratory,
            [one.name for one in candidates],
            environment_of(candidates),
            seed_offset,
            math.prod(one.samples for one in candidates),
        )

    def fresh_baseline(self) -> Variant:
        """The unchanged script in a process of its own, with another seed: the yardstick of what is the same."""
        return self.fresh((), _OTHER_SEED)

    def yardstick_of(self, variant: Variant) -> None:
        """Wait for the first steps of the unchanged script with another seed. Raises VariantError."""
        try:
            self._seeds = [variant.arrived()[0].checks]
        except PortTakenError:
            self._one_at_a_time("The command names the port at which its ranks meet")
            self.end_host()
            self._seeds = [variant.start(self.start_timeout_s)[0].checks]

    def fresh_s(self, variables: Mapping[str, str] | None = None, count: int = 1) -> float:
        """About how long so many fresh processes need that start at the same time: where enough of them wait, their
        imports are done, unless variables have to be set before."""
        waiting = [] if self.laboratory is None or variables else self.laboratory.waiting
        imports_s = [seconds for one in waiting if (seconds := one.imports_s) is not None]
        if len(imports_s) < count:
            return self.start_s
        return max(self.start_s - min(imports_s), _SHARE_OF_START * self.start_s)

    def _one_at_a_time(self, why: str) -> None:
        self.bench.exclusive = True
        if self.host is None:
            self.notes.append(f"{why}: processes are started afresh in turns, and the same interval takes longer.")

    def row_of(self, candidates: Sequence[Remedy]) -> TriedRemedy:
        """The row of remedies before they are tried."""
        return TriedRemedy(
            remedy=name_of(candidates),
            title="; ".join(one.title for one in candidates),
            changes=" ".join(dict.fromkeys(one.may_change for one in candidates)),
            code="".join(one.code() for one in candidates),
            samples=math.prod(one.samples for one in candidates),
        )

    def checked(self, row: TriedRemedy, candidates: Sequence[Remedy], variant: OfScript) -> Ready | None:
        """Start a variant, and say in its row whether it trains the same; None where it fails or has no effect."""
        self.listener.phase(name_of(candidates))
        switched = isinstance(variant, Switched)
        try:
            yardstick = self._of_host() if switched else _Yardstick(self.ready[0], math.inf, tuple(self._seeds))
            if not variant.alive:
                if self.bench.exclusive and not switched:
                    self.end_host()
                variant.launch(self.start_timeout_s)
            ready = variant.arrived()[0]
        except VariantError as error:
            self._failed(row, error)
            return None
        same = compare(
            yardstick.baseline.checks,
            ready.checks,
            yardstick.seeds,
            repeated=yardstick.repeated,
            random=any(one.changes is Changes.RANDOM for one in candidates),
            training="; ".join(one.may_change for one in candidates if one.changes is Changes.TRAINING),
        )
        row.verdict, row.verdict_text = same.verdict, same.detail
        row.code = "".join(code for name, code in ready.codes.items() if name not in ready.no_effect) or row.code
        row.start_s = max(row.start_s or 0.0, ready.since_start_s)
        if candidates and len(ready.no_effect) == len(candidates):
            row.verdict, row.verdict_text = None, ""
            row.no_effect = " ".join(ready.no_effect.values())
            return None
        return ready

    def measure(
        self,
        row: TriedRemedy,
        candidates: Sequence[Remedy],
        seconds: float,
        other: OfScript,
        variant: OfScript,
        share: float = 0.0,
        than: float = -math.inf,
    ) -> Measured | None:
        """Fill the row with what ``variant`` gains over ``other``; None where nothing was measured.

        Args:
            row: what is filled.
            candidates: the remedies of ``variant``.
            seconds: for the quads.
            other: what it is measured against.
            variant: where it has not been started, it is; the caller ends it.
            share: of the gain that half of its interval may be, where that is more than the precision asked for.
            than: percent that another set gains.
        """
        if self.bench.exclusive and other.host is not variant.host:
            other.end()
        is_warm = self.bench.is_warm(variant)
        if self.checked(row, candidates, variant) is None:
            return None
        try:
            warming = self.clock()
            if not is_warm:
                self.bench.warm_up(variant, self.start_timeout_s)
            row.start_s = (row.start_s or 0.0) + self.clock() - warming
            measured = self.bench.compare(
                other,
                variant,
                min(seconds, self.left_s),
                lambda found: self.listener.progress(row.remedy, found),
                share,
                than=than,
            )
        except VariantError as error:
            row.verdict, row.verdict_text = None, ""
            self._failed(row, error)
            return None
        fill(row, measured)
        return measured

    def confirm(self, row: TriedRemedy, first: Measured, other: OfScript, variant: Variant) -> None:
        """Measure a second process of ``variant``, where its gain depends on it, or say that there was no time."""
        try:
            measured = self.bench.in_a_second_process(
                other, variant, first, self.left_s - self.fresh_s(variant.environment), self.start_timeout_s
            )
        except VariantError as error:
            row.is_gain, row.stopped = False, f"the second process: {error}"
            return
        fill(row, measured)

    def loading(self) -> Loading | None:
        """What a step waits for batches; None without a DataLoader. Raises VariantError: the steps fail."""
        return None if self.host is None else _loading_of(self._of_host().baseline)

    def padding_percent(self) -> float:
        """Percent of the places of sequences in batches that is padding. Raises VariantError: the steps fail."""
        return 0.0 if self.host is None else 100 * self._of_host().baseline.padding

    def collecting_percent(self) -> float:
        """Of the step, what Python's garbage collector takes. Raises VariantError: the steps fail."""
        if self.host is None:
            return 0.0
        return 100 * self._of_host().baseline.collecting_s / (self.baseline_step_ms / 1e3)

    def page_faults_percent(self) -> float:
        """Of the step, about what the kernel needs to give the process memory. Raises VariantError: the steps fail."""
        if self.host is None:
            return 0.0
        return 100 * self._of_host().baseline.page_faults * _PAGE_FAULT_S / (self.baseline_step_ms / 1e3)

    def is_slow(self, ready: Ready) -> bool:
        """Whether the compared steps of a variant took so much longer that measuring it would waste the budget."""
        if self.host is None or self.host.starts not in self._yardsticks:
            return False
        if self.on_gpu:
            # Its steps' times on the CPU are not those of the GPU.
            return False
        # Steps that are compared need not wait for their batches.
        return ready.step_s > _SLOW * max(self._yardsticks[self.host.starts].step_s, self.baseline_step_ms / 1e3)

    def end_host(self) -> None:
        """End the process in which remedies are switched; the next turn in it starts another one. Never raises."""
        if self._process is not None:
            self._process.end()

    @property
    def start_timeout_s(self) -> float:
        """The longest that a start or a check may take."""
        return self._within(_START_FACTOR * self.start_s + _START_MORE_S)

    def _within(self, seconds: float) -> float:
        """At most so many seconds, and not much longer than the budget."""
        return max(1.0, min(seconds, self.left_s + GRACE_S))

    def _of_host(self) -> _Yardstick:
        assert self.host is not None
        if self.host.starts not in self._yardsticks:
            found = []
            for seed in (0, _OTHER_SEED, 0):
                with contextlib.suppress(VariantError):
                    found.append(self.host.check((), seed, self.checked_steps, self.start_timeout_s))
            if not found:
                raise VariantError("the unchanged script failed when its steps were compared")
            # Its start is that of the process that has answered.
            self._yardsticks[self.host.starts] = _Yardstick(
                found[0],
                min(one.step_s for one in found),
                tuple(one.checks for one in found[1:2]),
                found[2].checks if len(found) > 2 else None,
            )
        return self._yardsticks[self.host.starts]

    def _failed(self, row: TriedRemedy, error: VariantError) -> None:
        if self.left_s <= 0:
            row.not_tried = BUDGET_USED
        else:
            row.error = str(error)


def _loading_of(ready: Ready) -> Loading | None:
    if not ready.loading:
        return None
    wait_s, cpu_s, workers, *more = ready.loading
    return Loading(wait_s, cpu_s, int(workers), *more)


def name_of(candidates: Sequence[Remedy]) -> str:
    """Of a set of remedies, such as ``tf32+compile``."""
    return "+".join(one.name for one in candidates)


def fill(row: TriedRemedy, measured: Measured) -> None:
    """Write what was measured into a row."""
    found = measured.gain
    row.quads, row.stopped = found.quads, measured.stopped
    row.is_gain = found.certain and found.percent >= WORTH
    row.before_ms, row.after_ms = measured.before_ms, measured.after_ms
    row.gain_percent = found.percent
    row.low_percent = found.low if math.isfinite(found.low) else None
    row.high_percent = found.high if math.isfinite(found.high) else None
    row.memory_bytes = measured.peak_bytes or row.memory_bytes
