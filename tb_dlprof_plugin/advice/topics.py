"""The rules by subject: a folder of `advice.rules` is a topic, and a file in it is a rule or a helper of rules."""

from __future__ import annotations

import pkgutil
from functools import cache

from tb_dlprof_plugin.advice import rules

TOPICS: dict[str, str] = {
    "precision": "Precision and Tensor Cores",
    "data_loading": "Data loading",
    "idle_gpu": "CPU, launches and idle GPU",
    "copies": "Copies and waits",
    "layers": "Layers",
    "optimizer": "Optimizer and gradients",
    "memory": "Memory",
    "multi_gpu": "Several GPUs",
    "hardware": "Power and size of the GPU",
    "recording": "The recording",
}
"""Title of each folder, in the order of pages and docs."""
OTHER = "Other"
"""Topic of a rule that is in none of the folders."""


@cache
def modules_by_topic() -> dict[str, tuple[str, ...]]:
    """The modules in the folder of each topic, by full name, sorted; nothing is imported."""
    return {
        folder: tuple(
            sorted(
                f"{rules.__name__}.{folder}.{found.name}"
                for path in rules.__path__
                for found in pkgutil.iter_modules([f"{path}/{folder}"])
            )
        )
        for folder in TOPICS
    }


@cache
def _topic_positions() -> dict[str, tuple[int, str]]:
    return {
        module.rpartition(".")[2]: (position, title)
        for position, (folder, title) in enumerate(TOPICS.items())
        for module in modules_by_topic()[folder]
    }


def topic_of(rule: str) -> str:
    """The title of a rule's topic."""
    return _topic_positions().get(rule, (0, OTHER))[1]


def sort_key(rule: str) -> tuple[int, str]:
    """Sort key of a rule: topic, then id; rules without a topic come last."""
    return _topic_positions().get(rule, (len(TOPICS), OTHER))[0], rule
