"""Scripts of JAX and TensorFlow under ``tb-dlprof run``: what an iteration is, and the run that is made of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.script_runs import execute, numbers, profiles, run

from tb_dlprof_plugin.capture.launcher.protocol import ProcessStatus, RunRequest, read_statuses
from tb_dlprof_plugin.capture.launcher.xplane.call_recorder import CallRecorder, CallWindow
from tb_dlprof_plugin.capture.launcher.xplane.step_function import StepFunction

FIXTURE = Path(__file__).parents[1] / "readers" / "xplane" / "jax_h200.xplane.pb.gz"

FAKE_JAX = f"""
import contextlib, shutil, types

class Jitted:
    def __init__(self, fun): self.fun = self.__wrapped__ = fun
    def __call__(self, *args): return self.fun(*args)
    def lower(self, *args): return "lowered"

def jit(fun=None, **options):
    return Jitted(fun) if fun else lambda fun: Jitted(fun)

class Array: pass
tree_util = types.SimpleNamespace(tree_leaves=lambda tree: [])
default_backend = lambda: "gpu"
process_index, process_count = lambda: 0, lambda: 1

class profiler:
    def start_trace(folder):
        profiler.folder = folder
    def stop_trace():
        import os
        session = os.path.join(profiler.folder, "plugins", "profile", "2026_01_01_00_00_00")
        os.makedirs(session)
        shutil.copy({str(FIXTURE)!r}, os.path.join(session, "host.xplane.pb"))
    def StepTraceAnnotation(name, step_num):
        print("iteration", step_num)
        return contextlib.nullcontext()
"""

LOOP = """
import jax, sys

@jax.jit
def train_step(x):
    return x + 1

init = jax.jit(lambda: 0)
x = init()
for _ in range(int(sys.argv[1])):
    x = train_step(x)
