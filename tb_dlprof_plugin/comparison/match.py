"""The sites of two runs of the same model, matched one to one.

In turn, and always within a part of the step (forward, backward, optimizer ...): by module path, op type, autograd node
and running number, with the input dims as the check; then without the node, whose name may change with the precision
(``CudnnBatchNormBackward0`` and ``NativeBatchNormBackward0``); then by aligning what is left as sequences of op type
and input dims, for renamed modules and runs without module paths; then by module path and op type whatever the dims,
for layers whose width changed. Where the batch sizes differ, dims are compared in multiples of the batch. Runs of two
frameworks name their ops differently: sequences are not aligned there, and modules have the names of both runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tb_dlprof_plugin.comparison.align import align
from tb_dlprof_plugin.comparison.module_names import shared_modules
from tb_dlprof_plugin.metrics.op_sites import Run
from tb_dlprof_plugin.model.profile import CallKind, Ints
from tb_dlprof_plugin.model.shapes import InputShapes, every_tensor
from tb_dlprof_plugin.profile_view import ProfileView

How = Literal["module", "sequence", "resized"]
"""How a pair was found: by module path and dims, by aligned sequence, by module path with other dims."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Batch sizes of both runs; where only their ratio is known, its numerator and denominator."""

    a: int
    b: int
    recorded: bool

    @property
    def differ(self) -> bool:
        """Whether the runs' batches have different sizes."""
        return self.a != self.b


