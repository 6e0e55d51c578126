"""``tb-dlprof import`` of trtexec's JSON with an Nsight Systems database of the same engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.nsys_database import NsysDatabase
from typer.testing import CliRunner

from tb_dlprof_plugin import read_profiles
from tb_dlprof_plugin.cli.main import app

LAYER = "/conv1/Conv + /relu/Relu"
LAYERS = {
    "Layers": [
        {
            "Name": LAYER,
            "LayerType": "CaskConvolution",
            "Inputs": [{"Name": "x", "Dimensions": [8, 64, 56, 56], "Format/Datatype": "Channel major FP16 format"}],
        },
        {"Name": "folded away", "LayerType": "Constant"},
    ]
}


def write_database(folder: Path) -> Path:
    database = NsysDatabase(folder / "net.sqlite")
    database.domain("TensorRT", 2)
    for at in (0, 100, 200):
        database.range(None, at, 90, textId=database.text("ExecutionContext::enqueue"), domainId=2)
        database.range(None, at + 5, 20, textId=database.text(LAYER), domainId=2)
        database.launch("sm80_xmma_fprop_f16f16", at + 10, at + 50, 20)
    return database.write()


@pytest.mark.parametrize("name", [LAYER, "of another engine"])
def test_layers_get_types_and_shapes_where_the_engine_is_the_same(tmp_path: Path, name: str) -> None:
    LAYERS["Layers"][0]["Name"] = name
    (tmp_path / "net.layers.json").write_text(json.dumps(LAYERS))
    files = [str(tmp_path / "net.layers.json"), str(write_database(tmp_path))]
    done = CliRunner().invoke(app, ["import", *files, "--logdir", str(tmp_path / "runs"), "--run", "net"])
    assert done.exit_code == 0, done.output
    (stored,) = read_profiles(tmp_path / "runs" / "net")
    profile = stored.profile
    types = {profile.strings[one] for one in profile.ops.op_type.tolist()}
    shapes = [profile.shapes_of(row) for row in range(len(profile.ops))]
    said = {note.code: note.text for note in profile.notes}
    assert len(profile.launches) == 3
    if name == LAYER:
        assert "CaskConvolution" in types
        assert ((8, 64, 56, 56),) in shapes
        assert said["layers_joined"].startswith("Types, shapes and data types of 1 layers")
    else:
        assert "CaskConvolution" not in types
        assert "is it another engine?" in said["layers_not_found"]
