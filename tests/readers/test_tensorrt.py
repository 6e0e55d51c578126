"""What trtexec exports of an engine: its files are one recording, its layers ops, its inferences iterations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.model.profile import Verdict
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.registry import files_below, format_of, read_timelines, recording_of
from tb_dlprof_plugin.readers.warm_up import warm_up_count

TACTIC = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x64x32_stage5_tensor16x8x16"
PROFILE = [
    {"count": 4},
    {"name": "/layer1/layer1.0/conv1/Conv + Relu", "timeMs": 2.0, "averageMs": 0.5, "percentage": 50},
    {"name": "pool", "timeMs": 1.0, "averageMs": 0.25, "percentage": 25},
]
LAYERS = {
    "Layers": [
        {
            "Name": "/layer1/layer1.0/conv1/Conv + Relu",
            "LayerType": "CaskConvolution",
            "Inputs": [
                {"Name": "x", "Dimensions": [8, 3, 32, 32], "Format/Datatype": "Channel major FP16 format"}
            ],
            "ParameterType": "Convolution",
            "Kernel": [3, 3],
            "OutMaps": 16,
            "Groups": 1,
            "Weights": {"Type": "Half", "Count": 432},
            "TacticName": TACTIC,
        },
        "pool",
    ]
}  # fmt: skip


def _time(at: float, compute: float) -> dict[str, float]:
    return {
        "startEnqMs": at - 0.1, "endEnqMs": at, "startH2dMs": at - 0.2, "endH2dMs": at, "startComputeMs": at,
        "endComputeMs": at + compute, "startD2hMs": at + compute, "endD2hMs": at + compute, "computeMs": compute,
    }  # fmt: skip


def _write(folder: Path, **parts: object) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in parts.items():
        (folder / f"net.{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder / f"net.{next(iter(parts))}.json"


def test_files_of_one_engine_are_one_recording_whichever_is_named(tmp_path: Path) -> None:
    _write(tmp_path, profile=PROFILE, timing=[_time(1, 1), _time(2.5, 1)], graph=LAYERS)
    assert files_below(tmp_path) == [tmp_path / "net.profile.json"]
    for name in ("profile", "timing", "graph"):
        assert recording_of(tmp_path / f"net.{name}.json") == tmp_path / "net.profile.json"
        assert format_of(tmp_path / f"net.{name}.json").run_name(tmp_path / f"net.{name}.json") == "net"


def test_layers_are_ops_with_their_averages_in_each_inference(tmp_path: Path) -> None:
    profile = analyze_ranks(_write(tmp_path, profile=PROFILE, timing=[_time(1, 1), _time(2.5, 1)], graph=LAYERS))[0]
    strings, ops, launches = profile.strings, profile.ops, profile.launches
    assert (profile.source.format, profile.iterations.found_by) == ("tensorrt", "inference")
    assert profile.iterations.start_ns.tolist() == [1_000_000, 2_500_000]
    kernels = [
        (strings[profile.kernels.name[kernel]], start, time)
        for kernel, start, time in zip(
            launches.kernel.tolist(), launches.start_ns.tolist(), launches.duration_ns.tolist(), strict=True
        )
    ]
    assert kernels == [
        ("Memcpy HtoD (Pinned -> Device)", 800_000, 200_000),
        (TACTIC, 1_000_000, 500_000),
        ("pool", 1_500_000, 250_000),
        ("Memcpy HtoD (Pinned -> Device)", 2_300_000, 200_000),
        (TACTIC, 2_500_000, 500_000),
        ("pool", 3_000_000, 250_000),
    ]
    row = next(row for row in range(len(ops)) if strings[ops.op_type[row]] == "Convolution")
    assert strings[ops.module[row]] == "layer1.0.conv1"
    assert profile.input_shapes[ops.shapes[row]] == ((8, 3, 32, 32), (16, 3, 3, 3))
    assert [dtype.label for dtype in profile.input_dtypes[ops.dtypes[row]]] == ["fp16", "fp16"]
    verdicts = dict(zip((strings[name] for name in profile.kernels.name), profile.kernels.tensor_core, strict=True))
    assert verdicts[TACTIC] == Verdict.YES
    assert [note.code for note in profile.notes] == ["layer_averages"]


def test_layers_that_add_up_to_more_than_the_inference_are_shown_in_proportion(tmp_path: Path) -> None:
    timeline = read_timelines(_write(tmp_path, profile=PROFILE, times=[_time(1, 0.3)]))[0]
    compute = timeline.device.start_ns >= 1_000_000
    assert timeline.device.duration_ns[compute].tolist() == [200_000, 100_000]
    assert "in proportion" in timeline.notes[0].text


def _measured(computing: list[float]) -> list[dict[str, float]]:
    times, at = [], 1.0
    for one in computing:
        times.append(_time(at, one))
        at += one + 0.25
    return times


def test_the_warm_up_is_left_out_and_named(tmp_path: Path) -> None:
    times = _measured([1.32] * 230 + [1.0] * 300)
    profile = analyze_ranks(_write(tmp_path, profile=PROFILE, times=times))[0]
    assert (len(profile.iterations), int(profile.iterations.number[0])) == (200, 230)
    assert float(np.median(profile.iterations.duration_ns)) == 1_250_000
    notes = {note.code: note for note in profile.notes}
    assert notes["warm_up"].text == "The first 230 inferences are the warm-up, and are left out: they take 32 % longer."
    assert (notes["warm_up"].count, notes["inferences_left_out"].count) == (230, 100)


def test_of_many_inferences_those_near_the_median_of_all_are_read(tmp_path: Path) -> None:
    times = _measured([1.01] * 200 + [1.0] * 400 + [1.02] * 100)
    profile = analyze_ranks(_write(tmp_path, profile=PROFILE, times=times))[0]
    first = int(profile.iterations.number[0])
    assert float(np.median(profile.iterations.duration_ns)) == 1_250_000
    assert "warm_up" not in {note.code for note in profile.notes}
    (note,) = (note for note in profile.notes if note.code == "inferences_left_out")
    assert f"200 that follow each other are read, from number {first} on" in note.text


@pytest.mark.parametrize(
    ("durations", "count"),
    [
        ([13] * 20 + [10] * 40, 20),
        ([13] * 5 + [10] * 40, 5),
        ([10] * 20 + [13] * 5 + [10] * 40, 0),
        ([13] * 50 + [10] * 40, 0),
        ([13] * 20 + [10] * 10, 0),
        ([10, 30, 10] * 20, 0),
    ],
    ids=["at first", "a few", "later", "more than half", "too few to tell", "single ones"],
)
def test_a_warm_up_is_what_takes_longer_at_first_alone(durations: list[int], count: int) -> None:
    assert warm_up_count(np.array(durations)) == count


@pytest.mark.parametrize("content", [PROFILE, PROFILE[1:]], ids=["with its count", "of layers alone"])
def test_a_profile_alone_is_one_inference_of_averages(tmp_path: Path, content: list[object]) -> None:
    profile = analyze_ranks(_write(tmp_path, profile=content))[0]
    assert profile.iterations.duration_ns.tolist() == [750_000]
    assert {"layer_averages", "no_times"} <= {note.code for note in profile.notes}


def test_layers_of_one_type_stay_apart_where_their_names_have_no_path(tmp_path: Path) -> None:
    names = ("Conv_0 + Relu_1", "Conv_3", "Reformatting CopyNode for Input Tensor 0 to Conv_3")
    layers = [{"name": name, "averageMs": 0.5, "percentage": 30} for name in names]
    profile = analyze_ranks(_write(tmp_path, profile=[{"count": 10}, *layers]))[0]
    strings, ops = profile.strings, profile.ops
    modules = {strings[name]: strings[module] for name, module in zip(ops.name, ops.module, strict=True)}
    assert [modules[name] for name in names] == ["Conv_0", "Conv_3", "Conv_3"]


def test_names_of_layers_may_hold_quotation_marks(tmp_path: Path) -> None:
    text = '[\n  { "count" : 1 }\n, { "name" : "a "b" c", "timeMs" : 1.5, "averageMs" : 1.5, "percentage" : 100 }\n]'
    timeline = read_timelines(_write(tmp_path, profile=text))[0]
    assert 'a "b" c' in timeline.strings
    assert timeline.device.duration_ns.tolist() == [1_500_000]


def test_layers_without_any_time_are_refused_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="--exportTimes"):
        read_timelines(_write(tmp_path, graph=LAYERS))


def test_all_files_of_an_engine_named_at_once_become_one_profile(tmp_path: Path) -> None:
    _write(tmp_path / "in", profile=PROFILE, timing=[_time(1, 1)], graph=LAYERS)
    files = [str(tmp_path / "in" / f"net.{name}.json") for name in ("profile", "timing", "graph")]
    result = CliRunner().invoke(app, ["import", *files, "--logdir", str(tmp_path / "runs")])
    assert result.exit_code == 0, result.output
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["net"]
    assert len(list((tmp_path / "runs" / "net").iterdir())) == 1
