"""The ten questions of the page are answered through the tools of the MCP server, with at most three calls each."""

from __future__ import annotations

import csv
import re
from typing import Any

import msgspec
import pytest
from browser import agent_tasks

from tb_dlprof_plugin.agent_tools.tools import Tools

EXPECTED = {
    "backward_layer": r"layer2\.0\.conv1/conv2d: [\d.]+ % of the GPU time, backward",
    "idle_gpu": r"The CPU sets the pace; .* CPU launching work \d+ %, Python between ops \d+ %",
    "amp_worth_it": r"speedup 0\.\d+ times \([\d.]+ to [\d.]+\).*the CPU sets the pace",
    "slow_kernel": r"wgrad_alg0_engine.*in use no.*TF32 is switched off",
    "changed": r"speedup 3\.\d+ times \([\d.]+ to [\d.]+\)\. Other kernels: -\d+ ms a step \(-",
    "trust": r"Recording: poor\..* it varies\. Record more steps",
    "gain": r"saving of amp_not_used [\d.]+ ms a step \([\d.]+ to [\d.]+\)\.(?s:.*)\n    with torch\.autocast\(",
    "op_type": r"conv2d: \d+ % of the GPU time; .* runs [\d.]+ ms after the start of iteration 19",
    "csv": r"layer2\.0\.conv1/conv2d,backward,\d+",
    "fastest": r"ResNet50: resnet50/amp-fp16, [\d.]+ ms a step\n",
}
"""As `browser.user_tasks` has it of the page."""


@pytest.fixture(scope="module")
def tools() -> Tools:
    return Tools(agent_tasks.RECORDED)


@pytest.mark.parametrize("name", agent_tasks.TASKS)
def test_a_task_takes_at_most_three_calls(tools: Tools, name: str) -> None:
    calls: list[str] = []

    def ask(tool: str, **arguments: Any) -> dict[str, Any]:
        calls.append(tool)
        return msgspec.json.decode(msgspec.json.encode(getattr(tools, tool)(**arguments)))

    answer = agent_tasks.TASKS[name](ask)
    assert len(calls) <= agent_tasks.MOST_CALLS
    assert re.search(EXPECTED[name], answer), answer
    if name == "csv":
        rows = list(csv.DictReader(answer.splitlines()))
        assert len(rows) > 300