@dataclass(frozen=True, slots=True)
class Matching:
    """``of_a`` has the site of run b for each site of run a, ``of_b`` the other way, -1 for none.

    ``how`` has a value for each pair, by the site of run a. ``batches`` is None where neither recording tells.
    ``names`` has for each run the names under which its modules are compared, by their paths.
    """

    of_a: Ints
    of_b: Ints
    how: dict[int, How]
    batches: Batches | None
    names: tuple[Mapping[str, str], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class _Label:
    """Identity of a site that holds in any run."""

    role: int
    module: str
    op_type: str
    node: str
    dims: InputShapes
    amp_only: bool


def match_sites(a: Run, b: Run) -> Matching:
    """The sites of run a with those of run b."""
    across = a.view.profile.source.framework != b.view.profile.source.framework
    paths = (modules_of(a.view), modules_of(b.view))
    names = shared_modules(*paths) if across else ({path: path for path in paths[0]}, {path: path for path in paths[1]})
    labels = (_labels(a, names[0]), _labels(b, names[1]))
    batches = _batches(a, b, labels)
    matcher = _Matcher(labels, batches)
    # Casts and GradScaler's work exist in one precision only: they match their own kind or nothing.
    matcher.by_key(lambda label: (label.role, label.module, label.op_type, label.node, label.amp_only), "module")
    matcher.exclude_amp_ops()
    matcher.by_key(lambda label: (label.role, label.module, label.op_type), "module")
    if not across:
        matcher.by_sequence()
    matcher.by_key(lambda label: (label.role, label.module, label.op_type), "resized", dims_matter=False)
    of_a, of_b, how = matcher.result()
    return Matching(of_a, of_b, how, batches, names)


def modules_of(view: ProfileView) -> set[str]:
    """All module paths in which anything was called."""
    ops, strings = view.profile.ops, view.profile.strings
    known = (ops.kind == CallKind.OP) | (ops.kind == CallKind.MODULE)
    return {strings[index] for index in np.unique(ops.module[known]).tolist()} - {""}


class _Matcher:
    """The sites that are not matched yet."""

    def __init__(self, labels: tuple[list[_Label], list[_Label]], batches: Batches | None) -> None:
        self._labels = labels
        self._left = tuple(list(range(len(side))) for side in labels)
        self._pairs: dict[int, tuple[int, How]] = {}
        scale = (batches.a, batches.b) if batches and batches.differ else (0, 0)
        self._dims = tuple(
            [_scaled(label.dims, size) for label in side] for side, size in zip(labels, scale, strict=True)
        )

    def by_key(self, key: Callable[[_Label], Hashable], how: How, dims_matter: bool = True) -> None:
        """Pairs sites of the same key in their order, with equal dims where these matter and were recorded."""
        groups: tuple[dict[Hashable, list[int]], ...] = (defaultdict(list), defaultdict(list))
        for side in (0, 1):
            for site in self._left[side]:
                groups[side][key(self._labels[side][site])].append(site)
        for name, of_a in groups[0].items():
            of_b = groups[1].get(name)
            if of_b is None:
                continue
            if not dims_matter:
                self._take(zip(of_a, of_b, strict=False), how)
                continue
            dims_a, dims_b = [self._dims[0][site] for site in of_a], [self._dims[1][site] for site in of_b]
            if not any(dims_a) or not any(dims_b):
                self._take(zip(of_a, of_b, strict=False), how)
            else:
                self._take(((of_a[i], of_b[j]) for i, j in align(dims_a, dims_b)), how)
        self._forget_taken()

    def by_sequence(self) -> None:
        """Aligns what is left of each part of the step in the order of time, with the dims if both have any."""
        checked = all(any(self._dims[side][site] for site in self._left[side]) for side in (0, 1))
        for role in sorted({self._labels[0][site].role for site in self._left[0]}):
            of = [[site for site in self._left[side] if self._labels[side][site].role == role] for side in (0, 1)]
            tokens = [
                [(self._labels[side][site].op_type, self._dims[side][site] if checked else ()) for site in of[side]]
                for side in (0, 1)
            ]
            self._take(((of[0][i], of[1][j]) for i, j in align(*tokens)), "sequence")
        self._forget_taken()

    def exclude_amp_ops(self) -> None:
        """From here on casts and GradScaler's work are not matched."""
        self._left = tuple(
            [site for site in left if not labels[site].amp_only]
            for left, labels in zip(self._left, self._labels, strict=True)
        )

    def result(self) -> tuple[Ints, Ints, dict[int, How]]:
        """The partners of each run's sites, and how each pair was found."""
        of_a, of_b = (np.full(len(side), -1, dtype=np.int64) for side in self._labels)
        for site, (partner, _) in self._pairs.items():
            of_a[site], of_b[partner] = partner, site
        return of_a, of_b, {site: how for site, (_, how) in self._pairs.items()}

    def _take(self, pairs: Iterable[tuple[int, int]], how: How) -> None:
        for site, partner in pairs:
            self._pairs[site] = (partner, how)

    def _forget_taken(self) -> None:
        taken = (set(self._pairs), {partner for partner, _ in self._pairs.values()})
        self._left = tuple(
            [site for site in left if site not in done] for left, done in zip(self._left, taken, strict=True)
        )


def _labels(run: Run, names: Mapping[str, str]) -> list[_Label]:
    groups, strings, sites = run.view.groups, run.view.profile.strings, run.sites
    of_group = [
        (role, names.get(strings[module], strings[module]), strings[op_type])
        for role, module, op_type in zip(
            groups.role.tolist(), groups.module.tolist(), groups.op_type.tolist(), strict=True
        )
    ]
    rows = zip(sites.group.tolist(), sites.node.tolist(), sites.dims, sites.amp_only.tolist(), strict=True)
    result = []
    for group, node, dims, amp_only in rows:
        role, module, op_type = of_group[group]
        result.append(_Label(role, module, op_type, strings[node], dims, amp_only))
    return result


def _batches(a: Run, b: Run, labels: tuple[list[_Label], list[_Label]]) -> Batches | None:
    """As the hook read them, else the ratio in which most first dims of the same ops stand."""
    sizes = (a.view.profile.facts.batch_size, b.view.profile.facts.batch_size)
    if sizes[0] and sizes[1]:
        return Batches(sizes[0], sizes[1], recorded=True)
    seen: tuple[dict[Hashable, list[int]], ...] = ({}, {})
    for side in (0, 1):
        for label in labels[side]:
            if leading := _leading(label.dims):
                seen[side].setdefault((label.role, label.module, label.op_type, label.node), []).append(leading)
    ratios: Counter[tuple[int, int]] = Counter()
    for key, first in seen[0].items():
        second = seen[1].get(key, [])
        if len(first) == len(second):
            ratios.update(_reduced(x, y) for x, y in zip(first, second, strict=True))
    if not ratios:
        return None
    (size_a, size_b), count = ratios.most_common(1)[0]
    return Batches(size_a, size_b, recorded=False) if 2 * count > ratios.total() else None


def _reduced(a: int, b: int) -> tuple[int, int]:
    divisor = int(np.gcd(a, b))
    return a // divisor, b // divisor


def _leading(dims: InputShapes) -> int:
    """The first dim of the first tensor that has two or more, 0 for none."""
    return next((shape[0] for shape in every_tensor(dims) if len(shape) > 1 and shape[0] > 0), 0)


def _scaled(dims: InputShapes, batch: int) -> Hashable:
    """Dims as they are for a batch of 0. Else the first tensor's first one in multiples of the batch, and none of the
    other tensors': those of weights are no batches, and might be multiples of one all the same."""
    shapes = tuple(every_tensor(dims))
    if not batch or not shapes:
        return shapes
    first = shapes[0]
    leading = ("batch", first[0] // batch) if first[0] and first[0] % batch == 0 else first[0]
    return ((leading, *first[1:]), *(shape[1:] for shape in shapes[1:]))
