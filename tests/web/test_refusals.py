"""A request that cannot be answered gets one sentence that names what is wrong, whatever the route."""

from __future__ import annotations

from typing import Any

import pytest

ONE_RUN = {"run": "fp32"}
BF16 = ONE_RUN | {"precision": "bf16"}


@pytest.mark.parametrize(
    ("route", "query", "status", "words"),
    [
        ("ops", {}, 400, "lacks the parameter 'run'"),
        ("ops", ONE_RUN | {"first": "x"}, 400, "'first' must be a whole number"),
        ("ops", ONE_RUN | {"first": 2, "last": 1}, 400, "which has 0 to 2"),
        ("ops", ONE_RUN | {"last": 3}, 400, "which has 0 to 2"),
        ("ops", {"run": "missing"}, 404, "Run 'missing' holds no profile"),
        ("compare", {"a_run": "fp3", "b_run": "fp16"}, 404, "Run 'fp3' holds no profile; did you mean fp32?"),
        ("ops", {"run": "scalars"}, 404, "Run 'scalars' holds no profile"),
        ("ops", ONE_RUN | {"session": "s9"}, 404, "no session 's9'"),
        ("ops", ONE_RUN | {"rank": 4}, 404, "no rank 4"),
        ("ops", ONE_RUN | {"cycle": 99}, 404, "no cycle 99"),
        ("ops", {"run": "damaged"}, 422, "Run 'damaged' cannot be shown"),
        ("compare", {"a_run": "fp32", "b_run": "damaged"}, 422, "Run 'damaged' cannot be shown"),
        ("compare_op", {"a_run": "fp32", "b_run": "fp16", "id": "0"}, 404, "have no op '0' to compare"),
        ("work_detail", ONE_RUN | {"kind": "op", "id": "<script>"}, 404, "no op '<script>'"),
        ("related", ONE_RUN | {"kind": "op", "id": "gone"}, 404, "Run 'fp32' has no op 'gone'."),
        ("related", ONE_RUN | {"kind": "thing", "id": "x"}, 400, "'kind' must be op, op_type, kernel or module, not"),
        ("report", ONE_RUN | {"name": "none"}, 404, "There is no report 'none'; there is summary, detail"),
        ("memory", ONE_RUN | {"device": "0"}, 404, "Run 'fp32' holds no memory of device '0'."),
        ("timeline", ONE_RUN | {"iteration": 9}, 400, "which has 0 to 2"),
        ("timeline_events", ONE_RUN | {"chunk": 0}, 404, "the timeline of this iteration has no part 0."),
        ("timeline_event", ONE_RUN | {"id": "g1 or 1"}, 404, "the timeline of this iteration has no event 'g1 or 1'."),
        *(
            (route, ONE_RUN | {"name": "kernel", "key_node": key_node}, status, words)
            for route in ("overview", "report", "advice")
            for key_node, status, words in (
                ("nothing", 404, "Run 'fp32': there is no op named 'nothing'; called once a step are, first to last"),
                ("x" * 4001, 400, "'key_node' has 4001 characters"),
            )
        ),
        ("forecast", ONE_RUN | {"precision": "fp8"}, 400, "'precision' must be fp32, tf32, fp16 or bf16, not 'fp8'"),
        ("forecast", BF16 | {"batch_size": 0}, 404, "a batch has at least one sample"),
        ("forecast", BF16 | {"batch_size": 8}, 404, "own batch size was not recorded"),
        ("forecast", BF16 | {"gpu": "<script>"}, 404, "peak rates of '<script>' are not known"),
        ("forecast", BF16 | {"run": "fp16"}, 404, "Run 'fp16': the run computed in "),
        ("plan", ONE_RUN | {"shard": "rows"}, 400, "shard"),
        ("plan", ONE_RUN | {"optimizer": "<b>"}, 400, "optimizer"),
        ("plan", ONE_RUN | {"layers": "blocks"}, 400, "layers"),
        ("plan", ONE_RUN | {"memory_bytes": "24"}, 400, "memory_bytes"),
        ("plan", ONE_RUN | {"set_to_none": "1"}, 400, "set_to_none"),
        ("many_runs", {"base": "missing"}, 404, "no run 'missing' to be the base"),
        ("sweep", {"over": "<script>"}, 400, "no fact '<script>'"),
        ("sweep", {"measure": "beauty"}, 400, "no measure 'beauty'"),
        ("sweep", {"measure": "share"}, 400, "name one"),
        ("sweep", {"measure": "share", "op": "conv2d", "direction": "up"}, 400, "no direction 'up'"),
        ("sweep", {"measure": "share", "kernel_group": "wino"}, 400, "no kernel group 'wino'"),
        ("sweep", {"measure": "memory", "kernel_group": "gemm"}, 400, "needs the measure 'share'"),
    ],
)
def test_an_error_is_one_sentence(server: Any, route: str, query: dict[str, Any], status: int, words: str) -> None:
    found, answer = server.page(route, **query)
    while found == 200 and answer["done"] < answer["total"]:  # runs are still read
        found, answer = server.page(route, **query)
    assert (found, list(answer)) == (status, ["error"])
    assert words in answer["error"]
    assert answer["error"].endswith((".", "?", "…"))
    assert "\n" not in answer["error"]
