"""The score of a result as text."""

from __future__ import annotations

from .result import Result, Row
from .rule_sets import by_list
from .score import (
    VERDICTS,
    Score,
    on_tensor_cores,
    our_verdict,
    precision_answers,
    score,
    share,
)

NAME_WIDTH = 150


def report(title: str, result: Result, seen: frozenset[str]) -> int:
    """Print all figures; returns how many answers of the package's rules are wrong.

    ``seen`` are the kernel names of the results before: figures on the names that are new are printed, too.
    """
    machine = result.machine
    print(f"\n{title}: {machine.gpu}, torch {machine.torch}, cuDNN {machine.cudnn}, {machine.date}")
    launches = sum(row.launches for row in result.rows)
    names = {row.name for row in result.rows}
    print(f"{len(result.workloads)} workloads, {launches} launches, {len(names)} names, {len(result.rows)} contexts")
    if result.dropped:
        print(f"{len(result.dropped)} workloads did not launch the same kernels twice or were not counted")
    wrong = 0
    print(f"\n{'':34} kernels  found  missed  false  unknown   recall  precision")
    for name, verdict_of in VERDICTS.items():
        scores = score(result, verdict_of(result))
        _print_row(name, scores.total)
        if seen:
            _print_row(
                "  names not in the first recording",
                score(result, verdict_of(result), lambda r: r.name not in seen).total,
            )
    ours = score(result, our_verdict(result))
    wrong += ours.total.wrong
    print("\nby family (ours)")
    for family, one in sorted(ours.by_family.items()):
        _print_row(f"  {family}", one)
    right, unknown, false = precision_answers(result)
    wrong += len(false)
    print(f"\nprecision of kernels on Tensor Cores: {right} right, {unknown} unknown, {len(false)} wrong")
    for answer, row in false:
        print(f"  {answer}: {_describe(row)}")
    print("\nwrong or unknown kernels (ours)")
    for outcome, row in ours.rows:
        print(f"  {outcome}: {_describe(row)}")
    _print_models(result)
    return wrong


def _print_row(name: str, one: Score) -> None:
    print(
        f"{name:34} {one.kernels:7} {one.found:6} {one.missed:7} {one.false:6}"
        f" {one.unknown:4} ({one.unknown_share:.1%}) {one.recall:7.1%} {one.precision:9.1%}"
    )


def _print_models(result: Result) -> None:
    print("\nkernel time on Tensor Cores, percent of a step's     counters    ours    list")
    for step in sorted(result.steps, key=lambda step: result.workloads[step.workload].name):
        workload = result.workloads[step.workload]
        shares = [share(result, step, verdict) for verdict in (on_tensor_cores, our_verdict(result), by_list)]
        print(f"  {workload.model:38} {workload.precision:10} " + " ".join(f"{value:7.2f}" for value in shares))


def _describe(row: Row) -> str:
    return f"[{row.op}] {row.input_types[:60]} {row.name[:NAME_WIDTH]}"
