"""The pages of a run, or of two with their comparison, as one HTML file that a browser reads in pieces and saves."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.open_runs import OpenRuns
from tb_dlprof_plugin.web.queries import ProfileQuery
from tb_dlprof_plugin.web.trace_files import PIECE_BYTES

if TYPE_CHECKING:
    from tb_dlprof_plugin.web.export.runs import ExportedRun


def page_file(
    runs: OpenRuns,
    view: ProfileView,
    ref: RunRef,
    other: Annotated[str | None, Option("Another run, which is in the file with its comparison.")] = None,
    offset: Annotated[int, Option("Bytes that the page has already.")] = 0,
) -> bytes:
    """A piece of the file from ``offset`` on: `PIECE_BYTES`, fewer at its end. The file is made with the first piece.

    Raises:
        RequestError: there is no such other run, or the browser bundle is not built.
    """
    shown = [_exported(runs, view, ref)]
    if other is not None and other != ref.run:
        view_of_other, ref_of_other, _ = runs.profile(ProfileQuery(run=other))
        shown.append(_exported(runs, view_of_other, ref_of_other))
    key = tuple((run.name, run.session, run.rank, run.cycle, run.header) for run in shown)
    return runs.kept.files.get(key, lambda: _made(shown))[offset : offset + PIECE_BYTES]


def _exported(runs: OpenRuns, view: ProfileView, ref: RunRef) -> ExportedRun:
    # `make generate` reads this page's parameters before werkzeug is installed.
    from tb_dlprof_plugin.web.export.runs import exported

    stored = list(runs.source.blobs({ref.run}))
    return exported(stored, next(one for one in stored if one.ref == ref), view.profile)


def _made(runs: list[ExportedRun]) -> bytes:
    from tb_dlprof_plugin.web.export import PageExportError, answer_all, html_file

    answered = answer_all(runs)
    try:
        return html_file(answered, answered.title, datetime.now().astimezone()).text.encode()
    except PageExportError as error:
        raise RequestError(422, f"The file cannot be made: {error}.") from None
