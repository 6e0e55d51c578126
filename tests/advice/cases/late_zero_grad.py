"""Cases of `late_zero_grad`: gradients that live through the forward pass."""

from __future__ import annotations

from advice.case import Case
from advice.recorded import recorded

CASES = (
    Case("freed after the forward pass", recorded("planted/late_zero_grad/fault"), "fired"),
    Case("freed before it", recorded("planted/late_zero_grad/fixed"), "silent"),
    Case("a perceptron", recorded("memory_plan/recorded/perceptron/base"), "silent"),
)
