"""The PyTorch Profiler tab (torch-tb-profiler 0.4.3) next to ours, over what the hook leaves of a recorded pair.

Its pages load their charts from a CDN, so its numbers are read where its pages read them: from its routes. The copy is
made by the hook's own analysis process.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect
from support.tensorboard import PAGE_MS, ROOT, Server, Watched

from tb_dlprof_plugin.capture.analysis_job import AnalysisJob
from tb_dlprof_plugin.interop.torch_tb_profiler.file_names import copy_name, original_name
from tb_dlprof_plugin.interop.torch_tb_profiler.kernel_names import tab_name
from tb_dlprof_plugin.metrics.step_buckets import GPU_BUCKETS, WAITING
from tb_dlprof_plugin.model.run_facts import RunFacts, System

RUNS = ("hook_fp32", "hook_amp_bf16")
_WORKER = "host_1"


def _recorded(folder: Path, trace: Path) -> None:
    """What the hook's analysis process makes of a trace that torch has written to the run directory."""
    stem = f"{_WORKER}.1700000000000000000"
    waiting = folder / f".{stem}.waiting.json"
    folder.mkdir(parents=True)
    waiting.write_bytes(gzip.decompress(trace.read_bytes()))
    job = AnalysisJob(
        trace=str(waiting),
        final_trace=str(folder / original_name(stem, packed=True)),
        keep_trace=True,
        event_directory=str(folder),
        facts=RunFacts(),
        system=System(),
        session="s1",
        rank=0,
        cycle=0,
        worker=_WORKER,
        tab_copy=str(folder / copy_name(stem)),
    )
    order = folder.parent / f"job_{folder.name}" / "job.json"
    order.parent.mkdir()
    job.write(order)
    subprocess.run([sys.executable, "-m", "tb_dlprof_plugin.capture.analysis_process", str(order)], check=True)


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tab")
    for name in RUNS:
        _recorded(folder / name, ROOT / "tests" / "traces" / f"{name}.pt.trace.json.gz")
    return folder


@pytest.fixture(scope="module")
def server(serve: Callable[[Path, int], Server], logdir: Path) -> Server:
    """TensorBoard once the tab has read all runs."""
    started = serve(logdir, len(RUNS))
    deadline = time.monotonic() + 90
    while sorted((answer := tab(started, "runs"))["runs"]) != sorted(RUNS):
        assert time.monotonic() < deadline, answer
        time.sleep(0.5)
    return started


def tab(server: Server, route: str, **query: str) -> Any:
    """One of the tab's routes."""
    address = f"{server.url}data/plugin/pytorch_profiler/{route}?{urlencode(query)}"
    with urllib.request.urlopen(address, timeout=60) as answer:
        data = answer.read()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def test_its_numbers_are_ours(server: Server) -> None:
    for run in RUNS:
        where = {"run": run, "worker": _WORKER, "span": "1"}
        ours: Any = server.get(f"overview?run={run}")
        theirs = tab(server, "overview", **where)

        # Steps, and what the GPU did in them.
        bars = ours["iterations"]
        assert [row[0] for row in theirs["steps"]["rows"]] == [str(bar["number"]) for bar in bars]
        (performance,) = theirs["performance"]
        # That tab knows recorded steps alone.
        assert performance["value"] == pytest.approx(ours["summary"]["recorded_iteration_ns"] / 1e3, abs=0.51)
        columns = [column["name"] for column in theirs["steps"]["columns"] if "name" in column]
        of = {name: 1 + 2 * index for index, name in enumerate(columns[1:])}
        for row, bar in zip(theirs["steps"]["rows"], bars, strict=True):
            parts = dict(zip((bucket["key"] for bucket in ours["buckets"]), bar["category_ns"], strict=True))
            # GradScaler's work has kernels and copies, so that only the sum of both is comparable.
            busy = sum(parts[key] for key in GPU_BUCKETS if key not in WAITING)
            assert sum(row[of[key]] for key in ("Kernel", "Memcpy", "Memset")) * 1e3 == pytest.approx(busy, abs=10)

        # The Tensor Core row, and its pie.
        slices = {part["key"]: part["value_ns"] for part in ours["kernel_time"]}
        share = 100 * slices["tensor_core"] / (slices["tensor_core"] + slices["other_kernels"])
        row = {item["title"]: item["value"] for item in theirs["gpu_metrics"]["data"]}
        assert row["Kernel Time using Tensor Cores"] == f"{round(share, 2)} %"
        pie = dict(tab(server, "kernel/tc_pie", **where)["total"]["rows"])
        assert 100 * pie["Using Tensor Cores"] == pytest.approx(share, abs=0.01)

        # Device times of every operator.
        table: Any = server.get(f"report?run={run}&name=averages")
        names = [column["key"] for column in table["columns"]]
        # By name the first row is the op's: kernels stand behind.
        own = {line[0]: dict(zip(names, line, strict=True)) for line in reversed(table["rows"])}
        rows = tab(server, "operation/table", **where, group_by="Operation")["data"]
        assert len(rows) > 20
        for line in rows:
            known = own[line["name"]]
            assert line["calls"] == known["number_of_calls"]
            assert line["device_self_duration"] == pytest.approx(known["self_cuda_ns"] / 1e3, abs=0.51)
            assert line["device_total_duration"] == pytest.approx(known["cuda_total_ns"] / 1e3, abs=0.51)


def test_its_kernels_say_what_ours_do_of_tensor_cores(server: Server) -> None:
    verdicts = {"yes": True, "no": False, "unknown": None}
    for run in RUNS:
        page: Any = server.get(f"kernels?run={run}")
        expected: dict[str, list[Any]] = {}
        for row in page["rows"]:
            if row["kind"] == "kernel":
                sums = expected.setdefault(tab_name(row["name"], verdicts[row["tensor_core"]]), ["No", 0, 0])
                sums[0] = "Yes" if row["tensor_core"] == "yes" else "No"
                sums[1] += row["calls"]
                sums[2] += row["total_ns"]
        where = {"run": run, "worker": _WORKER, "span": "1"}
        table = tab(server, "kernel/table", **where, group_by="Kernel")["data"]
        found = {row[0]: [row[1], row[2], row[3]] for row in table["rows"]}
        assert found == {name: [yes, calls, round(total / 1e3)] for name, (yes, calls, total) in expected.items()}
        assert {used for used, _, _ in found.values()} == {"Yes", "No"}


@pytest.mark.long
def test_the_page_leads_to_it(server: Server, watched: Watched) -> None:
    watched.page.goto(f"{server.url}#tb_dlprof&p.tb_dlprof.run=hook_amp_bf16")
    frame = watched.page.frame_locator("iframe")
    frame.get_by_test_id("overview-more").locator("> summary").click(timeout=PAGE_MS)
    links = frame.get_by_test_id("trace-links")
    expect(links).to_contain_text("Choose run hook_amp_bf16, worker host_1 there.", timeout=PAGE_MS)
    expect(links).not_to_contain_text("will be wrong")
    expect(links.get_by_role("combobox")).to_have_value("kineto/host_1.1700000000000000000.trace.json.gz")
    assert watched.errors == []
    links.get_by_role("button", name="PyTorch Profiler tab").click()
    expect(watched.page).to_have_url(f"{server.url}#pytorch_profiler")
