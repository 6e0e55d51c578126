"""Two recorded files in; what differs between their answers out, counted by kind and shown at its first places."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from recorded_answers.snapshot import Answer

Words = Sequence[tuple[str, str]]
_SHOWN_ANSWERS, _SHOWN_PLACES = 2, 4
_LONGEST, _BEFORE = 120, 30
"""Characters that are shown of a text, and before the first that differs."""


def read_words(path: Path) -> Words:
    """Replacements, one in a line: ``old => new``. Empty lines and those that begin with # are left out.

    Raises:
        ValueError: a line is none.
    """
    found = []
    for line in path.read_text("utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        old, arrow, new = line.partition(" => ")
        if not arrow or not old:
            raise ValueError(f"{path}: {line!r} is not 'old => new'")
        found.append((old, new))
    return found


def report(before: Mapping[str, Answer], after: Mapping[str, Answer], words: Words = ()) -> tuple[list[str], bool]:
    """Lines to print, and whether anything differs; ``words`` replace in the keys and texts of ``before``."""
    earlier = {_replaced(key, words): one for key, one in before.items()}
    counts: dict[str, Counter[str]] = {}
    shown: dict[str, list[str]] = {}
    for key in sorted({*earlier, *after}):
        old, new = earlier.get(key), after.get(key)
        kind = key.split(" | ", 1)[0]
        verdict, places = _compared(old, new, words)
        counts.setdefault(kind, Counter())[verdict] += 1
        if verdict != "same" and len(lines := shown.setdefault(kind, [])) < _SHOWN_ANSWERS * (_SHOWN_PLACES + 1):
            lines += [f"  {key}: {verdict}", *(f"    {place}" for place in places)]
    total = sum(counts.values(), Counter())
    result = []
    for kind, of in sorted(counts.items()):
        if of["same"] < of.total():
            result.append(f"{kind}: " + ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(of.items())))
            result += shown[kind]
    result.append(f"all {total.total():,} answers: " + ", ".join(f"{n:,} {v}" for v, n in sorted(total.items())))
    return result, total["same"] < total.total()


def _compared(old: Answer | None, new: Answer | None, words: Words) -> tuple[str, list[str]]:
    if old is None:
        return "only after", []
    if new is None:
        return "only before", []
    if old.digest == new.digest:
        return "same", []
    text_a, text_b = old.text, new.text
    a, b = _decoded(_replaced(text_a, words)), _decoded(text_b)
    if a is not None and b is not None:
        places = list(_first(_places(a, b, ""), _SHOWN_PLACES))
        if not places and _canonical(a) != _canonical(b):
            places = ["equal figures, written differently"]
    else:
        places = list(_first(_lines(_replaced(text_a, words), text_b), _SHOWN_PLACES))
    return ("differ", places) if places else ("same", [])


def _canonical(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _decoded(text: str) -> Any:
    if text[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _places(a: Any, b: Any, path: str) -> Iterator[str]:
    """Each place at which two JSON values differ."""
    if type(a) is type(b) and isinstance(a, dict):
        for key in sorted({*a, *b}):
            if key not in a:
                yield f"{path}.{key}: only after, {_short(b[key])}"
            elif key not in b:
                yield f"{path}.{key}: only before, {_short(a[key])}"
            else:
                yield from _places(a[key], b[key], f"{path}.{key}")
    elif type(a) is type(b) and isinstance(a, list):
        if len(a) != len(b):
            yield f"{path}: {len(a)} => {len(b)} items"
        for place, (one, other) in enumerate(zip(a, b, strict=False)):
            yield from _places(one, other, f"{path}[{place}]")
    elif type(a) is not type(b) or a != b:
        yield f"{path}: {_apart(_json(a), _json(b))}"


def _lines(a: str, b: str) -> Iterator[str]:
    """The lines of two texts that differ."""
    before, after = a.split("\n"), b.split("\n")
    if before == after:
        return
    if len(before) != len(after):
        yield f"{len(before)} => {len(after)} lines"
    for number, (one, other) in enumerate(itertools.zip_longest(before, after, fillvalue=""), 1):
        if one != other:
            yield f"line {number}: {_apart(one, other)}"


def _first(found: Iterator[str], most: int) -> Iterator[str]:
    for place, one in enumerate(found):
        if place == most:
            yield "..."
            return
        yield one


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _short(value: Any) -> str:
    text = _json(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _apart(a: str, b: str) -> str:
    """Two texts from shortly before the first place at which they differ."""
    shorter = min(len(a), len(b))
    first = next((n for n in range(shorter) if a[n] != b[n]), shorter)
    start = max(0, first - _BEFORE) if max(len(a), len(b)) > _LONGEST else 0
    cut = ("..." if start else "", slice(start, start + _LONGEST))
    return f"{cut[0]}{a[cut[1]]} => {cut[0]}{b[cut[1]]}"


def _replaced(text: str, words: Words) -> str:
    for old, new in words:
        text = text.replace(old, new)
    return text
