"""Answers in, one file out, and back: a line per answer with its key, SHA-256 and compressed text.

A text that several answers share is stored with the first of them. A key is ``kind | subject | question``; everything
in it is chosen by the questions, never by the code under test.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SEPARATOR = " | "
_FORMAT = "same_answers 1"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; ``packed`` is its compressed text."""

    key: str
    digest: str
    packed: bytes

    @property
    def kind(self) -> str:
        """What was asked, without about what: the page, report or command."""
        return self.key.split(SEPARATOR, 1)[0]

    @property
    def text(self) -> str:
        return zlib.decompress(self.packed).decode()


def answer(kind: str, subject: str, question: str, text: str) -> Answer:
    """An answer of a text."""
    data = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
    return Answer(SEPARATOR.join((kind, subject, question)), hashlib.sha256(data).hexdigest(), zlib.compress(data, 6))


def write(path: Path, answers: Iterable[Answer]) -> None:
    """The file, by key.

    Raises:
        ValueError: two answers have the same key.
    """
    found = sorted(answers, key=lambda one: one.key)
    for one, other in itertools.pairwise(found):
        if one.key == other.key:
            raise ValueError(f"two answers are called {one.key!r}")
    stored: set[str] = set()
    with path.open("w", encoding="utf-8") as file:
        file.write(_FORMAT + "\n")
        for one in found:
            text = "=" if one.digest in stored else base64.b64encode(one.packed).decode()
            stored.add(one.digest)
            file.write(f"{json.dumps(one.key)}\t{one.digest}\t{text}\n")


def read(path: Path) -> dict[str, Answer]:
    """The answers by key.

    Raises:
        ValueError: the file is none of `write`.
    """
    with path.open(encoding="utf-8") as file:
        if file.readline().rstrip("\n") != _FORMAT:
            raise ValueError(f"{path} holds no recorded answers of this format; record them again")
        packed: dict[str, bytes] = {}
        result = {}
        for line in file:
            quoted, digest, text = line.rstrip("\n").split("\t")
            if text != "=":
                packed[digest] = base64.b64decode(text)
            key = json.loads(quoted)
            result[key] = Answer(key, digest, packed[digest])
    return result
