"""The committed databases of Nsight Systems and nvprof: what the readers make of each stays as it is."""

from __future__ import annotations

import ast
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from support.snapshots import snapshots

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.model.profile import KernelKind, Role
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers import registry

TRACES = Path(__file__).resolve().parents[1] / "traces"
RECORDINGS = [
    one for kind in ("nsys", "nvprof") for one in sorted((TRACES / kind).glob("*.gz")) if "dict" not in one.name
]


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda one: one.name)
def test_a_database_is_read_as_before(path: Path) -> None:
    assert path.parent.name == registry.format_of(path).NAME
    assert snapshots(path) == json.loads((path.parent / "expected.json").read_text())[path.name]


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda one: one.name)
def test_reading_changes_neither_the_file_nor_its_directory(path: Path) -> None:
    before = (path.read_bytes(), sorted(path.parent.iterdir()))
    snapshots(path)
    assert (path.read_bytes(), sorted(path.parent.iterdir())) == before


def test_forward_ops_have_the_kernels_and_times_that_pyprof_gave_them() -> None:
    # GIVEN what PyProf made of the same database: a dict for each kernel
    text = gzip.decompress((TRACES / "nvprof/pyprof_markers.net.dict.gz").read_bytes()).decode()
    theirs: Counter[tuple[str, str]] = Counter()
    for kernel in map(ast.literal_eval, text.splitlines()):
        op = kernel["op"][0].strip("_") if kernel["op"] else ""
        theirs[op if kernel["dir"] == "fprop" else "", kernel["dir"]] += kernel["kDuration"]
    # WHEN it is read
    (profile,) = analyze_ranks(TRACES / "nvprof/pyprof_markers.nvprof.gz")
    view, ours = ProfileView(profile), Counter()
    for row, (kernel, time) in enumerate(
        zip(profile.launches.kernel.tolist(), profile.launches.duration_ns.tolist(), strict=True)
    ):
        if profile.kernels.kind[kernel] == KernelKind.KERNEL:
            group = view.launch_group[row]
            backward = view.groups.role[group] == Role.BACKWARD
            op = profile.strings[view.groups.op_type[group]].strip("_")
            ours["" if backward else op, "bprop" if backward else "fprop"] += time
    # THEN directions, and in the forward pass ops, agree to the nanosecond
    assert ours == theirs
