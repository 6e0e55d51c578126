"""Hold what ``tb-dlprof run`` and ``tb-dlprof run --nsys`` show of one training against its own clock, on a GPU.

    python lab/formats/commands.py --out /tmp/commands --libraries /tmp/lib

Each model is trained twice by ``torch_program.py``, unchanged, under either command; the script times steps without a
profiler before and after. Printed: kernels and kernel time of a step, share on Tensor Cores, the step that is shown
with its interval, the script's own, and how far the two commands are apart. ``--libraries``: as for ``record.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from formats.agreement import Step, measure  # noqa: E402
from formats.record import find_nsys  # noqa: E402

KINDS = ("vit_fp32", "vit_bf16", "mobilenet_fp32", "mobilenet_bf16", "convnext_bf16", "bert_bf16", "vit_bf16_compiled")
FIRST, LAST = 100, 109
"""The script trains 65 steps before those that it leaves to the recorder."""


def run(way: str, kind: str, out: Path, env: dict[str, str], timeout: float) -> str:
    """Record a kind; "" or why it failed."""
    options = ["--nsys"] if way == "nsys" else []
    command = [
        sys.executable,
        "-m",
        "tb_dlprof_plugin.cli.main",
        "run",
        *options,
        "--logdir",
        str(out),
        "--run-name",
        way,
    ]
    command += ["--iter-start", str(FIRST), "--iter-stop", str(LAST), "--verbosity", "minimal", "--"]
    command += [
        sys.executable,
        str(HERE / "torch_program.py"),
        "--kind",
        kind,
        "--recorder",
        "none",
        "--out",
        str(out / f"truth_{way}"),
    ]
    with (out / "log.txt").open("ab") as file:
        try:
            status = subprocess.run(command, env=env, stdout=file, stderr=file, timeout=timeout, check=False).returncode
        except subprocess.TimeoutExpired:
            return f"took longer than {timeout:.0f} s"
    return "" if status == 0 else f"ended with status {status}"


def read(way: str, out: Path) -> tuple[Step, tuple[float, float, float], str, float]:
    """The step as shown, its interval (ms) and where it is from; and the script's own (ms)."""
    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.simulation.estimate import step_estimate
    from tb_dlprof_plugin.store.logdir import read_profiles

    (truth,) = (out / f"truth_{way}").glob("truth.*.json")
    blocks = json.loads(truth.read_text())["blocks_ms"]
    stored = read_profiles(out / way)
    view = ProfileView(stored[0].profile)
    estimate = step_estimate(view, view.selection())
    interval = (estimate.low_ns / 1e6, estimate.ns / 1e6, estimate.high_ns / 1e6)
    return measure(view, None), interval, str(estimate.source), statistics.median(blocks)


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--seconds", type=float, default=300.0, help="No model is begun after this time.")
    parser.add_argument("--libraries", type=Path, help="directory of libdw.so.1 and libelf.so.1")
    parser.add_argument("--pack", type=Path, help="directory for one archive of what was recorded")
    args = parser.parse_args()
    began = time.monotonic()
    env = dict(os.environ)
    nsys = find_nsys()
    if nsys is not None:
        env["PATH"] = os.pathsep.join((str(nsys.parent), env["PATH"]))
    if args.libraries:
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (str(args.libraries), env.get("LD_LIBRARY_PATH"))))
    rows = []
    for kind in args.kinds:
        if time.monotonic() - began > args.seconds:
            rows.append(f"{kind:20s} not begun: the time is over")
            continue
        out = args.out / kind
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for way in ("hook", "nsys"):
            try:
                failed = run(way, kind, out, env, 120)
                step, (low, shown, high), source, truth = read(way, out)
                rows.append(
                    f"{kind:18s} {way:5s} {step.kernels:7.1f} kernels {step.kernel_ms:8.3f} ms, Tensor Cores "
                    f"{step.tensor_core_percent:5.1f} %, shown {shown:8.3f} ms ({low:.3f} to {high:.3f}, {source}), "
                    f"true {truth:8.3f}: {100 * (shown / truth - 1):+5.1f} % {failed}"
                )
            except Exception as error:
                rows.append(f"{kind:20s} {way:5s} {failed} {type(error).__name__}: {error}")
            print(rows[-1], flush=True)
    print("\n".join(["", *rows]))
    if args.pack:
        with tarfile.open(args.pack / "commands.tgz", "w:gz") as archive:
            for path in sorted(args.out.rglob("*")):
                if path.is_file() and not path.name.endswith((".nsys-rep", ".sqlite", ".qdstrm")):
                    archive.add(path, str(path.relative_to(args.out)))


if __name__ == "__main__":
    main()
