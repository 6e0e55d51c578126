"""What a step of an optimizer does: values that it reads and writes, kernels and calls, from `torch/optim`.

Per element of a parameter, in values of its type. `foreach` Adam: `_foreach_lerp_` 3, `mul_` 2, `addcmul_` 3, `sqrt` 2,
`div_` 2, `add_` 2, `addcdiv_` 4; AdamW's decay 2 more; the loop the same, tensor by tensor. `fused` reads four and
writes three. SGD with momentum: `mul_` 2, `add_` 3, `add_` 3; without it the last alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tb_dlprof_plugin.model.run_facts import RunFacts

_TENSORS_PER_KERNEL = 40
"""Of the kernels of `foreach` and `fused`: their arguments hold 30 to 110 tensors, by how many lists they take."""


@dataclass(frozen=True, slots=True)
class OptimizerWork:
    """A step.

    Attributes:
        words: values read and written per element.
        kernels: passes over the parameters.
        calls: ops of the CPU, those within others counted.
        calls_by_parameter: more of these for each parameter tensor, such as its counter of steps.
        by_parameter: whether each parameter has kernels of its own.
    """

    words: float
    kernels: int
    calls: int
    calls_by_parameter: float = 0.0
    by_parameter: bool = False

    def kernels_for(self, parameters: int) -> int:
        """Kernels of a step over so many parameter tensors."""
        tensors = parameters if self.by_parameter else math.ceil(parameters / _TENSORS_PER_KERNEL)
        return max(1, self.kernels * max(1, tensors))


OPTIMIZER_WORK: dict[str, OptimizerWork] = {
    "sgd": OptimizerWork(3, 1, 4),
    "momentum": OptimizerWork(8, 3, 6),
    "adam": OptimizerWork(18, 7, 10, 5),
    "adamw": OptimizerWork(20, 8, 11, 5),
    "adam_fused": OptimizerWork(7, 1, 6),
    "adamw_fused": OptimizerWork(7, 1, 6),
    "adam_loop": OptimizerWork(18, 7, 4, 13, by_parameter=True),
    "adamw_loop": OptimizerWork(20, 8, 4, 14, by_parameter=True),
    # One kernel for each parameter, which reads values and gradients and both states of a byte.
    "adamw_8bit": OptimizerWork(4, 1, 4, 6, by_parameter=True),
}
"""By the names of `OptimizerName`. Calls per parameter of Adam, as recordings have them: `add_` and what
it makes, and two times `item` and what it calls."""


def recorded_optimizer(facts: RunFacts, ops: Iterable[str]) -> OptimizerWork | None:
    """The optimizer of a run by its class and the ops that launched its kernels; None for one that is not known."""
    kind = (facts.optimizer or "").lower()
    if kind == "sgd":
        return OPTIMIZER_WORK["momentum" if facts.optimizer_state_bytes else "sgd"]
    if kind not in ("adam", "adamw"):
        return None
    names = list(ops)
    if any("_fused_adam" in name for name in names):
        return OPTIMIZER_WORK[f"{kind}_fused"]
    if any("_foreach_" in name for name in names):
        return OPTIMIZER_WORK[kind]
    return OPTIMIZER_WORK[f"{kind}_loop"]
