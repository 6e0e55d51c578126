"""That types may be used first by several threads at once: what msgspec does then ends the process."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import tb_dlprof_plugin

PACKAGE = Path(tb_dlprof_plugin.__file__).parent
_THREADS = """
import sys, threading, msgspec
from tb_dlprof_plugin.model.decoders import json_decoder

sys.setswitchinterval(1e-6)
for n in range(60):
    inner = msgspec.defstruct(f"Inner{n}", [(f"a{i}", int | None, None) for i in range(5)])
    outer = msgspec.defstruct(f"Outer{n}", [(f"f{i}", list[inner], msgspec.field(default=())) for i in range(20)])
    together = threading.Barrier(4)
    threads = [
        threading.Thread(target=lambda: (together.wait(), json_decoder(outer).decode(b'{"f1": [{"a1": 3}]}')))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
"""Its fields are looked at first, by way of `json_decoder`; and `json_decoder` itself."""


_PREPARED = {"model/decoders.py": "Decoder"}
"""`json_decoder` itself."""


def test_threads_that_use_a_type_for_the_first_time_at_once_go_on() -> None:
    done = subprocess.run([sys.executable, "-c", _THREADS], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def _first_uses(tree: ast.AST) -> Iterator[str]:
    """Functions of msgspec that a function of ours calls with a type of its own."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda))
    for call in (node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        kind = next((ast.unparse(word.value) for word in call.keywords if word.arg == "type"), "")
        of_its_own = any(part not in {"list", "dict", "tuple", "str", "int", "Any", "msgspec", "Raw"} for part in
                         "".join(c if c.isalnum() else " " for c in kind).split())  # fmt: skip
        if name.startswith("msgspec.") and (name.endswith(("Decoder", "convert")) or of_its_own):
            yield name.rpartition(".")[2]


def test_no_function_that_threads_may_call_uses_a_type_first() -> None:
    found = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in PACKAGE.rglob("*.py")
        # Processes with one thread.
        if not any(path.is_relative_to(PACKAGE / name) for name in ("capture", "pytest_plugin"))
        for name in _first_uses(ast.parse(path.read_text()))
    }
    assert found == set(_PREPARED.items())
