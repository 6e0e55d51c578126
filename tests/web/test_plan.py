"""The route of the plan, where a configuration cannot be planned: a page with the reason, whose controls stay."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"batch_size": 0}, "a batch has at least one sample"),
        ({"gpu": "<script>"}, "the memory of '<script>' is not known"),
        ({"shard": "tp"}, "shared over two GPUs at least"),
    ],
)
def test_a_configuration_that_cannot_be_planned_has_a_page_with_the_reason(
    server: Any, query: dict[str, Any], words: str
) -> None:
    status, page = server.page("plan", run="fp32", **query)
    assert status == 200
    assert page["headline"].startswith("Not planned: ")
    assert words in page["headline"]
    assert [page[key] for key in ("peak_allocated_mb", "step_ms", "largest_batch", "fits")] == [None] * 4
    assert page["figures"] == page["batches"] == []
    assert words in page["unknown"]["step_ms"]
