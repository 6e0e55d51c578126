"""Profiles read from event files: each with its reports, its pages and comparisons.

run, *others = tb_dlprof_plugin.read_profiles("runs")
run.report("kernel", iter_start=5).to_pandas()
run.page("roofline").to_pandas()
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tb_dlprof_plugin.model.plan_request import PlanQuestion
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.request import keywords_of
from tb_dlprof_plugin.model.visible import visible
from tb_dlprof_plugin.store.choice import MOST_RANKS, ranks_together
from tb_dlprof_plugin.store.last_used import LastUsed
from tb_dlprof_plugin.store.logdir import EventFileStore, StoredProfile, runs_below

# Imported on first use, to keep reading profiles fast.
if TYPE_CHECKING:
    from tb_dlprof_plugin.api.page_result import Page
    from tb_dlprof_plugin.planning import Precision
    from tb_dlprof_plugin.profile_view import ProfileView, Selection
    from tb_dlprof_plugin.reports.table import Report
    from tb_dlprof_plugin.run_widget import RunWidget
    from tb_dlprof_plugin.store.run_ref import RunRef


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
        name: as `tb-dlprof report --reports` takes it: "kernel".
        key_node: cut the recording into iterations where this op stops: its Op ID or Op Name in the Detailed Report.
        iter_start: number of the first iteration to aggregate, as the training counts them; the first by default.
        iter_stop: number of the last one, inclusive; the last by default.
        run: a name for the recording.

    Raises:
        ValueError: there is no such report, iteration or key node; one sentence that says what there is.
    """
    return ReadProfile(Path(), profile, run).report(name, key_node=key_node, iter_start=iter_start, iter_stop=iter_stop)


def page(
    profile: Profile,
    name: str,
    *,
    key_node: str | None = None,
    iter_start: int | None = None,
    iter_stop: int | None = None,
    run: str = "",
) -> Page:
    """A page of a profile: its headline and its tables (docs/python.md lists them).

    Args:
        profile: of `read_profiles` or `analyze`.
        name: as in the page's address: "overview".
        key_node: as for `report`.
        iter_start: as for `report`.
        iter_stop: as for `report`.
        run: a name for the recording.

    Raises:
        ValueError: there is no such page, iteration or key node; one sentence that says what there is.
    """
    return ReadProfile(Path(), profile, run).page(name, key_node=key_node, iter_start=iter_start, iter_stop=iter_stop)


