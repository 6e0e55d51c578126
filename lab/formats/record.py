"""Record the same training steps with Nsight Systems and with the framework's own profiler, on a GPU.

Each recording is a process of its own. ``<out>/<kind>/`` gets ``nsys.sqlite.gz``, the framework's own profile and the
steps without a profiler. What failed is in the table that is printed last. With ``--pack`` all of it becomes one
archive; after ``--deadline`` seconds no further kind begins.

    python lab/formats/record.py --out /tmp/formats
    python lab/formats/record.py --out /tmp/formats --kinds resnet50_bf16_ddp --ranks 2

Nsight Systems is looked for on PATH and in Nsight Compute; ``--libraries`` names a directory with libdw.so.1 and
libelf.so.1 for its importer where the system has none.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
NSYS_PLACES = ("/opt/nvidia/nsight-systems*/*/bin/nsys", "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys")
OPTIONS = ["-t", "cuda,nvtx,cudnn,cublas", "-s", "none", "--cpuctxsw=none", "-c", "cudaProfilerApi"]
OPTIONS += ["--capture-range-end=stop"]  # By default the program is ended with the range.
EXPORT = ("--force-overwrite=true", "--include-blobs=true")
TORCH_KINDS = (
    "resnet50_fp32",
    "resnet50_bf16",
    "bert_fp32",
    "bert_bf16",
    "gpt_bf16_compiled",
    "resnet50_bf16_compiled",
    "gpt_bf16_graph",
)
JAX_KINDS = ("transformer_fp32", "transformer_bf16_kernels", "conv_bf16", "conv_fp32_kernels")


def find_nsys() -> Path | None:
    """The ``nsys`` of this machine."""
    found = shutil.which("nsys")
    if found:
        return Path(found)
    return next((path for place in NSYS_PLACES for path in sorted(Path("/").glob(place[1:]), reverse=True)), None)


def _program(kind: str, recorder: str, out: Path, ranks: int) -> list[str]:
    name = "jax_program.py" if kind.startswith(("transformer", "conv")) else "torch_program.py"
    start = [sys.executable]
    if kind.endswith("_ddp"):
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return [*start, str(HERE / name), "--kind", kind, "--recorder", recorder, "--out", str(out)]


def _run(command: list[str], env: dict[str, str], log: Path, timeout: float) -> str:
    """ "" or why it failed."""
    with log.open("ab") as file:
        try:
            done = subprocess.run(command, env=env, stdout=file, stderr=file, stdin=subprocess.DEVNULL, timeout=timeout)
        except subprocess.TimeoutExpired:
            return f"took longer than {timeout:.0f} s"
    return "" if done.returncode == 0 else f"ended with status {done.returncode}"


def record_nsys(
    nsys: Path, kind: str, out: Path, ranks: int, env: dict[str, str], options: list[str], name: str
) -> str:
    """Writes ``<name>.sqlite.gz`` of a kind; "" or why it failed."""
    log = out / "log.txt"
    report = out / f"{name}.nsys-rep"
    command = [str(nsys), "profile", *OPTIONS, *options, "--force-overwrite=true", "-o", str(report.with_suffix(""))]
    why = _run([*command, *_program(kind, "nsys", out, ranks)], env, log, 240)
    if not report.exists():
        raw = sorted(out.glob(f"{name}*.qdstrm"))
        importer = sorted(nsys.parents[1].glob("linux-desktop*/QdstrmImporter"))
        if raw and importer:
            _run([str(importer[-1]), "-i", str(raw[0]), "-o", str(report)], env, log, 120)
    if not report.exists():
        return why or "left no report"
    database = out / f"{name}.sqlite"
    why = _run(
        [str(nsys), "export", "--type", "sqlite", *EXPORT, "-o", str(database), str(report)],
        env,
        log,
        120,
    )
    if not database.exists():
        return why or "left no database"
    (out / f"{name}.sqlite.gz").write_bytes(gzip.compress(database.read_bytes(), 6, mtime=0))
    for left in (database, report, *out.glob(f"{name}*.qdstrm")):
        left.unlink(missing_ok=True)
    return ""


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kinds", nargs="+", default=[*TORCH_KINDS, *JAX_KINDS])
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--pack", type=Path, help="the archive that takes all that was written")
    parser.add_argument("--deadline", type=float, default=float("inf"), help="in seconds from the start")
    parser.add_argument("--libraries", type=Path, help="directory of libdw.so.1 and libelf.so.1")
    args = parser.parse_args()
    nsys = find_nsys()
    if nsys is None:
        sys.exit("lab/formats/record.py: nsys is not on PATH; install Nsight Systems and try again.")
    env = dict(os.environ)
    # Only Nsight's own processes need them; torch brings what it needs.
    if args.libraries:
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (str(args.libraries), env.get("LD_LIBRARY_PATH"))))
    rows = []
    begin = time.monotonic()
    for kind in args.kinds:
        if time.monotonic() - begin > args.deadline:
            rows.append(f"{kind:26s} not begun: the deadline is over")
            continue
        out = args.out / kind
        out.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        whys = {"profiler": _run(_program(kind, "profiler", out, args.ranks), env, out / "log.txt", 180)}
        whys["nsys"] = record_nsys(nsys, kind, out, args.ranks, env, [], "nsys")
        if kind.endswith("_graph"):
            whys["nodes"] = record_nsys(nsys, kind, out, args.ranks, env, ["--cuda-graph-trace=node"], "nsys_nodes")
        truths = [json.loads(path.read_text()) for path in sorted(out.glob("truth.*.json"))]
        steps = " ".join(f"{truth['recorder']} {truth['unprofiled_step_ms']:.3f}" for truth in truths)
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        failed = "; ".join(f"{name} {why}" for name, why in whys.items() if why)
        rows.append(f"{kind:26s} {size / 1e3:8.0f} kB {time.monotonic() - start:5.0f} s  step ms: {steps}  {failed}")
        print(rows[-1], flush=True)
    if args.pack:
        with tarfile.open(args.pack, "w") as archive:
            archive.add(args.out, arcname=".")
    print("\n".join(["", *rows]))


if __name__ == "__main__":
    main()
