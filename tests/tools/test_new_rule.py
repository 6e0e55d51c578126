"""The scaffold of a rule: what it writes is a rule whose cases pass."""

from __future__ import annotations

import importlib.util
import types
from pathlib import Path
from typing import Any

import pytest
from advice.test_cases import answers

from tb_dlprof_plugin.advice import engine
from tb_dlprof_plugin.advice.engine import Implemented

ROOT = Path(__file__).resolve().parents[2]
NAME = "scaffolded_for_a_test"


@pytest.fixture(scope="module")
def scaffold() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("new_rule", ROOT / "tools" / "new_rule.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_cases_of_a_new_rule_pass(scaffold, new_trace, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, cases = scaffold.new_rule("layers", NAME).values()
    module = types.ModuleType(f"tb_dlprof_plugin.advice.rules.layers.{NAME}")
    exec(compile(rule, f"{NAME}.py", "exec"), module.__dict__)
    made = Implemented(module.RULE, module.check, None)
    monkeypatch.setattr(engine, "all_rules", lambda: (made,))
    written: dict[str, Any] = {}
    exec(compile(cases, f"{NAME}.py", "exec"), written)
    assert {case.outcome for case in written["CASES"]} == {"fired", "silent"}
    for case in written["CASES"]:
        answers(new_trace(), NAME, case)


@pytest.mark.parametrize(
    ("topic", "name", "sentence"),
    [
        ("kitchen", NAME, "there is no topic 'kitchen'; there are precision, data_loading"),
        ("layers", "Slow-Softmax", "small letters and underscores, not 'Slow-Softmax'"),
        ("memory", "channels_last", "there is a module 'channels_last' in advice/rules already"),
    ],
)
def test_what_cannot_be_a_rule_is_refused(scaffold, topic: str, name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        scaffold.new_rule(topic, name)
