"""The demo's notebooks are valid ones without outputs, and say what they must; `tables.ipynb` runs top to bottom.

`colab.ipynb` is run in JupyterLab by tests/e2e/test_notebook.py.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

import tb_dlprof_plugin

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "demo"
COLAB, TABLES = "colab.ipynb", "tables.ipynb"


def _cells(name: str) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads((DEMO / name).read_text())["cells"]
    return cells


def _code(name: str) -> str:
    return "\n".join("".join(cell["source"]) for cell in _cells(name) if cell["cell_type"] == "code")


@pytest.mark.parametrize("name", [COLAB, TABLES])
def test_it_is_a_notebook_of_format_4_without_outputs(name: str) -> None:
    notebook = json.loads((DEMO / name).read_text())
    assert notebook["nbformat"] == 4
    # By the schema of nbformat, whose import takes seconds: it compiles grammars of formats that no notebook has.
    package = importlib.util.find_spec("nbformat")
    assert package is not None
    schema = Path(package.origin or "").parent / "v4" / f"nbformat.v4.{notebook['nbformat_minor']}.schema.json"
    fastjsonschema.compile(json.loads(schema.read_text()))(notebook)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


def test_the_one_for_colab_installs_the_plugin_and_opens_tensorboard() -> None:
    code = _code(COLAB)
    assert "%pip install" in code
    assert "%load_ext tensorboard" in code
    assert '%tensorboard --logdir "{LOGDIR}"' in code


def test_the_one_for_colab_says_that_an_older_server_must_end_first() -> None:
    text = " ".join("".join(cell["source"]) for cell in _cells(COLAB) if cell["cell_type"] == "markdown")
    assert "end it first" in text


@pytest.mark.slow
@pytest.mark.long
def test_the_one_of_tables_runs_over_the_recorded_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    for name, value in {"PYTHONPATH": ROOT, "IPYTHONDIR": tmp_path}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("TB_DLPROF_NOTEBOOK_LOGDIR", raising=False)
    notebook = nbformat.read(DEMO / TABLES, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(DEMO)}}).execute()
    said = "".join(
        output.get("text", "") + "".join(output.get("data", {}))
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    runs = {run.name: run for run in tb_dlprof_plugin.read_profiles(DEMO / "recorded")}
    fp32, amp = runs["resnet50/fp32"], runs["resnet50/amp-fp16"]
    assert fp32.compare(amp).headline in said
    assert fp32.predict("fp16").headline in said
    assert "image/png" in said
