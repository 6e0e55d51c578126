"""Whatever a trace says, pages, rules, reports and commands show it or say in one sentence why not."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.hostile_traces import VALUES, documents, faults, first_steps, mutated
from support.marks import long, short_of

Event = dict[str, Any]
_LONGEST_S = 20
"""Of the processor, for all that can be asked about one trace of 150 events."""


_WITH_STEPS = ("cuda_training", "cpu_training", "hook_amp_bf16", "torch_1_9_cpu_memory", "nccl_rank0", "data_parallel")


def _faults(document: Any, folder: Path, with_commands: bool = True) -> list[str]:
    path = folder / "trace.json"
    path.write_text(json.dumps(document))
    return list(faults(path, with_commands))


def _campaign(seed: int, count: int, folder: Path, only: tuple[str, ...] = ()) -> None:
    source = random.Random(seed)
    traces = [*documents(20, only), *first_steps(150, _WITH_STEPS)]
    for number in range(count):
        document, with_commands = mutated(source.choice(traces), source), number % 10 == 0
        begin = time.process_time()
        assert _faults(document, folder, with_commands) == [], f"seed {seed}, trace {number}"
        assert time.process_time() - begin < _LONGEST_S, f"seed {seed}, trace {number}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_everything_is_shown_or_refused_of_a_mutated_trace(tmp_path: Path, seed: int) -> None:
    _campaign(seed, 5, tmp_path, _WITH_STEPS)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 13))
def test_everything_is_shown_or_refused_of_a_thousand_mutated_traces(tmp_path: Path, seed: int) -> None:
    _campaign(seed, 100, tmp_path)


@pytest.fixture(scope="module")
def training_document(training: Callable[..., Any]) -> Any:
    document = training("fp16", steps=2).document()
    return json.loads(json.dumps(document))


def _changed(document: Any, change: Callable[[list[Event]], Any]) -> Any:
    result = json.loads(json.dumps(document))
    result["traceEvents"] = change(result["traceEvents"]) or result["traceEvents"]
    return result


@pytest.mark.slow
@pytest.mark.parametrize(
    "key",
    short_of(
        ["Input Dims", "Input type", "Sequence number", "Fwd thread id", "correlation", "device", "stream", "grid",
         "block", "registers per thread", "shared memory", "est. achieved occupancy %", "bytes"],
        {"Input type", "correlation", "grid"},
    ),
)  # fmt: skip
def test_a_field_that_is_not_what_it_should_be_is_as_if_absent(
    training_document: Any, tmp_path: Path, key: str
) -> None:
    having = [number for number, one in enumerate(training_document["traceEvents"]) if key in one.get("args", {})]
    assert having
    for value in random.Random(key).sample(VALUES, 2):

        def change(events: list[Event], value: Any = value) -> None:
            for number in having:
                events[number]["args"][key] = value

        assert _faults(_changed(training_document, change), tmp_path, with_commands=False) == [], f"{key}: {value!r}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [-0.5, *map(long, (7, "x", [7, 7], [[7]], [{"a": 1}], {"a": 1}, [[None]])), [[-(2**70)]],
     json.loads("[" * 900 + "]" * 900)],
)  # fmt: skip
@pytest.mark.parametrize("key", ["Input Dims", long("Input type")])
def test_inputs_of_one_op_in_no_known_form_leave_the_rest_of_the_trace(
    training_document: Any, tmp_path: Path, key: str, value: Any
) -> None:
    def change(events: list[Event]) -> None:
        next(one for one in events if key in one.get("args", {}))["args"][key] = value

    assert _faults(_changed(training_document, change), tmp_path, with_commands=False) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "kept",
    [{"kernel"}, *map(long, ({"kernel", "gpu_memcpy"}, {"kernel", "cuda_runtime"}, {"cpu_op"})), {"cpu_op", "kernel"}],
)
def test_a_trace_of_some_kinds_of_events_alone_is_shown(training_document: Any, tmp_path: Path, kept: set[str]) -> None:
    changed = _changed(training_document, lambda events: [one for one in events if one.get("cat") in kept])
    assert _faults(changed, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("factor", [*map(long, (0, 1.9, 1e3)), 1e9])
def test_durations_that_overlap_or_last_for_hours_give_no_share_outside_of_0_to_100(
    training_document: Any, tmp_path: Path, factor: float
) -> None:
    for step in (3, 7):

        def change(events: list[Event], step: int = step) -> None:
            for one in events[::step]:
                one["dur"] *= factor

        assert _faults(_changed(training_document, change), tmp_path) == []
