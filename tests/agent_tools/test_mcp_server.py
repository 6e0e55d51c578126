"""The server by the SDK's own client: in memory, and as an agent's program starts it."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

mcp = pytest.importorskip("mcp")

from tb_dlprof_plugin.agent_tools.mcp_server import make_server  # noqa: E402
from tb_dlprof_plugin.agent_tools.measure import Measure  # noqa: E402

pytestmark = pytest.mark.slow
RECORDED = Path(__file__).parents[2] / "demo" / "recorded"
RUN = "lenet/fp32"
READING = ["list_runs", "summary", "advise", "table", "explain", "compare", "what_if", "out_of_memory"]
MOST_OF_TOOLS = 17_000
"""Characters that all tools cost a conversation, names, arguments and results together."""


def _with(server: Any, ask: Callable[[Any], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with mcp.Client(server) as client:
            return await ask(client)

    # The tests of the page leave a loop running in the main thread.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, run()).result()


def test_tools_say_that_they_only_read_and_cost_few_characters() -> None:
    tools = _with(make_server(RECORDED), lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == READING
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert all(tool.output_schema for tool in tools)
    assert len(json.dumps([tool.model_dump(mode="json", exclude_none=True) for tool in tools])) < MOST_OF_TOOLS


def test_an_answer_is_structured_and_a_refusal_keeps_its_sentence() -> None:
    server = make_server(RECORDED)
    found = _with(server, lambda client: client.call_tool("summary", {"run": RUN}))
    assert found.structured_content["figures"][0]["name"] == "step"
    assert json.loads(found.content[0].text) == found.structured_content
    refused = _with(server, lambda client: client.call_tool("summary", {"run": "lenet/fp23"}))
    assert refused.is_error
    assert "did you mean lenet/fp32?" in refused.content[0].text


def test_the_command_serves_over_standard_input_and_output() -> None:
    command = ["-m", "tb_dlprof_plugin.cli.main", "mcp", "--logdir", str(RECORDED)]
    server = mcp.StdioServerParameters(command=sys.executable, args=command)
    found = _with(server, lambda client: client.call_tool("advise", {"run": RUN, "limit": 1}))
    assert found.structured_content["shown"] == 1


@pytest.mark.long
def test_measure_is_absent_without_being_allowed_and_runs_try_where_it_is(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import torch
            model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])
            optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
            for _ in range(3000):
                loss = model(torch.randn(8, 64)).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            """
        )
    )
    monkeypatch.chdir(tmp_path)
    measure = Measure()
    server = make_server(RECORDED, measure)

    async def ask(client: Any) -> tuple[Any, Any, Any]:
        asked = {"command": "train.py", "remedies": ["foreach_optimizer"], "budget_s": 60}
        started = await client.call_tool("measure", asked)
        second = await client.call_tool("measure", asked)
        found = started
        while "runs. Ask again" in found.content[0].text:
            await asyncio.sleep(1)
            found = await client.call_tool("measure", {"job": "job-1"})
        return started, second, found

    try:
        started, second, found = _with(server, ask)
    finally:
        measure.end()
    assert not started.is_error
    assert "they take turns" in second.content[0].text
    assert not found.is_error, found.content[0].text
    answer = found.structured_content
    assert answer["answer"].startswith("job-1 ended. ")
    figures = {figure["name"]: figure["value"] for figure in answer["figures"]}
    assert figures.keys() >= {"foreach_optimizer"}
    assert {name for name, value in figures.items() if value is None} <= {one["what"] for one in answer["cannot_say"]}
