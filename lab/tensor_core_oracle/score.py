"""A result in, figures out: how often each set of rules agrees with the counters, by family, and on whole models.

A kernel is a name together with what the hardware said: a name that runs on Tensor Cores in one context and not in
another (a Triton template) counts as two. It is wrong where one of its contexts is answered wrongly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from .result import Result, Row, Step
from .rule_sets import by_list, ours

Verdict = Callable[[Row], bool | None]


@dataclass
class Score:
    """Numbers of distinct kernels; ``open_yes`` and ``open_no`` got no answer and do, or do not, use Tensor Cores."""

    found: int = 0
    missed: int = 0
    false: int = 0
    right_no: int = 0
    open_yes: int = 0
    open_no: int = 0

    @property
    def kernels(self) -> int:
        return self.found + self.missed + self.false + self.right_no + self.unknown

    @property
    def unknown(self) -> int:
        return self.open_yes + self.open_no

    @property
    def wrong(self) -> int:
        return self.missed + self.false

    @property
    def recall(self) -> float:
        """Of the kernels on Tensor Cores, the share found; one without an answer is not found."""
        return self.found / max(self.found + self.missed + self.open_yes, 1)

    @property
    def precision(self) -> float:
        """Of the kernels said to run on Tensor Cores, the share that does."""
        return self.found / max(self.found + self.false, 1)

    @property
    def unknown_share(self) -> float:
        return self.unknown / max(self.kernels, 1)


@dataclass
class Scores:
    """``rows`` are those answered wrongly or not at all."""

    total: Score = field(default_factory=Score)
    by_family: dict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    rows: list[tuple[str, Row]] = field(default_factory=list)


def on_tensor_cores(row: Row) -> bool:
    """What the hardware says: matrix instructions were executed."""
    return row.with_matrix_work > 0


def score(result: Result, verdict: Verdict, among: Callable[[Row], bool] = lambda row: True) -> Scores:
    """Hold a set of rules to the counters, over the rows that ``among`` picks."""
    kernels: dict[tuple[str, bool], list[Row]] = defaultdict(list)
    for row in result.rows:
        if among(row):
            kernels[row.name, on_tensor_cores(row)].append(row)
    scores = Scores()
    for (_, truth), rows in kernels.items():
        family = ours(rows[0], result.machine.compute_capability).kind
        answers = {verdict(row) for row in rows}
        outcome = _outcome(truth, answers)
        for one in (scores.total, scores.by_family[family]):
            setattr(one, outcome, getattr(one, outcome) + 1)
        if outcome not in ("found", "right_no"):
            said = "unknown" if outcome.startswith("open") else outcome
            scores.rows.append((said, next(row for row in rows if verdict(row) is not truth)))
    return scores


def _outcome(truth: bool, answers: set[bool | None]) -> str:
    if (not truth) in answers:
        return "missed" if truth else "false"
    if None in answers:
        return "open_yes" if truth else "open_no"
    return "found" if truth else "right_no"


def our_verdict(result: Result) -> Verdict:
    """The package's rules on the recording's GPU."""
    return lambda row: ours(row, result.machine.compute_capability).tensor_core


VERDICTS: dict[str, Callable[[Result], Verdict]] = {
    "tb_dlprof_plugin": our_verdict,
    "PyProf, torch-tb-profiler, xprof": lambda result: by_list,
}


def true_precisions(row: Row) -> frozenset[str]:
    """What the kernel can have computed in, by its op's first input and the TF32 switch; empty if unknown.

    An FP32 product on Tensor Cores without TF32 being allowed can only be one of three TF32 products, which PyTorch's
    memory-efficient attention uses whatever the switch says. A 16 bit number is exact in TF32: cuDNN runs some
    convolutions of 16 bit tensors in it, and says so in the kernel's name.
    """
    types = msgspec.json.decode(row.input_types or "[]", type=list[str])
    first = next((name for name in types if name), "")
    if first in ("float", "c10::complex<float>"):
        if "efficient_attention" in row.op or not row.tf32:
            return frozenset({"3xtf32"})
        return frozenset({"tf32"})
    known = {
        "c10::Half": "fp16", "c10::BFloat16": "bf16", "signed char": "int8", "double": "fp64",
        "c10::complex<double>": "fp64", "c10::Float8_e4m3fn": "fp8", "c10::Float8_e5m2": "fp8",
    }  # fmt: skip
    if first in ("c10::Half", "c10::BFloat16") and "conv" in row.op:
        return frozenset({known[first], "tf32"})
    return frozenset({known[first]}) if first in known else frozenset()


def precision_answers(result: Result) -> tuple[int, int, list[tuple[str | None, Row]]]:
    """Rows on Tensor Cores whose precision the workload settles: named rightly, left open, and the wrong ones."""
    right = unknown = 0
    wrong: list[tuple[str | None, Row]] = []
    for row in result.rows:
        expected = true_precisions(row)
        if not on_tensor_cores(row) or not expected:
            continue
        answer = ours(row, result.machine.compute_capability)
        if answer.tensor_core is None or answer.precision is None:
            unknown += 1
        elif answer.precision in expected:
            right += 1
        else:
            wrong.append((answer.precision, row))
    return right, unknown, wrong


def share(result: Result, step: Step, verdict: Verdict) -> float:
    """Percent of a step's kernel time that a set of rules puts on Tensor Cores."""
    total = sum(duration for _, _, duration in step.kernels)
    matrix = sum(duration for row, _, duration in step.kernels if verdict(result.rows[row]))
    return 100.0 * matrix / max(total, 1)
