"""``tb-dlprof`` from outside: a process, its output, its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.cli.commands import COMMANDS
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.version import __version__
from tb_dlprof_plugin.web.routes import PAGES as RANGE_PAGES
from tb_dlprof_plugin.web.routes import ROUTES

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    command.name: ROUTES[command.page].load_page()
    for command in COMMANDS.values()
    if command.page in RANGE_PAGES and command.name != "plan"
}
"""The functions of the pages that a run and a range make, by the command that prints them.

`plan` prints the plan alone, of the whole run."""


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory, training) -> Path:
    """Run "fp32" with two cycles, run "fp16" with one."""
    folder = tmp_path_factory.mktemp("logdir")
    facts = RunFacts(unprofiled_before_ns=[1_000_000] * 4)
    for cycle in range(2):
        write_profile(folder / "fp32", training("fp32").profile(session="s", cycle=cycle, facts=facts))
    write_profile(folder / "fp16", training("fp16").profile(session="s"))
    return folder


def _process(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tb_dlprof_plugin.cli.main", *map(str, args)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *args: CliRunner().invoke(app, [str(arg) for arg in args])


def test_the_version_is_printed(run) -> None:
    assert run("--version").stdout == f"{__version__}\n"


@pytest.mark.parametrize("command", PAGES)
def test_json_is_the_views_page(run, logdir: Path, command: str) -> None:
    view = ProfileView(read_profiles(logdir / "fp32")[1].profile)
    expected = PAGES[command](view, RunRef("fp32", "s", 0, 1), view.selection(1, 1))
    result = run(command, logdir / "fp32", "--first", 1, "--last", 1, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads(msgspec.json.encode(expected))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "summary",
            [
                "1.00 ms",
                "timed without the profiler",
                "76.2 %",
                "Dataloader",
                "10.0 %",
                "conv1/conv2d",
                "unknown",
                "Note: ",
            ],
        ),
        ("ops", ["8 ops ran. conv1/conv2d (backward) is the largest op", "300 µs", "8×3×32×32, 16×3×3×3", "fp32"]),
        ("op-types", ["conv2d takes", "op types ran", "Forward", "TC"]),
        ("modules", ["2 modules ran", "whole model", "  conv1", "500 µs", "outside modules: optimizer", "0.0 %"]),
        ("kernels", ["Convolution kernels take", "xmma-ffma", "Memcpy HtoD (Pageable -> Device)"]),
        (
            "launches",
            [
                "CPU and GPU wait for each other; the GPU waits for the CPU 24 %",
                "cudaStreamSynchronize",
                "DataLoader",
                "xmma",
            ],
        ),
        (
            "timeline",
            ["Iteration 6, the median one, took 1.00 ms", "Python between ops", "fc/linear", "Backward"],
        ),
        ("tensor-cores", ["4 ops could use Tensor Cores; none does", "Its inputs are FP32"]),
        ("roofline", ["conv1/conv2d", "FP32 without Tensor Cores", "67.0 TFLOP/s", "4.80 TB/s", "unknown"]),
        ("memory", ["Memory was not recorded", "profile_memory=True"]),
    ],
)
def test_the_terminal_shows_what_the_page_holds(run, logdir: Path, command: str, words: list[str]) -> None:
    result = run(command, logdir / "fp32")
    assert result.exit_code == 0
    assert [word for word in words if word not in result.stdout] == []


def test_every_event_of_an_iteration_is_printed_as_csv(run, logdir: Path) -> None:
    lines = run("timeline", logdir / "fp32", "--iteration", 0, "--csv").stdout.splitlines()
    assert lines[0] == "id,row,level,name,kind,start_ns,duration_ns,of_iteration"
    assert any(",conv2d,forward,125000,60000,1" in line for line in lines)
    refused = run("timeline", logdir / "fp32", "--iteration", 3)
    assert (refused.exit_code, refused.stderr) == (
        2,
        "tb-dlprof: iteration 3 is not in this recording, which has 0 to 2.\n",
    )


def test_memory_of_a_device_is_shown_where_it_was_recorded(run, new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(7, 0, 100)
    trace.module("fc", 10, 30)
    trace.op("aten::linear", 12, 18, seq=1)
    trace.memory(14, 1 << 20, 1, allocated=3 << 20, reserved=4 << 20, device=0)
    trace.memory(95, 512, 2, allocated=512)
    trace.backward("AddmmBackward0", 50, 20, 1)
    file = trace.write("memory.pt.trace.json")
    shown = run("memory", file).stdout
    words = [
        "GPU 0 (NVIDIA H200) holds at most 3.00 MiB",
        "Activations",
        "(before the recording)",
        "fc/linear",
        "33.3 %",
    ]
    assert [word for word in words if word not in shown] == []
    assert "CPU holds at most 512 B" in run("memory", file, "--device", "cpu").stdout
    missing = run("memory", file, "--device", "3")
    assert (missing.exit_code, "no memory of device '3'" in missing.stderr) == (2, True)


def test_memory_counts_the_allocations_that_a_limit_leaves_out(run, new_trace) -> None:
    trace = new_trace()
    trace.op("aten::add", 0, 100)
    trace.memory(10, 512, 1, allocated=512)
    trace.memory(20, 256, 2, allocated=768)
    file = trace.write("two.pt.trace.json")
    assert "\n1 more; --limit prints more of each table.\n" in run("memory", file, "--limit", 1).stdout
    assert "more; --limit" not in run("memory", file, "--limit", 2).stdout


def test_memory_without_addresses_is_the_running_sum_and_the_rest_is_called_unknown(run) -> None:
    file = ROOT / "tests" / "traces" / "torch_1_9_cpu_memory.pt.trace.json.gz"
    shown = run("memory", file).stdout
    words = [
        "above what was there before the recording, which is unknown",
        "Peak memory allocated above the lowest moment",
    ]
    words += ["have no addresses", "5.75 MiB", "Growth per iteration"]
    assert [word for word in words if word not in shown] == []
    assert [word for word in ("Category", "Activations", "Module", "(before") if word in shown] == []


def test_a_limit_says_how_many_rows_are_left_out(run, logdir: Path) -> None:
    result = run("ops", logdir / "fp32", "--limit", 3)
    assert "5 more; --limit 8 prints all." in result.stdout


def test_modules_are_a_tree_of_the_depth_asked_for(run, new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    for index, path in enumerate(("stem.conv", "head.small", "head.large.fc")):
        trace.module(path, 100 * index + 10, 30 + 20 * index)
        trace.op("aten::add", 100 * index + 12, 10)
    file = trace.write("tree.pt.trace.json")
    lines = [
        line.split("  ")[0] if line[:1] != " " else line[:10].rstrip()
        for line in run("modules", file).stdout.splitlines()
    ]
    assert lines[3:9] == ["whole model", "  head", "    large", "    small", "  stem", "    conv"]
    shallow = run("modules", file, "--depth", 1).stdout
    assert "large" not in shallow
    assert "4 more are deeper; --depth 3 prints all." in shallow


def test_a_recording_without_modules_says_how_to_get_them(run, new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("aten::add", 10, 10)
    result = run("modules", trace.write("bare.pt.trace.json"))
    assert result.exit_code == 0
    assert "model=model" in result.stdout


def test_cycles_are_chosen_and_the_last_is_the_default(run, logdir: Path) -> None:
    for options, cycle in (((), 1), (("--cycle", 0), 0), (("--cycle", 1), 1)):
        assert json.loads(run("ops", logdir / "fp32", *options, "--json").stdout)["ref"]["cycle"] == cycle


def test_compare_is_the_page_and_a_table(run, logdir: Path) -> None:
    a, b = (ProfileView(read_profiles(logdir / name)[-1].profile) for name in ("fp32", "fp16"))
    expected = compare_page(
        CompareInput(a, RunRef("fp32", "s", 0, 1), a.selection()),
        CompareInput(b, RunRef("fp16", "s", 0, 0), b.selection()),
    )
    paths = (logdir / "fp32", logdir / "fp16")
    assert json.loads(run("compare", *paths, "--json").stdout) == json.loads(msgspec.json.encode(expected))
    assert run("compare", *paths, "--format", "json").stdout == run("compare", *paths, "--json").stdout
    text = run("compare", *paths).stdout
    words = ("Base precision", "5.00", "Where the step goes", "Casts", "launched by no op")
    assert [word for word in words if word not in text] == []


def _slowed(training, factor: float, name: str, tmp_path: Path, spread: float = 0) -> Path:
    """A run whose steps take ``factor`` ms, one more and one less by ``spread``."""
    trace = training()
    trace.events = []
    at = 0.0
    for index, length in enumerate((factor - spread, factor, factor + spread)):
        trace.step(index, at, 1000 * length)
        trace.op("aten::relu", at + 1, 1000 * length - 2)
        at += 1000 * length
    path = tmp_path / f"{name}.pt.trace.json"
    return trace.write().rename(path)


@pytest.mark.parametrize(
    ("factor", "spread", "limit", "verdict", "words"),
    [
        (1.1, 0, 5, "slower", "takes 10.0 % longer a step (+7.0 to +13.1 %), and the limit is 5 %: it is slower."),
        (1.1, 0, 15, "not_slower", ""),
        (0.9, 0, 0, "not_slower", ""),
        (1.1, 0.4, 5, "cannot_say", "does not exclude that it is no slower."),
        (1.02, 0.4, 5, "cannot_say", "reaches beyond the limit."),
        (1.8, 0.1, 5, "slower", "takes 80.0 % longer"),
    ],
)
def test_a_slower_candidate_ends_with_1_beyond_limit_and_noise(
    run, training, tmp_path: Path, factor: float, spread: float, limit: int, verdict: str, words: str
) -> None:
    base = _slowed(training, 1, "base", tmp_path)
    candidate = _slowed(training, factor, "candidate", tmp_path, spread)
    result = run("compare", base, candidate, "--format", "json", "--fail-if-slower", limit)
    assert result.exit_code == (verdict == "slower")
    page = json.loads(result.stdout)
    assert page["candidate_ms"] == pytest.approx(factor)
    assert page["regression"]["verdict"] == verdict
    unsure = run("compare", base, candidate, "--fail-if-slower", limit, "--fail-if-unsure")
    assert unsure.exit_code == {"slower": 1, "not_slower": 0, "cannot_say": 4}[verdict]
    assert words in result.stderr
    assert bool(result.stderr) is bool(words)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("summary", "missing"), "missing does not exist; give a logdir, a run or an event file."),
        (("summary", "logdir/fp2"), "/logdir/fp32?"),
        (("compare", "logdir/fp32", "logdir/pf16"), "/logdir/fp16?"),
        (("runs", "logdi"), "/logdir?"),
        (("summary", "empty"), "holds no profile"),
        (("summary", "logdir"), "holds 2 runs; name one of them: fp16, fp32."),
        (("ops", "logdir/fp32", "--first", "7"), "which has 0 to 2"),
        (("ops", "logdir/fp32", "--cycle", "9"), "no profile of that rank and cycle"),
        (("kernels", "logdir/fp32", "--rank", "9"), "no profile of that rank and cycle"),
        (("summary", "broken.pt.trace.json"), "ends in the middle of the JSON"),
        (("summary", "notes.txt"), "is no trace in a known format"),
        (("compare", "logdir/fp32", "missing"), "missing does not exist"),
        (("import", "broken.pt.trace.json", "--logdir", "new"), "ends in the middle of the JSON"),
        (("import", "empty", "--logdir", "new"), "holds no recording that can be read"),
        (("info", "two"), "holds 2 traces but no profile"),
    ],
)
def test_an_error_is_one_sentence_and_status_2(run, logdir: Path, tmp_path: Path, args, words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "logdir").symlink_to(logdir)
    (tmp_path / "broken.pt.trace.json").write_text("{")
    (tmp_path / "two").mkdir()
    for name in ("a", "b"):
        (tmp_path / "two" / f"{name}.pt.trace.json").write_text("{")
    (tmp_path / "notes.txt").write_text("these are my notes, not an event file")
    command, *rest = args
    result = run(command, *(arg if arg.startswith("-") or arg.isdigit() else tmp_path / arg for arg in rest))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert words in result.stderr
    assert result.stderr.startswith("tb-dlprof: ")
    assert result.stderr.count("\n") == 1


def test_markdown_has_the_words_of_the_text_and_formats_no_name(run, training, tmp_path: Path) -> None:
    trace = training()
    trace.op("my_ops::<b>a|b</b>_[x](y)", 1.0, 50)
    path = trace.write()
    text, markdown = (run("ops", path, "--format", kind).stdout for kind in ("text", "markdown"))
    assert "my_ops::<b>a|b</b>_[x](y)" in text
    assert r"my\_ops::&lt;b&gt;a\|b&lt;/b&gt;\_\[x\](y)" in markdown
    assert text.splitlines()[0].split() == markdown.splitlines()[0].replace("\\", "").split()
    assert "\n| Op |" in markdown.replace("  ", " ")
    assert run("advise", path, "--format", "markdown").exit_code == 0


def test_no_traceback_reaches_the_terminal(tmp_path: Path) -> None:
    done = _process("summary", tmp_path / "missing")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_one_iteration_cannot_tell_in_headline_and_exit_status_alike(run, training, tmp_path: Path) -> None:
    paths = []
    for name, length in (("base", 1), ("candidate", 2)):
        trace = training()
        trace.events = []
        trace.step(0, 0.0, 1000 * length)
        trace.op("aten::relu", 1.0, 1000 * length - 2)
        paths.append(trace.write().rename(tmp_path / f"{name}.pt.trace.json"))
    result = run("compare", *paths, "--format", "json", "--fail-if-slower", 5)
    page = json.loads(result.stdout)
    assert page["headline"].startswith("Cannot tell whether the candidate is faster: ")
    assert page["change"] == "unknown"
    assert result.exit_code == 0
    assert "but a recorded step of a single iteration has no interval." in result.stderr
