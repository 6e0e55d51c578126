"""Every broken file that was thought of or found once: what is read of it, and what is said of the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.broken_traces import CORPUS, check

EXPECTED = json.loads((Path(__file__).parent / "corpus.json").read_text())
"""By file: the names of its calls, its repaired events and its notes with their counts; or the error, less its path."""


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir()))
def test_a_broken_file_gives_what_can_be_read_or_one_error(name: str) -> None:
    path = CORPUS / name
    result = check(path)
    expected = EXPECTED.get(name)
    if expected is None:
        assert name.startswith("found_"), "for a file written by hand, corpus.json says what is expected"
    elif isinstance(result, str):
        assert {"error": result.replace(str(path), "").strip()} == expected
    else:
        names = [result.strings[result.ops.name[op]] for op in result.calls.op]
        about_the_file = {
            note.code: note.count
            for note in result.notes
            if note.code not in ("no_steps", "no_modules", "no_gpu", "no_shapes")
        }
        assert {"calls": names, "repaired": result.source.repaired_events, "notes": about_the_file} == expected


def test_every_expectation_has_its_file() -> None:
    assert not EXPECTED.keys() - {path.name for path in CORPUS.iterdir()}
