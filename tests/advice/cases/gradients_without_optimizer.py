"""Cases of `gradients_without_optimizer`: gradients that no optimizer uses."""

from __future__ import annotations

from typing import Any

from advice.case import Case, between
from advice.recorded import recorded

_BLOCKS = [f"blocks.{number}" for number in range(8)]


def _perceptron(*modules: str, **facts: Any) -> Any:
    """A stem, eight blocks and a head, of which some modules have gradients that no optimizer uses."""
    if modules:
        facts |= {"unstepped_gradients": 4, "unstepped_gradient_bytes": 33_570_816}
        facts["unstepped_gradient_modules"] = list(modules)
    return recorded("memory_plan/recorded/perceptron/base", **facts)


CASES = (
    Case("not recorded", _perceptron(), "not_applicable", "was not recorded"),
    Case("none", _perceptron(unstepped_gradients=0), "silent", "Every gradient belongs"),
    Case("of the stem", _perceptron("stem"), "fired", "4 parameters of stem"),
    # The stem is trained and lies before it, so the gradient goes on to it; the block itself has a weight gradient.
    Case("of a late block", _perceptron("blocks.6"), "fired",
         saving_ns=(between(0, 1e8), between(0, 1e8), between(1, 1e8))),
    Case("of all but the head", _perceptron("stem", *_BLOCKS), "fired"),
)  # fmt: skip
