"""A wrong argument of the hook is a warning, and the training goes on."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin import profile, read_profiles, trace_handler  # noqa: E402
from tb_dlprof_plugin.capture.warn import TbDlprofWarning  # noqa: E402


class Truthless:
    """As an array of several elements: neither true nor false."""

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")

    def __repr__(self) -> str:
        return "Truthless()"


WRONG: dict[str, Any] = {
    "worker_name": 5, "use_gzip": Truthless(), "subdirectory": 5, "batch_size": "four", "run_name": b"run", "rank": -1,
    "session": 5, "keep_trace": Truthless(), "pytorch_views": Truthless(), "module_ranges": Truthless(),
    "exit_wait_s": "long",
}  # fmt: skip
WRONG_FOR_TORCH: dict[str, Any] = {"activities": 5, "schedule": 5, "with_stacks": True}


def said(call: Any) -> tuple[Any, list[str]]:
    """What a call returns, and its warnings of ours."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    return found, [str(one.message) for one in caught if issubclass(one.category, TbDlprofWarning)]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_left_out(tmp_path: Path, name: str) -> None:
    hooks = (trace_handler, profile) if name != "use_python_export" else (trace_handler,)
    for hook in hooks:
        made, lines = said(lambda hook=hook: hook(tmp_path, **{name: WRONG[name]}))
        assert len(lines) == 1
        assert lines[0].startswith(f"{name}={WRONG[name]!r} is left out: it must be ")
        (made.close if hook is trace_handler else made.stop)()


def test_all_wrong_arguments_at_once_leave_a_profile(tmp_path: Path, training: Any) -> None:
    model, step = training

    def train() -> list[float]:
        losses = []
        with profile(tmp_path, model, schedule=(0, 1, 1, 1), wait=True, **WRONG) as prof:
            for _ in range(3):
                losses.append(step())
                prof.step()
        return losses

    losses, lines = said(train)
    assert (len(losses), len(lines)) == (3, len(WRONG))
    assert len(read_profiles(tmp_path)) == 1


@pytest.mark.parametrize("logdir", [None, 5, "", object()])
def test_without_a_path_nothing_is_recorded(training: Any, logdir: Any, kit: Any) -> None:
    model, step = training

    def train() -> list[float]:
        with profile(logdir, model, schedule=(0, 1, 1, 1)) as prof:
            losses = [step() for _ in range(3) if prof.step() is None]
            assert not kit.is_observed(model)
        return losses

    losses, lines = said(train)
    assert len(losses) == 3
    assert lines == [f"Nothing is recorded: logdir must be a path, not {logdir!r}."]
    handler, lines = said(lambda: trace_handler(logdir, model=model))
    assert lines == [f"Nothing is recorded: logdir must be a path, not {logdir!r}."]
    assert not kit.is_observed(model)
    with torch.profiler.profile(on_trace_ready=handler):
        step()


def test_a_path_in_bytes_is_a_path(tmp_path: Path) -> None:
    handler, lines = said(lambda: trace_handler(str(tmp_path / "run").encode()))
    assert (handler.logdir, lines) == (str(tmp_path / "run"), [])
    handler.close()


@pytest.mark.parametrize("name", WRONG_FOR_TORCH)
def test_what_torch_refuses_is_one_warning(tmp_path: Path, training: Any, name: str) -> None:
    def train() -> float:
        with profile(tmp_path, **{name: WRONG_FOR_TORCH[name]}) as prof:
            loss = training[1]()
            prof.step()
            prof.handler.goes_on = lambda *_: False
        prof.wait(60)
        return loss

    _, lines = said(train)
    assert len(lines) == 1 + (name == "schedule" and "No profile" in lines[-1])