print("x is", x, train_step.lower(x), train_step.__wrapped__.__name__)
"""


class FakeProfiler:
    """Notes what it is asked for."""

    framework, unit, runs_ahead = "jax", "calls", False

    def __init__(self, breaks: str = "") -> None:
        self.breaks, self.asked = breaks, []  # type: tuple[str, list[Any]]

    def _ask(self, what: str, *more: Any) -> None:
        self.asked.append((what, *more))
        if what == self.breaks:
            raise RuntimeError(f"{what} is broken")

    def start(self, folder: str) -> None:
        self._ask("start")

    def stop(self) -> None:
        self._ask("stop")

    @contextlib.contextmanager
    def step(self, number: int) -> Iterator[None]:
        self._ask("step", number)
        yield

    def wait(self, arguments: object) -> None:
        pass

    def place(self) -> tuple[int, int]:
        return 0, 1


@pytest.fixture
def recorder(tmp_path: Path) -> Callable[..., tuple[CallRecorder, FakeProfiler, Callable[[], ProcessStatus]]]:
    def make(breaks: str = "", **request: Any) -> tuple[CallRecorder, FakeProfiler, Callable[[], ProcessStatus]]:
        profiler = FakeProfiler(breaks)
        made = CallRecorder(RunRequest(str(tmp_path / "run"), 0.0, **request), tmp_path, profiler)
        made.begin()
        return made, profiler, lambda: read_statuses(tmp_path)[0]

    return make


def steps(profiler: FakeProfiler) -> list[int]:
    return [one[1] for one in profiler.asked if one[0] == "step"]


def test_of_several_functions_the_one_that_took_longest_to_compile_is_the_step() -> None:
    found = StepFunction()
    for key, first_ns in ((1, 900), (2, 10), (3, 100)):  # 1 is called once: it initialises.
        assert found.begin(key) is None
        found.end(key, first_ns)
    assert found.begin(2) == 1, "nothing larger was called again yet"
    found.end(2, 1)
    assert found.begin(3) == 1
    found.end(3, 1)
    assert found.begin(2) is None
    assert found.begin(3) == 2


def test_an_evaluation_between_iterations_belongs_to_none(recorder: Any) -> None:
    made, profiler, _ = recorder(first=12, last=15)
    open_marks: list[int] = []

    @contextlib.contextmanager
    def step(number: int) -> Iterator[None]:
        profiler.asked.append(("step", number))
        open_marks.append(number)
        yield
        open_marks.remove(number)

    profiler.step = step
    during: dict[str, list[tuple[int, ...]]] = {"augment": [], "evaluate": []}

    def note(name: str) -> None:
        during[name].append(tuple(open_marks))

    for number in range(20):
        made.call(2, note, ("augment",), {})
        made.call(1, lambda: threading.Event().wait(0.002), (), {})
        if number in (5, 14):
            for _ in range(4):
                made.call(3, note, ("evaluate",), {})
    assert steps(profiler) == [12, 13, 14, 15]
    assert during["evaluate"] == [()] * 8
    assert during["augment"][13:15] == [(12,), (13,)], "part of each iteration, it ends none"
    assert during["augment"][15] == (), "what follows the evaluation belongs to the next iteration"


@pytest.mark.parametrize(
    ("options", "began", "expected"),
    [
        ({}, 11, (12, 21)),
        ({"last": 5}, 4, (5, 5)),
        ({"first": 1, "last": 3}, 1, (1, 3)),
        ({"first": 0, "last": 3}, 1, (1, 3)),
        ({"first": 30}, 29, (30, 39)),
        ({}, 50, (51, 60)),
        ({"duration_s": 5.0}, 11, (12, 211)),
    ],
)
def test_the_options_say_which_iterations_are_recorded(
    options: dict[str, Any], began: int, expected: tuple[int, int]
) -> None:
    window = CallWindow(RunRequest("run", 0.0, **options))
    assert window.due(began)
    window.open(began)
    assert not window.missed
    assert (window.first, window.last) == expected


def test_ten_iterations_are_recorded_and_those_around_them_timed(recorder: Any) -> None:
    made, profiler, status = recorder()
    for _ in range(50):
        made.call(7, abs, (-1,), {})
    assert profiler.asked[0] == ("start",)
    assert steps(profiler) == list(range(12, 22))
    assert profiler.asked[-1] == ("stop",)
    made.end()
    assert (status().phase, status().first, status().last) == ("recorded", 12, 21)
    assert len(status().before_ns) == 3
    assert len(status().after_ns) >= 3
    assert made.off


def test_a_call_within_a_call_and_one_of_another_thread_are_no_iterations(recorder: Any) -> None:
    made, profiler, _ = recorder(first=2, last=9)

    def step() -> None:
        made.call(8, abs, (-1,), {})

    for turn in range(12):
        made.call(7, step, (), {})
        if turn == 4:
            other = threading.Thread(target=lambda: made.call(7, abs, (-1,), {}))
            other.start()
            other.join()
    assert steps(profiler)[:4] == [2, 3, 4, 6], "the other thread's call is counted, and not recorded"


def test_what_a_call_raises_reaches_the_script(recorder: Any) -> None:
    made, _, _ = recorder()
    with pytest.raises(ZeroDivisionError):
        made.call(7, divmod, (1, 0), {})


@pytest.mark.parametrize("breaks", ["start", "step", "stop"])
def test_a_profiler_that_fails_costs_the_profile_alone(recorder: Any, breaks: str, capsys: Any) -> None:
    made, _, status = recorder(breaks=breaks)
    assert [made.call(7, abs, (-1,), {}) for _ in range(40)] == [1] * 40
    assert status().phase == "failed"
    assert f"{breaks} is broken" in status().said
    assert capsys.readouterr().err.count("goes on without a profile") == 1


def test_the_scripts_own_profiler_has_precedence(recorder: Any) -> None:
    made, profiler, status = recorder()
    for _ in range(15):
        made.call(7, abs, (-1,), {})
    made.leave()
    assert profiler.asked[-1] == ("stop",)
    assert status().phase == "recorded"
    other, _, _ = recorder()
    other.leave()
    assert status().phase == "left_alone"


def test_an_unchanged_script_becomes_a_run(tmp_path: Path) -> None:
    """With a stand-in for JAX whose profiler writes a real recording."""
    (tmp_path / "jax.py").write_text(FAKE_JAX)
    (tmp_path / "train.py").write_text(LOOP)
    mine = tmp_path / "runs" / "train" / "plugins" / "profile" / "train" / "host.xplane.pb"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    done = run("--iter-start", "3", "--iter-stop", "6", "train.py", "20", cwd=tmp_path)
    assert done.status == 0, done.err
    assert done.out.splitlines() == [*(f"iteration {n}" for n in range(3, 7)), "x is 20 lowered train_step"]
    assert "train.py, " in done.err
    (stored,) = profiles(tmp_path / "runs" / "train")
    assert (stored.source.format, stored.source.framework) == ("xplane", "jax")
    # Sessions of the user stay as they are.
    assert mine.read_text() == "mine"
    kept = tmp_path / "runs" / "train" / "plugins" / "profile" / "train-2" / "host.xplane.pb"
    assert kept.read_bytes() == FIXTURE.read_bytes()
    assert not list((tmp_path / "runs" / "train").glob(".recording*"))


def test_a_script_that_is_too_short_is_told_what_to_say(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text(FAKE_JAX)
    (tmp_path / "train.py").write_text(LOOP)
    done = run("train.py", "5", cwd=tmp_path)
    assert done.out == "x is 5 lowered train_step\n"
    assert "ended after 5 calls of a jitted function" in done.err
    assert "--iter-start 3 --iter-stop 4" in done.err


REAL = """
import jax, jax.numpy as jnp

def loss(w, x):
    return jnp.square(jnp.tanh(x @ w)).mean()

@jax.jit
def train_step(w, x):
    with jax.named_scope("model"):
        value, gradient = jax.value_and_grad(loss)(w, x)
    return w - 0.1 * gradient, value

w = jax.random.normal(jax.random.key(0), (256, 256))
for n in range(40):
    w, value = train_step(w, jnp.full((64, 256), n / 40))
print(float(value), isinstance(train_step, jax.stages.Wrapped))
"""


@pytest.mark.long
def test_jax_itself_is_recorded_and_computes_the_same(tmp_path: Path) -> None:
    python = _environment_with("jax")
    (tmp_path / "train.py").write_text(REAL)
    plain = execute(python, "train.py", cwd=tmp_path)
    done = run("--", python, "train.py", cwd=tmp_path)
    assert (done.status, done.out) == (0, plain.out), done.err
    (stored,) = profiles(tmp_path / "runs" / "train")
    assert numbers(stored) == list(range(12, 22))
    assert any("dot_general" in text for text in stored.strings)


def _environment_with(package: str) -> Path:
    """A Python with nothing but a package, made once."""
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tb_dlprof_plugin" / f"with-{package}"
    python = base / "bin" / "python"
    if not (base / "complete").exists():
        shutil.rmtree(base, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", base], check=True)
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", package], capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"{package} cannot be installed here")
        (base / "complete").touch()
    return python
