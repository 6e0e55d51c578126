"""Tries remedies on a step of a training that runs in this process, such as a notebook's.

As in a process of `tb-dlprof try`, remedies are switched on and off between blocks of steps. What is set up before a
training starts (variables of the environment, ranks) cannot be tried here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence

import torch

from tb_dlprof_plugin.model.trial_result import TrialResult, TriedRemedy
from tb_dlprof_plugin.trial.experiment import Bench
from tb_dlprof_plugin.trial.facts import TrialFacts
from tb_dlprof_plugin.trial.inside.hooks import TrialHooks
from tb_dlprof_plugin.trial.inside.remedies import classes, make
from tb_dlprof_plugin.trial.inside.switching import Switcher, T
from tb_dlprof_plugin.trial.inside.training_state import TrainingState
from tb_dlprof_plugin.trial.protocol import Block, Ready
from tb_dlprof_plugin.trial.search import Search
from tb_dlprof_plugin.trial.statistics import Gain

_WARMUP = 4
_NOT_HERE = "It belongs to the start of a training: try it with `tb-dlprof try`."


def try_step(
    step: Callable[[], object],
    *,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    remedies: Sequence[str] | None = None,
    budget_s: float = 60.0,
    precision_percent: float = 1.0,
) -> TrialResult:
    """Measure remedies on a step, and whether the training stays the same.

    Model and optimizer have the state that they had before, when it ends.

    Args:
        step: runs one step of the training, from the batch to the optimizer's step.
        model: that the step calls.
        optimizer: that it steps.
        remedies: their names; those that can be switched on in a running process where None.
        budget_s: seconds for all of it; the remedies that it is too short for are not measured.
        precision_percent: half of the interval at which the measurement of the best set ends.

    Returns:
        The same as the JSON of `tb-dlprof try`, without a patch.

    Raises:
        ValueError: there is no remedy of a name.
        Exception: whatever the step raises without a remedy.
    """
    names = list(classes()) if remedies is None else list(remedies)
    unknown = [name for name in names if name not in classes()]
    if unknown:
        raise ValueError(f"there is no remedy {unknown[0]!r}")
    optimizers = [] if optimizer is None else [optimizer]
    began, hooks = time.monotonic(), TrialHooks()
    state = TrainingState([model], optimizers)
    host = _Here(step, Switcher(lambda: [model], lambda: optimizers, hooks=hooks))
    search = Search(None, Bench(precision_percent, clock=time.monotonic), budget_s, _Silent(), time.monotonic)
    result = TrialResult(command=["try_step"])
    try:
        for _ in range(_WARMUP):
            step()
        search.start_here(host)
        facts = _facts()
        candidates, left_out = [], []
        for one in map(make, names):
            why = _NOT_HERE if not one.in_running_process else one.why_not(facts)
            if why is None:
                candidates.append(one)
            elif remedies is not None or one.in_running_process:
                left_out.append(TriedRemedy(remedy=one.name, title=one.title, not_tried=why, code=one.code()))
        result.best = search.run(candidates, {one.name: one.usual(facts) for one in candidates})
        result.rows = [*search.rows, *left_out]
        result.sets = [row for row in search.sets if row.gain_percent is not None]
    finally:
        host.switcher.off()
        hooks.undo()
        state.restore()
    result.best.by_hand = list(result.best.remedies)
    result.device = torch.cuda.get_device_name() if torch.cuda.is_initialized() else "CPU"
    result.baseline_ms, result.notes = search.baseline_step_ms, search.notes
    result.seconds = time.monotonic() - began
    return result


class _Here:
    """As a process of `tb-dlprof try`: the steps are those of this one, and run when they are asked for."""

    starts = 1
    alive = True

    def __init__(self, step: Callable[[], object], switcher: Switcher) -> None:
        self._step, self.switcher = step, switcher

    def run(self, steps: int, timeout_s: float, switched: Sequence[str] = ()) -> Block:
        return self._done(self.switcher.block(switched, steps))

    def check(self, switched: Sequence[str], seed: int, steps: int, timeout_s: float) -> Ready:
        return self._done(self.switcher.check(switched, seed, steps))

    def end(self) -> None:
        """The process of the caller does not end."""

    def _done(self, work: Generator[None, None, tuple[str, T]]) -> T:
        while True:
            try:
                next(work)
            except StopIteration as done:
                answer: T = done.value[1]
                return answer
            self._step()


class _Silent:
    """Prints nothing."""

    def started(self, budget_s: float, left_s: float) -> None: ...

    def phase(self, text: str) -> None: ...

    def progress(self, remedy: str, gain: Gain) -> None: ...

    def row(self, row: TriedRemedy) -> None: ...


def _facts() -> TrialFacts:
    is_gpu = torch.cuda.is_initialized()
    return TrialFacts(
        torch_version=tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2] if part.isdigit()),
        cuda=is_gpu,
        compute_capability=torch.cuda.get_device_capability() if is_gpu else None,
        cpu_count=torch.get_num_threads(),
    )
