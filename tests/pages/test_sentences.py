"""Sentences on pages have at most 20 words: those of the rules, of the definitions, and those about recorded runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import definition_files
import msgspec
import pytest
from check_words import long_sentences, page_sentences
from support.all_answers import REF
from support.recorded_runs import demo_run

from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.web.routes import PAGES

NAMES = {
    "ref",
    "range",
    "name",
    "kernel",
    "code",
    "example",
    "command",
    "how_to_record",
    "title",
    "url",
    "rows",
    "names",
}
"""Fields with names and code, not sentences."""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key not in NAMES:
                yield from _texts(one)


@pytest.mark.parametrize("field", ["looks_for", "why", "fix", "ignore_when", "confirm"])
def test_a_rule_is_explained_in_short_sentences(field: str) -> None:
    found = {one.rule.id: long_sentences(getattr(one.rule, field)) for one in all_rules()}
    assert {rule: sentences for rule, sentences in found.items() if sentences} == {}


def test_a_definition_is_short_sentences() -> None:
    found = {key: long_sentences(text) for key, text in definition_files.definitions().items()}
    assert {key: sentences for key, sentences in found.items() if sentences} == {}


@pytest.mark.parametrize("run", ["resnet50/fp32", "lenet/amp-fp16"])
def test_what_is_said_of_a_recorded_run_is_short_sentences(run: str) -> None:
    view = demo_run(run).view
    found = {
        name: sorted({s for text in _texts(msgspec.to_builtins(page)) for s in long_sentences(text) if "<" not in s})
        for name, page in ((name, route.load_page()(view, REF, view.selection())) for name, route in PAGES.items())
    }
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


def test_a_sentence_ends_at_a_colon_and_figures_are_no_words() -> None:
    words = "word " * 15
    assert long_sentences(f"{words}1 2 3 4 5 6: {words}.") == []
    assert long_sentences(f"{words}, and {words}.") == [f"{words}, and {words}."]
    assert len(list(page_sentences(f"// {words}{words}\n<p>{words}{words}.</p>"))) == 1
