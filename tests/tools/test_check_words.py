"""The check of words finds those that docs/style.md rules out in prose, and leaves code and names alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_words


@pytest.mark.parametrize(
    ("suffix", "text", "expected"),
    [
        (".py", '"""Repairs a file.\n\nWhat was mended is\ntold\nby a note."""\n', [(3, "mended"), (3, "is told")]),
        (".py", "mended = 1  # read anew\n", [(1, "anew")]),
        (".py", "# The run to hold\n# it against.\n", [(1, "hold it against")]),
        (".py", 'print(f"{promises.text} as before", "promises")\n', []),
        (".md", "The field `promises`.\n\n    mended = 1\n\nRead anew.\n", [(5, "anew")]),
        (
            ".tsx",
            "const promises = await new Promise((next) => next());\n// held against the base\n",
            [(2, "held against")],
        ),
        (".py", "# The bprop of conv\nkernel = 'sm80_xmma_fprop_implicit is one'\n", [(1, "bprop")]),
        (".tsx", "<p>What became of it</p>\n", [(1, "What became of")]),
        (".tsx", '<p class="small promise" title={`beside ${name}`}>\n', [(1, "beside")]),
        (".tsx", "<p class={`small promise-${name}`}>\n", []),
    ],
)
def test_words_are_found_in_prose_alone(suffix: str, text: str, expected: list[tuple[int, str]]) -> None:
    assert [(line, word) for line, word, _ in check_words.findings(text, suffix)] == expected


def test_the_exit_status_is_that_of_the_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_words.main(["docs/style.md", "docs/trust.md"]) == 0
    assert capsys.readouterr().out == ""
