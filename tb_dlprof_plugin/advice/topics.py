"""The rules by subject, in the order in which pages and docs list them."""

from __future__ import annotations

OTHER = "Other"
"""Of a rule that no topic names."""

TOPICS: dict[str, tuple[str, ...]] = {
    "Precision and Tensor Cores": ("amp_not_used", "tf32_off"),
    "Data loading": ("dataloader_bound",),
    "CPU and launches": ("gpu_underutilized",),
    "Kernels and layers": ("cudnn_benchmark_off",),
}
"""The ids of the rules of each topic."""

_TOPIC_OF = {rule: topic for topic, rules in TOPICS.items() for rule in rules}
_PLACES = {rule: place for place, rule in enumerate(_TOPIC_OF)}


def topic_of(rule: str) -> str:
    """The topic of a rule."""
    return _TOPIC_OF.get(rule, OTHER)


def place_of(rule: str) -> tuple[int, str]:
    """What sorts rules by topic, those that no topic names last."""
    return _PLACES.get(rule, len(_PLACES)), rule
