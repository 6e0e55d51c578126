"""Recorded answers are the same where nothing changed, and a planted change is found."""

from __future__ import annotations

from pathlib import Path

import pytest
import same_answers
from recorded_answers import snapshot
from recorded_answers.differences import read_words, report
from recorded_answers.record import answers_of
from recorded_answers.recordings import Part

import tb_dlprof_plugin

RUNS = Path(__file__).resolve().parents[2] / "tests" / "data" / "planted" / "tf32_off"


@pytest.fixture(scope="module")
def recorded() -> dict[str, snapshot.Answer]:
    return _answers()


def _answers() -> dict[str, snapshot.Answer]:
    return {one.key: one for one in answers_of(Part("tf32_off", RUNS, ("fault",)))[2]}


def test_two_records_of_one_tree_are_equal_and_a_changed_figure_is_found(
    recorded: dict[str, snapshot.Answer], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = recorded
    kinds = {one.kind for one in before.values()}
    assert {"page overview", "page report", "command info text", "report kernel csv", "page sweep"} <= kinds
    assert not [key for key, one in before.items() if one.text.startswith("status 500")]
    snapshot.write(tmp_path / "before", before.values())
    snapshot.write(tmp_path / "again", _answers().values())
    assert same_answers.main(["compare", str(tmp_path / "before"), str(tmp_path / "again")]) == 0

    changed = {
        key: snapshot.answer(*key.split(snapshot.SEPARATOR), one.text.replace("total_ns", "sum_ns"))
        for key, one in before.items()
    }
    snapshot.write(tmp_path / "changed", changed.values())
    capsys.readouterr()
    assert same_answers.main(["compare", str(tmp_path / "before"), str(tmp_path / "changed")]) == 1
    assert "page ops" in capsys.readouterr().out
    (tmp_path / "words").write_text("total_ns => sum_ns\n")
    meant = ["compare", str(tmp_path / "before"), str(tmp_path / "changed"), "--words", str(tmp_path / "words")]
    assert same_answers.main(meant) == 0


def test_places_and_versions_are_left_out(recorded: dict[str, snapshot.Answer]) -> None:
    texts = [one.text for one in recorded.values()]
    assert not [text for text in texts if str(RUNS) in text or f'"{tb_dlprof_plugin.__version__}"' in text]


def test_a_difference_is_shown_with_its_place() -> None:
    before = {"a | run | ": snapshot.answer("a", "run", "", '{"rows":[{"ns":1},{"ns":2}]}')}
    after = {"a | run | ": snapshot.answer("a", "run", "", '{"rows":[{"ns":1},{"ns":3}]}')}
    lines, differs = report(before, after)
    assert differs
    assert lines[0] == "a: 1 differ"
    assert lines[2].strip() == ".rows[1].ns: 2 => 3"
    assert report(before, {})[0][0] == "a: 1 only before"


def test_words_need_an_arrow(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("# names\nold => new\n\nnothing\n")
    with pytest.raises(ValueError, match="nothing"):
        read_words(tmp_path / "words")
