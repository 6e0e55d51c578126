"""Whether a training with a remedy still computes what it did, from its first steps.

The yardstick is the script's own noise: how far the same steps lie apart with another seed. A remedy that only rounds
otherwise stays closer to the baseline than that; a wrong learning rate shows in the parameters' updates and in the
hyperparameters before it shows in a loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tb_dlprof_plugin.model.trial_result import Verdict
from tb_dlprof_plugin.trial.protocol import Checks
from tb_dlprof_plugin.trial.statistics import student

SAME: Final = "same to the bit"
NOISE: Final = "within noise of the seed"
DIFFERS: Final = "differs"
BROKEN: Final = "broken"
_SERIES = ("loss", "gradient_norm", "update_norm")
_WORDS = {"loss": "loss", "gradient_norm": "gradient norm", "update_norm": "parameter update"}
_LEAST_SPREAD = 0.02
"""A relative difference that is within noise in any case: BF16 has a relative rounding error of 0.4 % per operation,
and gradients add up some of them."""
_FEW_SKIPPED = 4
"""A GradScaler may skip its first steps while it looks for a scale."""
_FACTOR = 2.0
"""How many times the spread of a seed, in the middle step, a difference may be."""
_CLEARLY = 3.0
"""How many times the allowed difference a variant has at least that differs from a script whose steps do not repeat."""
_SYSTEMATIC = 0.1
"""A relative difference in the same direction in all steps that is more than the rounding of a precision makes."""
_SYSTEMATIC_LEVEL = 0.001
_LEAST_PAIRS = 8
_OWN_STATE = "the unchanged script does not repeat its steps either, so that they cannot be compared"
_HARMFUL = 10.0
"""A loss that is so many times the largest of the baseline has left its range."""


@dataclass(frozen=True, slots=True)
class Sameness:
    """The verdict with the reason."""

    verdict: Verdict | None
    detail: str = ""


def compare(
    baseline: Checks,
    variant: Checks,
    seeds: Sequence[Checks],
    *,
    repeated: Checks | None = None,
    random: bool = False,
    training: str = "",
) -> Sameness:
    """The verdict on a variant.

    Args:
        baseline: the unchanged script.
        variant: with the remedy.
        seeds: the unchanged script with other seeds.
        repeated: the unchanged script again with the same seed: it may differ by a bit.
        random: the remedy draws random numbers in another order, so that its steps compare as those of another seed.
        training: what the remedy changes by its nature, such as the batch size; "" for none.
    """
    broken = _broken(baseline, variant)
    if broken:
        return Sameness(BROKEN, broken)
    if training:
        return Sameness(DIFFERS, training)
    changed = _hyperparameters(baseline, variant)
    if changed:
        return Sameness(DIFFERS, changed)
    skipped = sum(variant.skipped) - sum(baseline.skipped)
    if not any(_values(getattr(variant, name)) for name in _SERIES):
        return Sameness(None, "no loss and no gradient was seen")
    if all(_equal(getattr(baseline, name), getattr(variant, name)) for name in _SERIES):
        return Sameness(SAME)
    # While a loss scale is found, steps are left out, and all series lag.
    shifted = [_shifted(name, baseline, variant) for name in _SERIES] if skipped <= 0 else []
    found = [_difference(name, baseline, variant, seeds, repeated, random) for name in _SERIES]
    worst = max((one for one in found if one is not None), default=(0.0, ""))
    differs = next(filter(None, shifted), worst[1] if worst[0] > 1 else "")
    if differs and worst[0] <= _CLEARLY and repeated is not None and not _repeats(baseline, repeated):
        return Sameness(None, _OWN_STATE)
    if differs:
        return Sameness(DIFFERS, differs)
    again = repeated is not None and not all(
        _equal(getattr(baseline, name), getattr(repeated, name)) for name in _SERIES
    )
    detail = "so does the unchanged script, run again" if again else ""
    if skipped > 0:
        detail = f"{skipped} of {len(variant.skipped)} steps were skipped while the loss scale was found"
    return Sameness(NOISE, detail)


def _repeats(baseline: Checks, repeated: Checks) -> bool:
    """Whether the unchanged script computes about the same from the same state: one that keeps a state of its own,
    such as a world that it acts in, does not."""
    return all(
        _middle([value for _, value in _relative(getattr(baseline, name), getattr(repeated, name))]) <= _LEAST_SPREAD
        for name in _SERIES
    )


def _broken(baseline: Checks, variant: Checks) -> str:
    for name in _SERIES:
        before, after = getattr(baseline, name), getattr(variant, name)
        if name == "gradient_norm":
            # Of a skipped step: the gradients were infinite, which is what it is skipped for.
            after = [value for value, skip in zip(after, _padded(variant.skipped, len(after)), strict=True) if not skip]
        finite_before = all(math.isfinite(value) for value in _values(before))
        bad = next((i for i, value in enumerate(after) if value is not None and not math.isfinite(value)), None)
        if bad is not None and finite_before:
            return f"{_WORDS[name]} is not finite from step {bad} on"
    steps, skipped = len(variant.skipped), sum(variant.skipped)
    if skipped > max(_FEW_SKIPPED, sum(baseline.skipped) + _FEW_SKIPPED) and skipped > steps / 2:
        return f"{skipped} of {steps} steps were skipped: gradients overflow"
    losses = [abs(value) for value in _values(baseline.loss)]
    if losses:
        bound = _HARMFUL * max(max(losses), 1e-12)
        bad = next((i for i, value in enumerate(variant.loss) if value is not None and abs(value) > bound), None)
        if bad is not None:
            return f"the loss leaves its range at step {bad}: {variant.loss[bad]:.4g}, before at most {max(losses):.4g}"
    return ""


def _padded(skipped: Sequence[bool], count: int) -> list[bool]:
    return [*skipped, *([False] * count)][:count]


def _hyperparameters(baseline: Checks, variant: Checks) -> str:
    for step, (before, after) in enumerate(zip(baseline.hyperparameters, variant.hyperparameters, strict=False)):
        if not before or not after:
            continue  # A skipped step.
        for key, value in before.items():
            found = after.get(key)
            if found is not None and not math.isclose(found, value, rel_tol=1e-9):
                name = key.rpartition(".")[2] if not key.rpartition(".")[2].isdigit() else ".".join(key.split(".")[-2:])
                return f"{name} is {found:g} instead of {value:g} from step {step} on"
    return ""


def _difference(
    name: str,
    baseline: Checks,
    variant: Checks,
    seeds: Sequence[Checks],
    repeated: Checks | None,
    random: bool,
) -> tuple[float, str] | None:
    """How many times the allowed difference the variant has, with the words; None where it was not read."""
    before, after = getattr(baseline, name), getattr(variant, name)
    found = _relative(before, after)
    if not found:
        return None
    spread = _LEAST_SPREAD
    for other in seeds:
        spread = max(spread, _FACTOR * _middle([value for _, value in _relative(before, getattr(other, name))]))
    if repeated is not None:
        spread = max(spread, _FACTOR * _middle([value for _, value in _relative(before, getattr(repeated, name))]))
    if random:
        spread *= _FACTOR
    # The middle: a single step is as noisy as its batch.
    middle = _middle([value for _, value in found])
    times = middle / spread
    step = next((i for i, value in found if value > spread), found[0][0])
    return times, (
        f"{_WORDS[name]} differs by {100 * middle:.2g} % in the middle step, by {100 * spread:.2g} % at most with "
        f"another seed; from step {step} on"
    )


def _shifted(name: str, baseline: Checks, variant: Checks) -> str:
    """What is larger, or smaller, in all steps alike: it may be less than steps differ by among themselves, as with
    small batches. A t test of the logarithms of the ratios, step by step; "" where it finds nothing."""
    logs = [
        math.log(b / a)
        for a, b in zip(getattr(baseline, name), getattr(variant, name), strict=False)
        if a is not None and b is not None and math.isfinite(a) and math.isfinite(b) and a > 0 and b > 0
    ]
    count = len(logs)
    if count < _LEAST_PAIRS:
        return ""
    mean = math.fsum(logs) / count
    error = math.sqrt(math.fsum((one - mean) ** 2 for one in logs) / (count - 1) / count)
    if abs(mean) < math.log1p(_SYSTEMATIC) or abs(mean) <= student(1 - _SYSTEMATIC_LEVEL / 2, count - 1) * error:
        return ""
    return (
        f"{_WORDS[name]} is {100 * abs(math.expm1(mean)):.2g} % {'larger' if mean > 0 else 'smaller'} in the mean step"
    )


def _relative(before: Sequence[float | None], after: Sequence[float | None]) -> list[tuple[int, float]]:
    return [
        (i, abs(b - a) / max(abs(a), 1e-12))
        for i, (a, b) in enumerate(zip(before, after, strict=False))
        if a is not None and b is not None and math.isfinite(a) and math.isfinite(b)
    ]


def _values(series: Sequence[float | None]) -> list[float]:
    return [value for value in series if value is not None]


def _equal(a: Sequence[float | None], b: Sequence[float | None]) -> bool:
    """In the steps that both have: a slow process compares fewer."""
    return bool(a) == bool(b) and all(one == other for one, other in zip(a, b, strict=False))


def _middle(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0.0
