"""Reports from Python: profiles read from event files, each with its reports as tables.

(run,) = tb_dlprof_plugin.read_profiles("runs/fp32")
run.report("kernel", iter_start=5).to_pandas()
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_dlprof_plugin.analysis import renew
from tb_dlprof_plugin.storage.eventfile import StoredProfile
from tb_dlprof_plugin.storage.model import Profile

if TYPE_CHECKING:
    from tb_dlprof_plugin.views.reports.table import Report


def report(
    profile: Profile,
    name: str,
    *,
    key_node: str | None = None,
    iter_start: int | None = None,
    iter_stop: int | None = None,
    run: str = "",
) -> Report:
    """One of DLProf's reports, or of ours, of a profile (docs/reports.md lists them and their columns).

    Args:
        profile: of `read_profiles` or `analyze`.
        name: "summary", "detail", "iteration", "kernel", "tensor", "op_type", "group_node", "expert_systems",
            "averages", "api", "copies" or "kernel_groups".
        key_node: cut the recording into iterations where this op stops: its Op ID or Op Name in the Detailed Report.
        iter_start: number of the first iteration to aggregate, as the training counts them; the first by default.
        iter_stop: number of the last one, inclusive; the last by default.
        run: a name for the recording.

    Raises:
        ValueError: there is no such report, iteration or key node; one sentence that says what there is.
    """
    # Reading profiles is not to wait for what their reports import.
    from tb_dlprof_plugin.measures import Frame
    from tb_dlprof_plugin.measures.iteration_range import by_number
    from tb_dlprof_plugin.measures.key_node import with_key_node
    from tb_dlprof_plugin.views.common import RunRef
    from tb_dlprof_plugin.views.reports.registry import ALIASES, REPORTS, make_report

    if name not in REPORTS and name not in ALIASES:
        raise ValueError(f"there is no report {name!r}; there are {', '.join(REPORTS)}")
    frame = Frame(profile if key_node is None else with_key_node(profile, key_node))
    source = profile.source
    ref = RunRef(run, source.session, source.rank, source.cycle)
    return make_report(name, frame, ref, by_number(frame, iter_start, iter_stop))


@dataclass(frozen=True, slots=True)
class ReadProfile(StoredProfile):
    """A profile, the event file it was read from, and its reports."""

    def report(
        self, name: str, *, key_node: str | None = None, iter_start: int | None = None, iter_stop: int | None = None
    ) -> Report:
        """`tb_dlprof_plugin.report` of this profile.

        Raises:
            ValueError: there is no such report, iteration or key node; one sentence that says what there is.
        """
        return report(
            self.profile,
            name,
            key_node=key_node,
            iter_start=iter_start,
            iter_stop=iter_stop,
            run=self.path.parent.name,
        )


def read_profiles(logdir: str | os.PathLike[str]) -> list[ReadProfile]:
    """All profiles under a logdir (or in one event file), by path, each with today's verdicts.

    Raises:
        ProfileError: the path does not exist, or one of our event files cannot be read.
    """
    return [ReadProfile(stored.path, stored.profile) for stored in renew.read_profiles(logdir)]
