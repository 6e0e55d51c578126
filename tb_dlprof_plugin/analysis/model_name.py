"""Finds the name of the model in the ranges of its modules, where the recording process did not say it."""

from __future__ import annotations

import re

import msgspec

from tb_dlprof_plugin.analysis.module_paths import hook_ranges
from tb_dlprof_plugin.model.grouping import distinct
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.names.ops import MODULE_PREFIX

_CLASS = re.compile(r"[A-Z][A-Za-z0-9_]+\Z")
"""Names of classes: most ranges by hand for steps and phases are none ("forward", "benchmark_loop")."""
_PHASE = re.compile(
    r"forward|backward|gradient|step|iter|train|eval|valid|test|epoch|batch|warm|benchmark|optim|loss|update|data|load|"
    r"inference|main|profile",
    re.IGNORECASE,
)
_INSTANCE = re.compile(r"(?:_\d+|\[\d+\])\Z")


def with_model_name(facts: RunFacts, timeline: Timeline) -> RunFacts:
    """The facts, with the class that is the outermost in the path of every module as the model.

    Paths of the hook begin below the model: they do not name it, and the hook knows it.
    """
    if facts.model is not None or timeline.format == "kineto":
        return facts
    strings = timeline.strings
    rows = hook_ranges(timeline)
    paths = [strings[name].removeprefix(MODULE_PREFIX) for name in distinct(timeline.host.name[rows]).tolist()]
    roots = {_outermost_class(path) for path in paths if "." in path or _outermost_class(path)}
    if len(roots) != 1 or not any("." in path for path in paths):
        return facts
    (root,) = roots
    return msgspec.structs.replace(facts, model=root) if root else facts


def _outermost_class(path: str) -> str:
    parts = (_INSTANCE.sub("", part) for part in path.split("."))
    return next((part for part in parts if _CLASS.match(part) and not _PHASE.match(part)), "")
