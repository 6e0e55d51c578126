"""Where in the user's files a call that waits for the GPU or copies comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.readers.kineto.python_frames import place_of
from tb_dlprof_plugin.store.codec import decode, encode

TRACES = Path(__file__).resolve().parents[1] / "traces"


def _places(profile: Profile) -> list[tuple[str, str]]:
    """Name and place of each call that has one."""
    places, calls, strings = profile.call_places, profile.calls, profile.strings
    names = [strings[i] for i in profile.ops.name[calls.op[places.call]].tolist()]
    return list(zip(names, (strings[i] for i in places.place.tolist()), strict=True))


def _frame(trace, name: str, start: float, dur: float, tid: int = 1) -> None:
    trace.event(name, "python_function", start, dur, tid=tid)


@pytest.mark.parametrize(
    ("frame", "place"),
    [
        ("train.py(12): step", "train.py:12 step"),
        ("/home/me/torch/train (2).py(7): <module>", "/home/me/torch/train (2).py:7 <module>"),
        ("transformers/trainer.py(3700): training_step", "transformers/trainer.py:3700 training_step"),
        ("src\\loop.py(4): run", "src/loop.py:4 run"),
        ("torch/_tensor.py(12): item", ""),
        ("/opt/lib/python3.12/site-packages/torch/nn/functional.py(3): linear", ""),
        ("tb_dlprof_plugin/capture/modules.py(9): __call__", ""),
        ("contextlib.py(81): inner", ""),
        ("<frozen os>(680): __getitem__", ""),
        ("<built-in method item of Tensor object at 0x7f>", ""),
        ("nn.Module: Linear_0", ""),
    ],
)
def test_a_frame_names_a_place_in_the_users_files_or_none(frame: str, place: str) -> None:
    assert place_of(frame) == place


def test_a_waiting_call_gets_the_innermost_function_of_the_user(new_trace) -> None:
    trace = new_trace()
    _frame(trace, "train.py(40): <module>", 0, 100)
    _frame(trace, "train.py(12): step", 10, 60)
    _frame(trace, "torch/_tensor.py(1): item", 20, 30)
    _frame(trace, "train.py(12): step", 10, 90, tid=7)
    trace.op("aten::item", 21, 20)
    trace.runtime(22, 2, 1, name="cudaMemcpyAsync")
    trace.runtime(25, 10, name="cudaStreamSynchronize")
    trace.runtime(60, 2, 2, name="cudaLaunchKernel")
    trace.runtime(62, 2, 3, name="cudaMemsetAsync")
    trace.runtime(80, 5, name="cudaDeviceSynchronize")
    trace.runtime(110, 5, name="cudaDeviceSynchronize")

    profile = trace.profile()

    assert _places(profile) == [
        ("cudaMemcpyAsync", "train.py:12 step"),
        ("cudaStreamSynchronize", "train.py:12 step"),
        ("cudaDeviceSynchronize", "train.py:40 <module>"),
    ]
    assert _places(decode(encode(profile))) == _places(profile)


def test_without_python_stacks_no_call_has_a_place(gpu_view) -> None:
    assert len(gpu_view.profile.call_places) == 0


def test_in_a_recorded_trace_the_wait_is_the_function_that_steps_the_profiler() -> None:
    profile = analyze_trace(TRACES / "all_options.pt.trace.json.gz")
    assert ("cudaDeviceSynchronize", "recordings/recorder.py:55 steps") in _places(profile)
    assert not any("torch/" in place for _, place in _places(profile))
