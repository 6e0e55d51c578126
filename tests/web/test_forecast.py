"""The route of the forecast: the view's page, and in one sentence why there is none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tb_dlprof_plugin.pages.forecast import forecast_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef


def test_the_page_is_the_views(server: Any, profiles: dict[str, Any]) -> None:
    status, page = server.page("forecast", run="fp32", precision="bf16")
    assert status == 200
    expected = forecast_page(ProfileView(profiles["fp32"]), RunRef("fp32", "s1", 0, 11), "bf16")
    assert page == msgspec.json.decode(msgspec.json.encode(expected))
    assert {"measured_step_ms", "predicted_step_ms", "low_ms", "high_ms", "speedup", "limited_by"} <= set(page)


def test_another_gpu_and_cycle_are_asked_for(server: Any, profiles: dict[str, Any]) -> None:
    gpu = "NVIDIA A100-SXM4-80GB"
    status, page = server.page("forecast", run="fp32", cycle=3, precision="tf32", gpu=gpu)
    expected = forecast_page(ProfileView(profiles["fp32"]), RunRef("fp32", "s1", 0, 3), "tf32", gpu=gpu)
    assert (status, page["ref"]["cycle"], page["gpu"]) == (200, 3, gpu)
    assert page["predicted_step_ms"] == expected.predicted_step_ms
    # Empty parameters are those of the run.
    assert server.page("forecast", run="fp32", precision="bf16", gpu="", batch_size="")[1]["gpu"] == "NVIDIA H200"


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({"run": "fp32"}, 400, "precision"),
        ({"run": "fp32", "precision": "fp8"}, 400, "'precision' must be fp32, tf32, fp16 or bf16, not 'fp8'"),
        ({"run": "fp32", "precision": "bf16", "batch_size": "x"}, 400, "must be a whole number, not 'x'"),
        ({"run": "fp32", "precision": "bf16", "batch_size": "-1"}, 400, "must be a whole number, not '-1'"),
        ({"run": "fp32", "precision": "bf16", "batch_size": "9" * 30}, 400, "must be a whole number"),
        ({"run": "fp32", "precision": "bf16", "batch_size": 0}, 404, "a batch has at least one sample"),
        ({"run": "fp32", "precision": "bf16", "batch_size": 8}, 404, "own batch size was not recorded"),
        ({"run": "fp32", "precision": "bf16", "gpu": "<script>"}, 404, "peak rates of '<script>' are not known"),
        ({"run": "fp16", "precision": "bf16"}, 404, "Run 'fp16': the run computed in "),
        ({"run": "missing", "precision": "bf16"}, 404, "missing"),
    ],
)
def test_a_request_without_an_answer_is_refused_in_one_sentence(
    server: Any, query: dict[str, Any], status: int, words: str
) -> None:
    found, answer = server.page("forecast", **query)
    assert (found, list(answer)) == (status, ["error"])
    assert words in answer["error"]
