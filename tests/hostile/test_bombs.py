"""What is stored is untrusted: no blob takes more memory than a recorded one and 64 MB, and each costs one sentence."""

from __future__ import annotations

import re
import sys

import pytest
from hostile.bombs import bombs, measured, recorded

_MOST_MEGABYTES = 64
"""Beyond the largest recorded one of its kind."""
_HANGS_S = 20
"""Of the processor. `python -m tests.hostile.bombs` says what they take: none 2 s."""
_SENTENCE = r"read$|refused$|the stored profile |Rank \d+ cannot be read: |\S+ (holds a record|is not an event file)"
_READ = {
    ("profile", "as many calls as may be"), ("facts", "as many calls as may be, few"),
    ("facts", "as many calls as may be, many"), ("facts", "as many strings as may be"),
    ("profile", "members of groups"), ("facts", "64 ranks of members, 3000 bytes of noise"),
    ("facts", "512 ranks of members, 0 bytes of noise"), ("facts", "64 ranks of members, 60000 bytes of noise"),
    ("facts", "a world of a million"), ("facts", "the last rank of a million"),
    ("facts", "many host"), ("facts", "many unknown parts"),
    ("trial", "rows"), ("trial", "notes"), ("trial", "command"), ("header", "unknown fields"), ("header", "long name"),
    ("file", "numbers in a tensor"), ("file", "records"),
}  # fmt: skip
"""What is too large in these is left out, or is no more than their size."""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_no_stored_blob_takes_more_memory_than_a_recorded_one_and_64_mb() -> None:
    usual, hostile = list(recorded()), list(bombs())
    found = measured([*usual, *hostile])
    base = {bomb.kind: one for bomb, one in zip(usual, found, strict=False)}
    assert {one.said for one in base.values()} == {"read"}
    assert len(hostile) > 100
    wrong = {
        (bomb.kind, bomb.name): one
        for bomb, one in zip(hostile, found[len(usual) :], strict=True)
        if one.megabytes > _MOST_MEGABYTES + (base[bomb.kind].megabytes if bomb.kind in base else 0)
        or one.seconds > _HANGS_S
        or (one.said == "read") != ((bomb.kind, bomb.name) in _READ)
        or not re.match(_SENTENCE, one.said)
    }
    assert wrong == {}
