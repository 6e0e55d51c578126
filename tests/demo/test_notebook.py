"""The notebook is a valid notebook without outputs; tests/e2e/test_notebook.py runs it in JupyterLab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "demo" / "colab.ipynb"


def _cells() -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text())["cells"]
    return cells


def _code() -> list[str]:
    return ["".join(cell["source"]) for cell in _cells() if cell["cell_type"] == "code"]


def test_it_has_the_structure_of_notebook_format_4() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4
    assert notebook["nbformat_minor"] >= 5
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("markdown", "code")
        assert isinstance(cell["metadata"], dict)
        assert all(isinstance(line, str) for line in cell["source"])
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


def test_it_installs_the_plugin_and_opens_tensorboard() -> None:
    code = "\n".join(_code())
    assert "%pip install" in code
    assert "%load_ext tensorboard" in code
    assert '%tensorboard --logdir "{LOGDIR}"' in code


def test_it_says_that_an_older_server_must_end_first() -> None:
    text = " ".join("".join(cell["source"]) for cell in _cells() if cell["cell_type"] == "markdown")
    assert "end it first" in text