@dataclass(frozen=True, slots=True, repr=False)
class ReadProfile(StoredProfile):
    """A profile, the event file it was read from, its reports and its pages.

    Attributes:
        path: the event file.
        profile: all that is stored.
        name: of the run, as TensorBoard has it.
        ranks: the profiles of ranks of the same training and cycle, this one among them; empty where it is alone.
        kept: cached results for tables of many runs.
    """

    name: str = ""
    ranks: tuple[Profile, ...] = ()
    kept: dict[str, object] = field(default_factory=dict, init=False, compare=False)

    @property
    def ref(self) -> RunRef:
        """Its identity on the pages: run, session, rank, cycle."""
        from tb_dlprof_plugin.store.run_ref import RunRef

        source = self.profile.source
        return RunRef(self.name, source.session, source.rank, source.cycle)

    def report(
        self, name: str, *, key_node: str | None = None, iter_start: int | None = None, iter_stop: int | None = None
    ) -> Report:
        """`tb_dlprof_plugin.report` of this profile.

        Raises:
            ValueError: there is no such report, iteration or key node; one sentence that says what there is.
        """
        from tb_dlprof_plugin.reports.registry import ALIASES, REPORTS, make_report

        if name not in REPORTS and name not in ALIASES:
            raise ValueError(f"there is no report {name!r}; there are {', '.join(REPORTS)}")
        view, selection = self._selected(key_node, iter_start, iter_stop)
        return make_report(name, view, self.ref, selection)

    def page(
        self, name: str, *, key_node: str | None = None, iter_start: int | None = None, iter_stop: int | None = None
    ) -> Page:
        """`tb_dlprof_plugin.page` of this profile.

        Raises:
            ValueError: there is no such page, iteration or key node; one sentence that says what there is.
        """
        from tb_dlprof_plugin.api.page_result import Page
        from tb_dlprof_plugin.web.routes import PAGES

        if name not in PAGES:
            raise ValueError(f"there is no page {name!r}; there are {', '.join(PAGES)}")
        view, selection = self._selected(key_node, iter_start, iter_stop)
        return Page(PAGES[name].load_page()(view, self.ref, selection))

    def op(
        self, name: str, *, key_node: str | None = None, iter_start: int | None = None, iter_stop: int | None = None
    ) -> Page:
        """One op: its kernels, its shapes, its times by iteration.

        Args:
            name: its id or its name on the page "ops"; a name that a forward and a backward op share is the forward's.
            key_node: as for `report`.
            iter_start: as for `report`.
            iter_stop: as for `report`.

        Raises:
            ValueError: there is no such op, iteration or key node; one sentence that says what there is.
        """
        from tb_dlprof_plugin.api.page_result import Page
        from tb_dlprof_plugin.pages.ops import op_rows
        from tb_dlprof_plugin.pages.work_detail import work_detail

        view, selection = self._selected(key_node, iter_start, iter_stop)
        rows = op_rows(view, selection)
        found = [row for row in rows if name in (row.id, row.name)]
        if not found:
            longest = ", ".join(dict.fromkeys(row.name for row in rows[:8]))
            raise ValueError(
                f"no op {name!r} ran in {self.name or 'the recording'}; those with most time are {longest}"
            )
        chosen = next((row for row in found if row.direction == "forward"), found[0])
        return Page(work_detail(view, self.ref, selection, "op", chosen.id))

    def compare(self, candidate: ReadProfile) -> Page:
        """Compare another run with this one as the base: what made the step shorter or longer, op by op."""
        from tb_dlprof_plugin.api.page_result import Page
        from tb_dlprof_plugin.pages.compare import compare_page
        from tb_dlprof_plugin.pages.compare_metrics import CompareInput

        sides = []
        for run in (self, candidate):
            view, selection = run._selected(None, None, None)
            sides.append(CompareInput(view, run.ref, selection))
        return Page(compare_page(*sides))

    def predict(self, precision: Precision, *, batch_size: int | None = None, gpu: str | None = None) -> Page:
        """Forecast the step of this FP32 run in another precision, with its interval, op by op.

        Args:
            precision: "tf32", "fp16" or "bf16".
            batch_size: another batch size; the run's own by default.
            gpu: another GPU's name; the run's own by default.

        Raises:
            ValueError: there is no forecast for this run or choice; the message gives the reason.
        """
        from tb_dlprof_plugin.api.page_result import Page
        from tb_dlprof_plugin.pages.forecast import forecast_page

        view, _ = self._selected(None, None, None)
        return Page(forecast_page(view, self.ref, precision, batch_size, gpu))

    def html(self, title: str = "") -> str:
        """All pages of this profile as one HTML file, which needs no server and runs in a frame without an origin.

        Args:
            title: of the file; the run's name by default.

        Raises:
            PageExportError: this copy of the package has no browser bundle.
        """
        from tb_dlprof_plugin.web.export import answer_all, html_file
        from tb_dlprof_plugin.web.export.runs import exported_alone

        answered = answer_all([exported_alone(self.name or "run", self.profile)])
        return html_file(answered, title or answered.title, datetime.now().astimezone()).text

    def widget(self, height: int = 900) -> RunWidget:
        """The pages of `html` in a notebook's cell: a widget for Jupyter, Colab, VS Code and marimo.

        Args:
            height: of the view, in pixels.

        Raises:
            ModuleNotFoundError: anywidget is missing.
            PageExportError: this copy of the package has no browser bundle.
        """
        try:
            from tb_dlprof_plugin.run_widget import RunWidget
        except ModuleNotFoundError as error:
            if error.name != "anywidget":
                raise
            raise ModuleNotFoundError("The widget needs anywidget: pip install anywidget.", name="anywidget") from None
        return RunWidget(html=self.html(), height=height)

    @keywords_of(PlanQuestion)
    def plan(self, request: PlanQuestion) -> Page:
        """What the training takes of a GPU's memory in another configuration, whether it fits, and the largest batch.

        Raises:
            ValueError: the request is invalid, or names what the run does not have. What was not recorded is None in
                the page, with the reason in ``unknown``.
        """
        from tb_dlprof_plugin.api.page_result import Page
        from tb_dlprof_plugin.pages.plan import plan_page

        view, _ = self._selected(None, None, None)
        return Page(plan_page(view, self.ref, request))

    def _selected(
        self, key_node: str | None, iter_start: int | None, iter_stop: int | None
    ) -> tuple[ProfileView, Selection]:
        from tb_dlprof_plugin.metrics.iteration_range import by_number

        view = _view(self.profile, self.ranks, key_node)
        return view, by_number(view, iter_start, iter_stop)

    def __repr__(self) -> str:
        from tb_dlprof_plugin.store.header import header_of

        header, source = header_of(self.profile), self.profile.source
        facts = [header.model, header.precision, header.device, f"{len(self.profile.iterations)} iterations"]
        facts += [f"rank {source.rank}"] if self.ranks else []
        return visible(f"<ReadProfile {self.name}: {', '.join(fact for fact in facts if fact)}>")


_views: LastUsed[tuple[ProfileView, Profile, tuple[Profile, ...]]] = LastUsed(2 * MOST_RANKS)
"""Derived columns, cached; the profiles stored with them keep the ids in the key from being reused."""


def _view(profile: Profile, ranks: tuple[Profile, ...], key_node: str | None) -> ProfileView:
    from tb_dlprof_plugin.metrics.key_node import with_key_node
    from tb_dlprof_plugin.model.run_choice import KeyNodeError
    from tb_dlprof_plugin.profile_view import ProfileView

    def open_others() -> Iterator[ProfileView]:
        for other in ranks:
            with contextlib.suppress(KeyNodeError):
                if other is not profile:
                    yield _view(other, (), key_node)

    def make() -> tuple[ProfileView, Profile, tuple[Profile, ...]]:
        cut = profile if key_node is None else with_key_node(profile, key_node)
        return ProfileView(cut, open_others), profile, ranks

    return _views.get((id(profile), tuple(map(id, ranks)), key_node), make)[0]


def read_profiles(logdir: str | os.PathLike[str]) -> list[ReadProfile]:
    """All profiles under a logdir (or in one event file), by path, each with today's verdicts.

    Raises:
        ProfileError: the path does not exist, or one of our event files cannot be read.
    """
    store = EventFileStore(runs_below(logdir))
    blobs = store.all()
    profiles = {blob.key: store.profile(blob) for blob in blobs}
    return [
        ReadProfile(
            blob.path,
            profiles[blob.key],
            blob.ref.run,
            tuple(profiles[one.key] for one in ranks_together(blobs, blob)),
        )
        for blob in blobs
    ]
