"""Pages as Python objects: each table holds what the view holds, with and without pandas."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import msgspec
import pytest

import tb_dlprof_plugin
from tb_dlprof_plugin.api.profiles import ReadProfile
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.web.routes import PAGES

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "demo" / "recorded"


@pytest.fixture(scope="module")
def runs() -> dict[str, ReadProfile]:
    return {run.name: run for run in tb_dlprof_plugin.read_profiles(RECORDED / "lenet")}


@pytest.fixture(scope="module")
def run(runs: dict[str, ReadProfile]) -> ReadProfile:
    return runs["fp32"]


class TestReading:
    def test_runs_are_named_as_tensorboard_names_them(self) -> None:
        below = tb_dlprof_plugin.read_profiles(RECORDED / "lenet")
        assert [run.name for run in below] == ["amp-bf16", "amp-fp16", "fp32", "tf32"]
        (alone,) = tb_dlprof_plugin.read_profiles(RECORDED / "lenet" / "fp32")
        (file,) = tb_dlprof_plugin.read_profiles(alone.path)
        assert (alone.name, file.name) == ("fp32", "fp32")
        assert repr(alone) == "<ReadProfile fp32: LeNet5, fp32, NVIDIA H200, 10 iterations>"

    def test_ranks_of_one_training_know_each_other(self, tmp_path, training) -> None:
        profile = training().profile()
        for rank in (0, 1):
            source = dataclasses.replace(profile.source, rank=rank, session="s")
            write_profile(tmp_path / "ddp", dataclasses.replace(profile, source=source))
        pair = tb_dlprof_plugin.read_profiles(tmp_path)
        assert [[other.source.rank for other in run.ranks] for run in pair] == [[0, 1], [0, 1]]
        view, _ = pair[1]._selected(None, None, None)
        assert [rank.profile.source.rank for rank in view.ranks] == [0, 1]
        assert view.ranks[1] is view


class TestPage:
    @pytest.mark.parametrize("name", PAGES)
    def test_every_table_has_the_rows_of_the_view(self, run: ReadProfile, name: str) -> None:
        view = ProfileView(run.profile)
        data = PAGES[name].load_page()(view, run.ref, view.selection())
        page = run.page(name)
        assert page.data == data
        assert repr(page).startswith(f"<{type(data).__name__}: ")
        assert json.loads(page.to_json()) == msgspec.to_builtins(data)
        for table in page.tables:
            made, held = page.table(table), getattr(data, table, None)
            assert len(set(made.columns)) == len(made.columns)
            if isinstance(held, list):
                assert len(made.rows) == len(held)
                plain = [column for column in made.columns if held and hasattr(held[0], column)]
                assert [[row[c] for c in plain] for row in made.to_dicts()] == [
                    [getattr(row, c) for c in plain] for row in held
                ]
            made.to_csv(), made.to_json(), made._repr_html_()

    def test_a_range_and_a_key_node_apply(self, run: ReadProfile) -> None:
        numbers = [row["number"] for row in run.page("launches", iter_start=15, iter_stop=17).table().to_dicts()]
        assert numbers == [15, 16, 17]
        assert len(run.page("overview", key_node="conv1/conv2d").table().rows) == 11

    def test_lists_by_category_become_columns_that_sum_up(self, run: ReadProfile) -> None:
        page = run.page("overview")
        for row in page.table("iterations").to_dicts():
            parts = [row[f"{category.key}_ns"] for category in page.data.buckets]
            assert len(parts) == len(page.data.account) + 1  # the recorder is the last
            assert sum(part or 0 for part in parts) == row["duration_ns"]
        for row in run.page("launches").table("iterations").to_dicts():
            idle = [v for k, v in row.items() if k.startswith("idle_") and k not in ("idle_ns", "idle_percent")]
            assert sum(idle) == row["idle_ns"]

    def test_the_memory_curve_is_a_table(self, training) -> None:
        trace = training()
        trace.memory(100, 512, 1, allocated=512, reserved=1024, device=0)
        trace.memory(200, 512, 2, allocated=1024, reserved=1024, device=0)
        page = tb_dlprof_plugin.page(trace.profile(), "memory")
        curve = page.table("curve").to_dicts()
        assert [(at["allocated_bytes"], at["reserved_bytes"]) for at in curve][-1] == (1024, 1024)
        assert len(curve) == len(page.data.curve.time_ns)

    def test_what_was_not_recorded_is_a_table_without_rows(self, run: ReadProfile) -> None:
        memory = run.page("memory")
        assert memory.headline.startswith("Memory was not recorded")
        assert memory.table("figures").rows == []
        assert memory.table("curve").rows == []

    def test_the_first_rows_of_many_say_so(self, run: ReadProfile) -> None:
        page = run.page("launches")
        assert page.data.total_gaps > len(page.data.gaps)
        assert page.table("gaps").notes == (f"The first {len(page.data.gaps)} of {page.data.total_gaps:,}.",)

    def test_means_of_iterations_say_so(self, new_trace) -> None:
        trace = new_trace()
        for number in range(1500):
            trace.step(number, 10 * number, 10)
            trace.op("aten::relu", 10 * number + 1, 5)
        page = tb_dlprof_plugin.page(trace.profile(), "overview")
        assert len(page.table("iterations").rows) < 1500
        assert page.table("iterations").notes == (page.data.bars_note,)
        assert page.data.bars_note.startswith("1,500 iterations in ")
        assert page.table("top_ops").notes == ()

    def test_lists_of_records_within_a_row_are_said_to_be_left_out(self, run: ReadProfile) -> None:
        assert run.page("kernels").table().notes == ("ops: a list in each row; JSON holds it.",)

    def test_wrong_names_are_answered_with_the_right_ones(self, run: ReadProfile) -> None:
        with pytest.raises(ValueError, match=r"no page 'roof'; there are overview, .* roofline"):
            run.page("roof")
        with pytest.raises(ValueError, match="no table 'op'; it has rows, coverage"):
            run.page("ops").table("op")
        with pytest.raises(ValueError, match=r"no op 'conv9' ran in fp32; those with"):
            run.op("conv9")
        with pytest.raises(ValueError, match="there is no run 'x'; the runs are fp32"):
            tb_dlprof_plugin.many_runs([run], base="x")

    def test_in_a_notebook_names_from_a_trace_stay_texts(self, new_trace) -> None:
        trace = new_trace()
        trace.op("<img src=x onerror=alert(1)>", 0, 10)
        shown = tb_dlprof_plugin.page(trace.profile(), "ops")._repr_html_()
        assert "&lt;img" in shown
        assert "<img" not in shown


class TestSeveralRuns:
    def test_compare_is_the_page_of_the_two(self, runs: dict[str, ReadProfile]) -> None:
        a, b = runs["fp32"], runs["amp-fp16"]
        sides = [
            CompareInput(view, side.ref, view.selection()) for side in (a, b) for view in [ProfileView(side.profile)]
        ]
        page = a.compare(b)
        assert page.data == compare_page(*sides)
        row, op = page.table("ops").to_dicts()[0], page.data.ops[0]
        assert {key: row[f"a_{key}_ns"] for key in op.a_buckets} == op.a_buckets

    def test_an_op_is_found_by_its_name(self, run: ReadProfile) -> None:
        page = run.op("conv1/conv2d")
        assert page.data.row.direction == "forward"
        assert sum(row["total_ns"] for row in page.table("kernels").to_dicts()) == page.data.row.gpu_ns

    def test_a_forecast_has_its_ops(self, run: ReadProfile) -> None:
        page = run.predict("bf16")
        assert len(page.table().rows) == page.data.total_rows
        with pytest.raises(ValueError, match="fp7"):
            run.predict("fp7")

    def test_many_runs_are_held_against_their_base(self, runs: dict[str, ReadProfile]) -> None:
        table = {row["run"]: row for row in tb_dlprof_plugin.many_runs(runs.values()).table().to_dicts()}
        assert sorted(table) == sorted(runs)
        assert {row["base"] for row in table.values()} == {"fp32"}
        (model,) = tb_dlprof_plugin.by_model(runs.values()).table().to_dicts()
        assert (model["before_run"], model["model"]) == ("fp32", "LeNet5")
        points = tb_dlprof_plugin.sweep(runs.values(), over="precision").table()
        assert points.columns[-1] == "Step time (ns)"
        with pytest.raises(ValueError, match="no fact 'colour'"):
            tb_dlprof_plugin.sweep(runs.values(), over="colour")


def test_pandas_has_every_cell_and_its_absence_is_told(run: ReadProfile, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    page = run.page("ops")
    view = page.to_pandas()
    assert list(view.columns) == list(page.table().columns)
    assert int(view["gpu_ns"].sum()) == sum(row.gpu_ns for row in page.data.rows)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        page.to_pandas()
