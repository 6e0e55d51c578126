"""Searches ops, kernels, modules, advice rules and reports of one run by words in their names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
import numpy as np

from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.advice.topics import topic_of
from tb_dlprof_plugin.metrics.kernels import kernel_totals
from tb_dlprof_plugin.metrics.module_tree import module_tree
from tb_dlprof_plugin.metrics.modules import module_totals
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.model.direction import direction_words
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.pages.common import ROLES, KernelText
from tb_dlprof_plugin.pages.report_titles import TITLES
from tb_dlprof_plugin.profile_view import ProfileView, Selection, group_name, per_selection
from tb_dlprof_plugin.store.run_ref import RunRef

HitKind = Literal["op", "module", "kernel", "rule", "report"]

HITS_PER_KIND = 12
_PARTS = re.compile(r"[^./:_<>\s]+")
_WHOLE_PARTS = re.compile(r"[^./:\s]+")
"""Separators of the parts of a name: "layer1.0.conv2/max_pool2d" of layer1, 0, conv2, max_pool2d, and of max and
pool2d."""


class SearchHit(msgspec.Struct, frozen=True):
    """Something with the words in its name. ``id`` is the id in the page's URL: an op's id, a module's path.

    ``fit`` rates the match: for each word 0 where a part of the name is that word, 1 where one begins with it, 2 for
    the rest. ``value_ns`` is its time in the selected iterations, on the GPU or, without one, on the CPU; None where it
    has none.
    """

    kind: HitKind
    id: str
    label: str
    detail: str
    value_ns: int | None
    fit: int


class SearchPage(msgspec.Struct, frozen=True):
    """``hits`` of each kind by fit, then by falling time, at most `HITS_PER_KIND`; ``found`` counts all.

    ``iterations`` divides the hits' times into times per step; 1 where no step was found.
    """

    ref: RunRef
    text: str
    iterations: int
    hits: list[SearchHit]
    found: dict[str, int]


class _Name(msgspec.Struct, frozen=True, gc=False):
    """The searched texts, in lower case; the first line of ``text`` is the name itself."""

    text: str
    weight: int
    index: int


def search_page(
    view: ProfileView, ref: RunRef, selection: Selection, text: Annotated[str, Option("Words in names.")] = ""
) -> SearchPage:
    """Items with every word of ``text`` in their name, type or direction; none without words."""
    words = text.lower().split()
    hits: list[SearchHit] = []
    found: dict[str, int] = {}
    sources = (
        ("op", _op_names, _op_hit),
        ("module", _module_names, _module_hit),
        ("kernel", _kernel_names, _kernel_hit),
    )
    for kind, names, hit in sources:
        # Also without words: the page sends such a request when its search box opens, to fill the cache.
        searched = names(view, selection)
        if words:
            best = _matching(searched, words)
            found[kind] = len(best)
            hits += [hit(view, selection, index, fit) for fit, _, index in best[:HITS_PER_KIND]]
    if words:
        for kind, fixed in (("rule", _rule_hits(words)), ("report", _report_hits(words))):
            found[kind] = len(fixed)
            hits += fixed[:HITS_PER_KIND]
    return SearchPage(ref, text, selection.count, hits, found)


def _matching(names: list[_Name], words: list[str]) -> list[tuple[int, int, int]]:
    """(fit, minus weight, index) of the names that hold all words, the best first."""
    first, *others = words
    held = [name for name in names if first in name.text and all(word in name.text for word in others)]
    return sorted((_fit(name.text, words), -name.weight, name.index) for name in held)


def _fit(text: str, words: list[str]) -> int:
    name = text.partition("\n")[0]
    parts = {*_PARTS.findall(name), *_WHOLE_PARTS.findall(name)}
    return sum(
        0 if word in parts else 1 if name.startswith(word) or any(part.startswith(word) for part in parts) else 2
        for word in words
    )


@per_selection
def _op_names(view: ProfileView, selection: Selection) -> list[_Name]:
    groups = view.groups
    totals = op_totals(view, selection)
    weight = totals.gpu_ns if view.profile.has_gpu else totals.cpu_total_ns
    called = np.flatnonzero((totals.calls > 0) | (totals.cpu_total_ns > 0) | (totals.kernel_calls > 0))
    return [
        _Name(
            f"{group_name(view, g)}\n"
            f"{direction_words(int(groups.role[g]))} {ROLES[int(groups.role[g])]} {groups.ids[g]}".lower(),
            int(weight[g]),
            g,
        )
        for g in called.tolist()
    ]


def _op_hit(view: ProfileView, selection: Selection, group: int, fit: int) -> SearchHit:
    groups = view.groups
    totals, role = op_totals(view, selection), int(groups.role[group])
    weight = totals.gpu_ns if view.profile.has_gpu else totals.cpu_total_ns
    return SearchHit("op", groups.ids[group], group_name(view, group), ROLES[role], int(weight[group]), fit)


@per_selection
def _module_names(view: ProfileView, selection: Selection) -> list[_Name]:
    tree, totals = module_tree(view), module_totals(view, selection)
    if tree is None or totals is None:
        return []
    weight = totals.inside.gpu.total if view.profile.has_gpu else totals.inside.cpu.total
    ran = (totals.inside.op_calls > 0) | (totals.calls > 0)
    return [_Name(path.lower(), int(weight[i]), i) for i, path in enumerate(tree.path) if path and ran[i]]


def _module_hit(view: ProfileView, selection: Selection, node: int, fit: int) -> SearchHit:
    tree, totals = module_tree(view), module_totals(view, selection)
    assert tree is not None
    assert totals is not None
    weight = totals.inside.gpu.total if view.profile.has_gpu else totals.inside.cpu.total
    ops = int(totals.inside.ops[node])
    path = tree.path[node]
    return SearchHit("module", path, path, f"{ops} op{'' if ops == 1 else 's'}", int(weight[node]), fit)


@per_selection
def _kernel_names(view: ProfileView, selection: Selection) -> list[_Name]:
    totals = kernel_totals(view, selection)
    texts = (KernelText(view, kernel) for kernel in np.flatnonzero(totals.calls > 0).tolist())
    return [
        _Name(f"{text.short_name}\n{text.name} {text.family}".lower(), int(totals.total_ns[text.kernel]), text.kernel)
        for text in texts
    ]


def _kernel_hit(view: ProfileView, selection: Selection, kernel: int, fit: int) -> SearchHit:
    text, total = KernelText(view, kernel), int(kernel_totals(view, selection).total_ns[kernel])
    return SearchHit("kernel", text.id, text.short_name, text.family or text.kind, total, fit)


def _rule_hits(words: list[str]) -> list[SearchHit]:
    texts = ((one.rule, f"{one.rule.title}\n{one.rule.id} {topic_of(one.rule.id)}".lower()) for one in all_rules())
    return _by_fit(
        SearchHit("rule", rule.id, rule.title, topic_of(rule.id), None, _fit(text, words))
        for rule, text in texts
        if all(word in text for word in words)
    )


def _report_hits(words: list[str]) -> list[SearchHit]:
    texts = (
        (name, title, question, f"{title}\n{question} {name}".lower()) for name, (title, question) in TITLES.items()
    )
    return _by_fit(
        SearchHit("report", name, title, question, None, _fit(text, words))
        for name, title, question, text in texts
        if all(word in text for word in words)
    )


def _by_fit(hits: Iterator[SearchHit]) -> list[SearchHit]:
    return sorted(hits, key=lambda hit: (hit.fit, hit.label))
