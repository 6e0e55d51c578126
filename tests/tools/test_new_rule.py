"""The scaffold of a rule: what it writes is a rule whose tests pass."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from pathlib import Path

import pytest

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


def test_the_tests_of_a_new_rule_pass(scaffold, training, new_trace, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, test, snippet = scaffold.new_rule("layers", NAME).values()
    home = "tb_dlprof_plugin.advice.rules.layers"
    module = types.ModuleType(f"{home}.{NAME}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(importlib.import_module(home), NAME, module, raising=False)
    exec(compile(rule, f"{NAME}.py", "exec"), module.__dict__)
    tests: dict[str, object] = {}
    exec(compile(test, f"test_{NAME}.py", "exec"), tests)
    tests["test_ops_that_take_much_of_the_step_are_found"](training)
    tests["test_a_step_without_them_gives_a_reason"](new_trace)
    compile(snippet, f"{NAME}.py", "exec")


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
