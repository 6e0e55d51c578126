"""Arranges runs that differ in one fact as lines: one line for each combination of their other facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from tb_dlprof_plugin.comparison.run_table import FACTS, Fact, NamedRun, fact_of
from tb_dlprof_plugin.metrics.run_figures import RunFigures
from tb_dlprof_plugin.model.natural_order import natural_order

_PREFERRED = ("batch_size", "workers", "gpus", "gpu", "model", "precision")


class SweepPoint(msgspec.Struct, frozen=True):
    """One run of a line: its position and the measured value."""

    x: Fact
    run: NamedRun
    value: float


class SweepLine(msgspec.Struct, frozen=True):
    """Runs with the same other facts, by rising ``x``; ``facts`` are those in which the lines differ."""

    facts: dict[str, Fact]
    points: list[SweepPoint]


class LeftOut(msgspec.Struct, frozen=True):
    """A run that is in no line, and why."""

    run: NamedRun
    why: str


class Sweep(msgspec.Struct, frozen=True):
    """``common`` are the facts that all lines share."""

    over: str
    lines: list[SweepLine]
    common: dict[str, Fact]
    left_out: list[LeftOut]


Measure = Callable[[RunFigures], float | None]


def sweep(runs: Sequence[NamedRun], over: str, measure: Measure, measure_name: str) -> Sweep:
    """Arrange the runs as lines over a fact of `FACTS`.

    A line needs two values of the fact. Of several runs at one point the newest counts. Models are often trained with a
    batch size of their own: over the model, the batch size does not separate lines, and a model at another batch size
    is another point.
    """
    left_out: list[LeftOut] = []
    lines: dict[tuple[Fact, ...], dict[Fact, NamedRun]] = {}
    others = _other_facts(over)
    for run in sorted(runs, key=lambda run: -run.figures.created_unix_ns):
        x = _position(run, over)
        if x is None:
            left_out.append(LeftOut(run, f"its {FACTS[over]} was not recorded"))
            continue
        points = lines.setdefault(_line_of(run, others), {})
        if x in points:
            left_out.append(LeftOut(run, f"{points[x].name} has the same facts and was recorded later"))
        else:
            points[x] = run
    made = []
    for key, points in lines.items():
        known = []
        for x, run in points.items():
            value = measure(run.figures)
            if value is None:
                left_out.append(LeftOut(run, f"its {measure_name} is unknown"))
            else:
                known.append(SweepPoint(x, run, value))
        if len({fact_of(point.run.figures.setup, over) for point in known}) >= 2:
            known.sort(key=lambda point: _order(point.x))
            made.append(SweepLine(dict(zip(others, key, strict=True)), known))
        else:
            left_out += [
                LeftOut(point.run, f"no other run differs from it in the {FACTS[over]} alone") for point in known
            ]
    common = (
        {fact: made[0].facts[fact] for fact in others if len({line.facts[fact] for line in made}) == 1} if made else {}
    )
    made = [SweepLine({f: v for f, v in line.facts.items() if f not in common}, line.points) for line in made]
    made.sort(key=lambda line: [_order(value) for value in line.facts.values()])
    left_out.sort(key=lambda left: _order(left.run.name))
    return Sweep(over, made, common, left_out)


def swept_facts(runs: Sequence[NamedRun]) -> list[str]:
    """The facts over which there is a line of at least two points, the most informative first."""
    ordered = [*_PREFERRED, *(fact for fact in FACTS if fact not in _PREFERRED)]
    return [fact for fact in ordered if _has_line(runs, fact)]


def in_order(values: Iterable[Fact]) -> list[Fact]:
    """Numbers by size, then texts in natural order, unknown last."""
    return sorted(values, key=_order)


def _has_line(runs: Sequence[NamedRun], over: str) -> bool:
    others = _other_facts(over)
    seen: dict[tuple[Fact, ...], Fact] = {}
    for run in runs:
        x = fact_of(run.figures.setup, over)
        if x is None:
            continue
        key = _line_of(run, others)
        if seen.setdefault(key, x) != x:
            return True
    return False


def _line_of(run: NamedRun, others: Sequence[str]) -> tuple[Fact, ...]:
    """The facts of a run's line."""
    return tuple(_line_fact(run, fact) for fact in others)


def _line_fact(run: NamedRun, fact: str) -> Fact:
    value = fact_of(run.figures.setup, fact)
    # A model without image tensors has no memory format: it goes with the default one.
    return False if value is None and fact == "channels_last" else value


def _other_facts(over: str) -> list[str]:
    return [fact for fact in FACTS if fact != over and not (over == "model" and fact == "batch_size")]


def _position(run: NamedRun, over: str) -> Fact:
    setup = run.figures.setup
    if over == "model" and setup.model is not None:
        # Two batch sizes of one model are two points; the label of the point names both.
        return (setup.model, setup.parameters, setup.batch_size)
    return fact_of(setup, over)


def _order(value: object) -> tuple[int, float, list[tuple[int, int | str]]]:
    """Numbers by size, then texts in natural order, unknown last."""
    if value is None:
        return (2, 0.0, [])
    if isinstance(value, int | float):
        return (0, float(value), [])
    text = " ".join(str(part) for part in value) if isinstance(value, tuple) else str(value)
    return (1, 0.0, natural_order(text))
