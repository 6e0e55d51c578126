"""One question has one answer on all pages and in all commands, for all recorded runs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from invariants.conftest import Recording
from invariants.one_answer import (
    REF,
    REGISTRY,
    Contradiction,
    contradictions,
    first_rows,
    of_base,
    overheads,
    spoken,
    values,
)

from tb_dlprof_plugin.pages.columns import columns_of, quantities_of
from tb_dlprof_plugin.pages.common import Slice
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.web.routes import PAGES
from tb_dlprof_plugin.web.typescript import answers, reachable

ROOT = Path(__file__).resolve().parents[2]
FRONTEND = ROOT / "frontend" / "src"
RUNS = {
    path.parent.relative_to(ROOT).as_posix(): path
    for folder in ("demo/recorded", "tests/data")
    for path in sorted((ROOT / folder).rglob("*.tb_dlprof"))
}
"""The last event file of each recorded run."""
SHORT = ("demo/recorded/lenet/amp-fp16", "tests/data/memory_plan/recorded/convnext/base")
"""Those of ``make test``: a light window with AMP, and a recording with memory."""
SLOW = (
    "demo/recorded/mlp/tf32", "tests/data/ranks/recorded/pipeline_even", "tests/data/energy/held_out/convnext/bf16",
    "tests/data/planted/data_parallel/fault", "tests/data/precision_pairs/torchvision/resnet18/compile-amp-bf16",
)  # fmt: skip
"""Those of ``make landing``: a pipeline of several ranks, energy, two GPUs, a compiled model."""


def _run(name: str) -> object:
    marks = () if name in SHORT else pytest.mark.slow if name in SLOW else pytest.mark.long
    return pytest.param(name, marks=marks, id=name)


@pytest.mark.parametrize("name", [_run(name) for name in RUNS])
def test_a_recorded_run_contradicts_itself_nowhere(name: str) -> None:
    (stored, *_) = read_profiles(RUNS[name].parent)
    found = list(contradictions(ProfileView(stored.profile), RUNS[name], printed=True))
    assert not found, "\n".join(map(str, found))


@pytest.mark.slow
def test_a_trace_contradicts_itself_nowhere(recording: Recording) -> None:
    found = list(contradictions(recording.view, recording.path, printed=False))
    assert not found, "\n".join(map(str, found))


def test_a_quantity_has_one_name_one_key_and_one_sentence() -> None:
    for attribute in ("label", "key", "text"):
        said = [getattr(quantity, attribute) for quantity in REGISTRY.values()]
        assert sorted(set(said)) == sorted(said)
    shown = {quantity for struct in reachable(answers().values()) for quantity in quantities_of(struct).values()}
    assert shown <= set(REGISTRY.values())


def test_a_column_of_a_quantity_has_no_heading_of_its_own() -> None:
    for struct in reachable(answers().values()):
        quantities = quantities_of(struct)
        for column in columns_of(struct):
            others = [one.label for one in REGISTRY.values() if one != quantities.get(column.field)]
            assert column.declared.heading not in others, (struct, column.field)
            if column.field in quantities:
                assert column.declared.heading == quantities[column.field].label


def test_the_page_gives_a_quantity_no_other_name() -> None:
    if not FRONTEND.is_dir():
        pytest.skip("no frontend sources next to this package")
    keys = "|".join(quantity.key for quantity in REGISTRY.values())
    for path in FRONTEND.rglob("*.tsx"):
        assert not re.search(rf'<Term of="({keys})">|<Figure\s+of="({keys})"\s+label=', path.read_text()), path


# ---- what the checks find


def kinds(found: Iterable[Contradiction]) -> set[str]:
    return {one.kind for one in found}


def test_another_value_is_found(gpu_view: ProfileView) -> None:
    selection = gpu_view.selection()
    page = overview(gpu_view, REF, selection).summary
    assert not list(values("summary", page, gpu_view, selection))
    for field in quantities_of(type(page)):
        other = msgspec.structs.replace(page, **{field: 12345})
        assert kinds(values("summary", other, gpu_view, selection)) == {"value"}, field


def test_a_share_of_another_base_and_parts_without_their_whole_are_found() -> None:
    halves = [Slice("a", "A", 50, 50.0), Slice("b", "B", 50, 50.0)]
    assert not list(of_base("page.parts", halves))
    assert kinds(of_base("page.parts", [halves[0], Slice("b", "B", 50, 20.0)])) == {"base", "parts"}
    assert kinds(of_base("page.parts", halves[:1])) == {"parts"}


def test_a_sentence_with_another_number_is_found(gpu_view: ProfileView) -> None:
    selection = gpu_view.selection()
    said = overview(gpu_view, REF, selection).headline
    assert not list(spoken("overview", said, gpu_view, selection))
    wrong = ("The GPU works 3 % of it.", "The GPU is idle 98 % of it.", "7 % on Tensor Cores.", "in the 9.87 s step")
    for text in wrong:
        assert kinds(spoken("page", text, gpu_view, selection)) == {"sentence"}, text
    assert not list(spoken("page", "idle 98 % of the recorded step", gpu_view, selection))


def test_two_overheads_of_one_recording_are_found() -> None:
    said = ["The median recorded step takes 9 ms, 3.6 times as long as one without the profiler.",
            "The recorded step is 3.4 times as long as without the profiler"]  # fmt: skip
    assert kinds(overheads(said)) == {"sentence"}
    assert not list(overheads(said[:1] * 2))


def test_a_headline_that_names_another_row_is_found(gpu_view: ProfileView) -> None:
    pages = {name: route.load_page()(gpu_view, REF, gpu_view.selection()) for name, route in PAGES.items()}
    assert not list(first_rows(pages))
    ops = msgspec.structs.replace(pages["ops"], rows=pages["ops"].rows[::-1])
    assert kinds(first_rows(pages | {"ops": ops})) == {"first row"}
