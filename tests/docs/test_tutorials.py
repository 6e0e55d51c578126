"""The tutorials' commands run and print what their pages show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tutorials

PAGES = sorted(tutorials.PAGES.glob("*.md"))


def test_there_are_six_tutorials_with_commands() -> None:
    assert len(PAGES) == 6
    for page in PAGES:
        scripts = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        assert sum(len(tutorials.commands(script)) for script in scripts) >= 2, page.name


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_shows_what_its_commands_print(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert tutorials.rerun(text) == text, "python tools/tutorials.py --write puts today's output into the page"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_python_of_a_tutorial_is_python(page: Path) -> None:
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)):
        compile(code, f"{page.name}, block {number}", "exec")


def test_lines_are_chosen_by_number_or_by_text() -> None:
    lines = ["a", "b", "c", "d", "e"]
    assert tutorials.shown(lines, '1-2, "d"+1') == "a\nb\n...\nd\ne\n"
    assert tutorials.shown(lines, "2") == "...\nb\n...\n"
    assert tutorials.shown(lines, "1-5") == "a\nb\nc\nd\ne\n"


@pytest.mark.parametrize("parts", ["6", '"x"', '"b", 1', '"e"+1'])
def test_lines_that_are_not_printed_are_an_error(parts: str) -> None:
    with pytest.raises(tutorials.TutorialError, match="is not in the output"):
        tutorials.shown(["a", "b", "c", "d", "e"], parts)


def test_a_command_that_fails_is_an_error() -> None:
    with pytest.raises(tutorials.TutorialError, match="no_such_run"):
        tutorials.rerun("```sh\ntb-dlprof summary no_such_run\n```\n")
