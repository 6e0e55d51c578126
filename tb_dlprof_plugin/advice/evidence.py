"""Evidence rows: the ops and calls behind a number, with the user's function where Python stacks were recorded."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.finding import EvidenceRow
from tb_dlprof_plugin.frame import op_name
from tb_dlprof_plugin.measures.iterations import percent
from tb_dlprof_plugin.storage.model import Bools, Role

_ROWS = 5


def of_recorded_step(case: Case, time_ns: float) -> str:
    """ "12.04 of the 29.41 ms of a recorded step", for times of the CPU and gaps: the recorder makes both longer."""
    return f"{time_ns / 1e6:.2f} of the {case.recorded_step_ns / 1e6:.2f} ms of a recorded step"


def place_of(case: Case, calls: Bools) -> str:
    """Where in the user's files most of these calls come from, "train.py:12 step"; "" where that is not known."""
    found = case.profile.call_places
    places = found.place[calls[found.call]] if len(found) else found.place
    if not len(places):
        return ""
    names, counts = np.unique(places, return_counts=True)
    return case.profile.strings[int(names[np.argmax(counts)])]


def call_rows(case: Case, calls: Bools) -> list[EvidenceRow]:
    """The calls that took longest, by outermost op and place: time on the CPU per step, and the share of all."""
    profile, groups, strings = case.profile, case.frame.groups, case.profile.strings
    rows = np.flatnonzero(calls & case.frame.selected_calls(case.selection))
    place = np.zeros(len(profile.calls), dtype=np.int64)
    place[profile.call_places.call] = profile.call_places.place
    group = case.frame.call_group[rows]
    name = np.where(group >= 0, -1, profile.ops.name[profile.calls.op[rows]])
    keys, inverse = np.unique(np.stack((group, name, place[rows])), axis=1, return_inverse=True)
    inverse = inverse.reshape(-1)
    time = np.bincount(inverse, weights=profile.calls.duration_ns[rows], minlength=keys.shape[1])
    number = np.bincount(inverse, minlength=keys.shape[1])
    result = []
    for key in np.argsort(-time, kind="stable")[:_ROWS].tolist():
        of_group, of_name, of_place = keys[:, key].tolist()
        what = strings[of_name] if of_group < 0 else _group_name(case, of_group)
        result.append(
            EvidenceRow(
                label=f"{what}, {number[key] / case.selection.count:.3g} a step"
                + (f", in {strings[of_place]}" if of_place else ""),
                value_ns=int(time[key]) // case.selection.count,
                percent=percent(float(time[key]), float(time.sum())),
                page="ops" if of_group >= 0 else "launches",
                id=groups.ids[of_group] if of_group >= 0 else "",
            )
        )
    return result


def op_rows(case: Case, launches: Bools) -> list[EvidenceRow]:
    """The ops that launched most of the given GPU time, per step, with their share of it."""
    profile, groups = case.profile, case.frame.groups
    rows = launches & (case.frame.launch_group >= 0)
    time = np.bincount(case.frame.launch_group[rows], weights=profile.launches.duration_ns[rows], minlength=len(groups))
    whole = float(time.sum())
    result = []
    for group in np.argsort(-time, kind="stable")[:_ROWS].tolist():
        if time[group] <= 0:
            break
        place = place_of(case, _calls_of(case, rows & (case.frame.launch_group == group)))
        result.append(
            EvidenceRow(
                label=_group_name(case, group) + (f", in {place}" if place else ""),
                value_ns=int(time[group]) // case.selection.count,
                percent=percent(float(time[group]), whole),
                page="ops",
                id=groups.ids[group],
            )
        )
    return result


def _group_name(case: Case, group: int) -> str:
    groups, strings = case.frame.groups, case.profile.strings
    backward = " (bprop)" if groups.role[group] == Role.BACKWARD else ""
    return op_name(strings[groups.module[group]], strings[groups.op_type[group]]) + backward


def _calls_of(case: Case, launches: Bools) -> Bools:
    calls = np.zeros(len(case.profile.calls), dtype=np.bool_)
    calls[case.profile.launches.call[launches]] = True
    return calls
