"""Every report, DLProf's by their names in ``--reports``; writes all of them as files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tb_dlprof_plugin.model.whole_file import whole_file
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.additional import api_report, averages_report, copies_report, kernel_groups_report
from tb_dlprof_plugin.reports.detail import detail_report
from tb_dlprof_plugin.reports.expert_systems import expert_systems_report
from tb_dlprof_plugin.reports.group_node import group_node_report
from tb_dlprof_plugin.reports.iteration import iteration_report
from tb_dlprof_plugin.reports.kernel import kernel_report
from tb_dlprof_plugin.reports.op_type import op_type_report
from tb_dlprof_plugin.reports.summary import summary_report
from tb_dlprof_plugin.reports.table import FORMATS, Report
from tb_dlprof_plugin.reports.tensor import tensor_report
from tb_dlprof_plugin.store.run_ref import RunRef

REPORTS: dict[str, Callable[[ProfileView, RunRef, Selection], Report]] = {
    "summary": summary_report,
    "detail": detail_report,
    "iteration": iteration_report,
    "kernel": kernel_report,
    "tensor": tensor_report,
    "op_type": op_type_report,
    "group_node": group_node_report,
    "expert_systems": expert_systems_report,
    "averages": averages_report,
    "api": api_report,
    "copies": copies_report,
    "kernel_groups": kernel_groups_report,
}
"""In the order of DLProf's guide, then ours."""

BASE_NAME = "dlprof"
"""What the names of files begin with."""
ALIASES = {"node_op": "op_type", "detailed": "detail"}
"""Other names that the guide has for a report."""


def make_report(
    name: str, view: ProfileView, ref: RunRef, selection: Selection, *, profile_name: str | None = None
) -> Report:
    """One report by its name or alias.

    Args:
        name: a key of `REPORTS` or `ALIASES`.
        view: the recording.
        ref: its identity.
        selection: the iterations to aggregate.
        profile_name: the user's name for the profile, which the summary shows.

    Raises:
        KeyError: there is no report of this name.
    """
    make = REPORTS[ALIASES.get(name, name)]
    if make is summary_report:
        return summary_report(view, ref, selection, profile_name)
    return make(view, ref, selection)


def write_reports(
    reports: Mapping[str, Report], formats: Sequence[str], folder: Path, base_name: str = BASE_NAME
) -> Iterator[Path]:
    """Writes each report in each format and yields the paths; files and links of the same names are replaced.

    Args:
        reports: by the names that the files have.
        formats: keys of `FORMATS`.
        folder: is made where it does not exist.
        base_name: what the file names begin with; blanks become underscores, as with DLProf.

    Raises:
        OSError: the folder or a file cannot be written.
        ModuleNotFoundError: a format needs a package that is not installed; the message says which.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, report in reports.items():
        for kind in formats:
            path = folder / f"{base_name.replace(' ', '_')}_{name}.{kind}"
            content = FORMATS[kind](report)
            with whole_file(path) as file:
                file.write(content)
            yield path
