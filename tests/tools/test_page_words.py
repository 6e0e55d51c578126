"""The words of pages are plain, of the field, or explained."""

from __future__ import annotations

import page_words
import pytest

_WORDS = {"iteration", "fit", "trace", "study"}


def test_pages_use_no_word_that_needs_an_explanation_and_has_none() -> None:
    assert page_words.unexplained() == {}


def test_no_word_is_listed_that_pages_do_not_use() -> None:
    shown = {word for _, text in page_words.shown() for word in page_words.words_of(text)}
    listed = {*page_words.FIELD.split(), *page_words.PLAIN.split()}
    assert {one for one in listed if not any(page_words.is_known(word, {one}) for word in shown)} == set()


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("Iterations that fitted, studies and traces", []),
        ("A yardstick of `yardstick()`, https://yardstick.org, --yardstick and a_yardstick", ["yardstick"]),
        ("as [Yardstick et al.](https://x.y) say", ["as", "say"]),
    ],
)
def test_a_word_is_known_by_its_stem_and_code_is_none(text: str, unknown: list[str]) -> None:
    known = _WORDS | {"that", "and", "of"}
    assert [word for word in page_words.words_of(text) if not page_words.is_known(word, known)] == unknown
