"""``tb-dlprof import`` of Nsight Compute's counters: they replace what the run estimated."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from tb_dlprof_plugin import read_profiles
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.model.profile import KernelKind
from tb_dlprof_plugin.pages.kernels import kernels_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDING = Path(__file__).parents[1] / "readers" / "xplane" / "jax_h200.xplane.pb.gz"
HEADER = (
    '"ID","Process ID","Kernel Name","Block Size","Grid Size","dram__bytes.sum","sm__inst_executed_pipe_tensor.sum",'
    '"sm__warps_active.avg.pct_of_peak_sustained_active"\n"","","","","","Kbyte","inst","%"\n'
)


def test_counters_replace_estimates_and_are_marked(tmp_path: Path) -> None:
    runner, logdir = CliRunner(), str(tmp_path / "runs")
    assert runner.invoke(app, ["import", str(RECORDING), "--logdir", logdir, "--run", "jax"]).exit_code == 0
    profile = read_profiles(tmp_path / "runs" / "jax")[0].profile
    # A run of its own, below the one that gets the counters.
    below = write_profile(tmp_path / "runs" / "jax" / "below", profile)
    (tmp_path / "runs" / "jax" / "notes.txt").write_text("mine")
    kernels, launches, configs = profile.kernels, profile.launches, profile.launch_configs
    rows = []
    for at, (kernel, config) in enumerate(zip(launches.kernel.tolist(), launches.config.tolist(), strict=True)):
        if kernels.kind[kernel] == KernelKind.KERNEL:
            sizes = [str(tuple(sizes[config].tolist())) for sizes in (configs.block, configs.grid)]
            name = profile.strings[kernels.name[kernel]].replace('"', '""')
            rows.append(f'"{at}","1","{name}","{sizes[0]}","{sizes[1]}","2.00","7","12.5"')
    counters = tmp_path / "counters.csv"
    counters.write_text(HEADER + "\n".join(rows) + "\n")

    alone = runner.invoke(app, ["import", str(counters), "--logdir", logdir])
    assert alone.exit_code != 0
    assert "name it with --run" in alone.output
    done = runner.invoke(app, ["import", str(counters), "--logdir", logdir, "--run", "jax"])
    assert done.exit_code == 0, done.output
    assert f"counters for {len(rows)} of its launches, 100 % of the kernel time" in " ".join(done.output.split())

    stored, kept = sorted(read_profiles(tmp_path / "runs" / "jax"), key=lambda one: one.path == below)
    assert (kept.path, stored.path.parent) == (below, tmp_path / "runs" / "jax")
    assert (tmp_path / "runs" / "jax" / "notes.txt").read_text() == "mine"
    view = ProfileView(stored.profile)
    shown = [row for row in kernels_page(view, RunRef("jax", "s", 0, 0), view.selection()).rows if row.kind == "kernel"]
    assert {(row.tensor_core, row.rule, row.occupancy_percent, row.occupancy_measured) for row in shown} == {
        ("yes", "measured", 12.5, True)
    }
    assert all(row.counters is not None and row.counters.dram_bytes == 2000 * row.calls for row in shown)


def test_counters_of_another_program_change_nothing(tmp_path: Path) -> None:
    runner, logdir = CliRunner(), str(tmp_path / "runs")
    runner.invoke(app, ["import", str(RECORDING), "--logdir", logdir, "--run", "jax"])
    before = sorted((tmp_path / "runs").rglob("*.tb_dlprof"))
    counters = tmp_path / "counters.csv"
    counters.write_text(HEADER + '"0","1","another","(1, 1, 1)","(1, 1, 1)","2.00","7","12.5"\n')
    done = runner.invoke(app, ["import", str(counters), "--logdir", logdir, "--run", "jax"])
    assert done.exit_code != 0
    assert "is in" in done.output
    assert sorted((tmp_path / "runs").rglob("*.tb_dlprof")) == before
