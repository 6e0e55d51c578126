"""The op sites of a run: each outermost op of an iteration, once for all iterations.

The third ``conv2d`` in ``layer1.0`` of the forward pass is one site, in whatever iteration. Sites are what is matched
with another run; times are summed over them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.amp_calls import cast_calls, compiled_calls, in_calls, scaler_calls
from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.model.grouping import first_rows, numbered
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.model.shapes import InputShapes, has_sizes
from tb_dlprof_plugin.profile_view import ProfileView, Selection


@dataclass(frozen=True, slots=True)
class Sites:
    """Columns have one row per site, in the order in which an iteration first comes to them.

    Attributes:
        of_call: per row of `Profile.calls` the site of the outermost op around it; -1 for none, and outside the
            selection.
        group: row in `ProfileView.groups`.
        node: name of the outermost call, as a string index: the autograd nodes of one op are different sites.
        dims: recorded input dims of the first call of the site that has any, () for none.
        gpu_ns: summed time of what it launched, casts and GradScaler's work left out.
        cast_ns: summed time of its casts.
        amp_only: whether it consists of casts or GradScaler's work only.
        compiled: whether it is code from torch.compile.
    """

    of_call: Ints
    group: Ints
    node: Ints
    dims: list[InputShapes]
    gpu_ns: Ints
    cast_ns: Ints
    amp_only: Bools
    compiled: Bools

    def __len__(self) -> int:
        return len(self.group)


@dataclass(frozen=True, slots=True)
class Run:
    """One run with the columns that matching needs; ``cast`` and ``scaler`` have one row per call."""

    view: ProfileView
    selection: Selection
    sites: Sites
    cast: Bools
    scaler: Bools

    @property
    def windows(self) -> tuple[Ints, Ints]:
        """Starts and stops of the selected iterations (ns)."""
        iterations = self.view.profile.iterations
        rows = slice(self.selection.first, self.selection.last + 1)
        return iterations.start_ns[rows], iterations.stop_ns[rows]

    @property
    def launch_site(self) -> Ints:
        """Per row of `Profile.launches` its site, -1 for none."""
        call = self.view.profile.launches.call
        if not len(self.sites.of_call):
            return np.full(len(call), -1, dtype=np.int64)
        return take_or(self.sites.of_call, call, -1)

    @property
    def launch_cast(self) -> Bools:
        """Per row of `Profile.launches` whether it is a cast."""
        return in_calls(self.cast, self.view.profile.launches.call)

    @property
    def launch_scaler(self) -> Bools:
        """Per row of `Profile.launches` whether it is GradScaler's work."""
        return in_calls(self.scaler, self.view.profile.launches.call)


def run_of(view: ProfileView, selection: Selection) -> Run:
    """The sites of the selected iterations."""
    cast, scaler, compiled = cast_calls(view), scaler_calls(view), compiled_calls(view)
    calls, ops = view.profile.calls, view.profile.ops
    tops = np.flatnonzero(ops.top[calls.op] & view.selected_calls(selection))
    group, node, iteration = view.call_group[tops], ops.name[calls.op[tops]], view.call_iteration[tops]
    nth = _running_number(iteration, group, node, calls.start_ns[tops])
    number = numbered(group, node, nth)
    first = first_rows(number)
    # A site's position is that in the first iteration that contains it.
    begins = calls.start_ns[tops[first]] - view.profile.iterations.host_start_ns[iteration[first]]
    order = np.argsort(begins, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    site = rank[number]
    first = first[order]

    of_top = np.full(len(calls), -1, dtype=np.int64)
    of_top[tops] = site
    around = view.call_top
    of_call = take_or(of_top, around, -1)
    launches = view.profile.launches
    launched = launches.call >= 0
    of_launch = np.where(launched, of_call[np.maximum(launches.call, 0)], -1) if len(calls) else launches.call
    is_cast, is_own = in_calls(cast, launches.call), in_calls(cast | scaler, launches.call)

    def of_site(rows: Bools) -> Ints:
        rows = rows & (of_launch >= 0)
        return sums(of_launch[rows], launches.duration_ns[rows], len(first))

    gpu_ns, cast_ns = of_site(~is_own), of_site(is_cast)
    scaling = np.zeros(len(first), dtype=np.bool_)
    scaling[site[scaler[tops]]] = True
    sites = Sites(
        of_call=of_call,
        group=group[first],
        node=node[first],
        dims=_dims(view, tops[first]),
        gpu_ns=gpu_ns,
        cast_ns=cast_ns,
        amp_only=scaling | ((cast_ns > 0) & (gpu_ns == 0)) | cast[tops[first]],
        compiled=compiled[tops[first]],
    )
    return Run(view, selection, sites, cast, scaler)


def _running_number(iteration: Ints, group: Ints, node: Ints, start_ns: Ints) -> Ints:
    """Per call how many of the same iteration, group and node began before it."""
    order = np.lexsort((start_ns, node, group, iteration))
    keys = np.stack((iteration, group, node))[:, order]
    new = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)) if len(order) else np.zeros(0, dtype=np.bool_)
    place = np.arange(len(order), dtype=np.int64)
    begin = np.maximum.accumulate(np.where(new, place, 0)) if len(order) else place
    result = np.empty(len(order), dtype=np.int64)
    result[order] = place - begin
    return result


def _dims(view: ProfileView, tops: Ints) -> list[InputShapes]:
    """Input dims of each call, or of the first call inside it that has any: autograd's own nodes record none."""
    profile = view.profile
    has = np.array([has_sizes(shapes) for shapes in profile.input_shapes], dtype=np.bool_)
    rows = np.flatnonzero(has[profile.ops.shapes][profile.calls.op])
    ends = view.call_end[tops]
    at = np.searchsorted(rows, tops)
    found = (
        np.where(at < len(rows), rows[np.minimum(at, max(0, len(rows) - 1))], -1)
        if len(rows)
        else np.full(len(tops), -1)
    )
    shapes = profile.ops.shapes[profile.calls.op[np.maximum(found, 0)]]
    inside = (found >= 0) & (found < ends)
    return [
        profile.input_shapes[row] if known else () for row, known in zip(shapes.tolist(), inside.tolist(), strict=True)
    ]
