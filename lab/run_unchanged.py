"""`tb-dlprof run` on unchanged training scripts: what it finds, and whether the weights stay the same.

Each script of `lab/run_scripts` trains three times with torch's deterministic algorithms: twice by itself, once
under `tb-dlprof run`. On a GPU the six models are profiled once more with `--mode simple`. A row per script: which
iterations were recorded, how much of the ops' time (on the GPU, else on the CPU) lies in named modules, the findings,
and whether each weight is the same to the bit. Ends with 1 where something was not found or a weight differs.

    python lab/run_unchanged.py [--scripts resnet50 imagenet] [--jobs 1]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from tb_dlprof_plugin import read_profiles
from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.profile_view import ProfileView

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "lab" / "run_scripts"
MODELS = ("mlp", "lenet", "alexnet", "vgg16", "resnet50", "custom")
SCRIPTS: dict[str, list[str]] = {
    **{name: ["six_models.py", "--model", name] for name in MODELS},
    "resnet50 amp": ["six_models.py", "--model", "resnet50", "--precision", "amp-fp16"],
    "imagenet": ["imagenet.py"],
    "lightning": ["lightning_module.py"],
    "accelerate": ["accelerate_loop.py"],
    "transformers": ["transformers_trainer.py"],
    "gan": ["gan.py"],
}
NEEDS = ("lightning", "accelerate", "transformers")


def execute(command: list[str], folder: Path) -> str:
    """Run to the end; what it wrote to standard error."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "9"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed with status {done.returncode}:\n{done.stderr.strip()[-2000:]}")
    return done.stderr


def same(a: Path, b: Path) -> bool:
    """Whether all weights of two files are the same to the bit."""
    one, other = (torch.load(path, map_location="cpu") for path in (a, b))
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def try_script(name: str, folder: Path, gpu: bool) -> tuple[str, bool]:
    """Its row, and whether all is well."""
    folder.mkdir()
    script = [str(FOLDER / "deterministic.py"), str(FOLDER / SCRIPTS[name][0]), *SCRIPTS[name][1:], "--save"]
    run = [sys.executable, "-m", "tb_dlprof_plugin.cli.main", "run", "--logdir", str(folder)]
    execute([sys.executable, *script, "first.pt"], folder)
    execute([sys.executable, *script, "second.pt"], folder)
    execute([*run, "--verbosity", "quiet", "--run-name", "r", *script, "run.pt"], folder)
    repeats, kept = same(folder / "first.pt", folder / "second.pt"), same(folder / "first.pt", folder / "run.pt")
    found = [stored.profile for stored in read_profiles(folder / "r")]
    if len(found) != 1:
        return f"{name:14} {len(found)} profiles", False

    profile = found[0]
    view = ProfileView(profile)
    whole = view.selection()
    totals = op_totals(view, whole)
    time_ns = totals.gpu_ns if totals.gpu_ns.any() else totals.cpu_total_ns
    named = [bool(profile.strings[module]) for module in view.groups.module]
    share = 100 * time_ns[named].sum() / max(1, time_ns.sum())
    numbers = [int(number) for number in profile.iterations.number]
    findings = advise(view, whole).findings
    weights = "the same" if kept else "DIFFER" if repeats else "differ, as without it"
    row = (
        f"{name:14} {profile.facts.model or 'unknown':32} {numbers[0]:3} to {numbers[-1]:3} {share:9.1f} % "
        f"{len(findings):9}   {weights:22}"
    )
    if gpu and name in MODELS:
        said = execute([*run, "--mode", "simple", "--run-name", "s", *script, "simple.pt"], folder)
        (simple,) = (stored.profile for stored in read_profiles(folder / "s"))
        row += f" simple: {len(simple.launches.kernel)} kernels, {simple.launches.duration_ns.sum() / 1e6:.1f} ms"
        kept = kept and same(folder / "first.pt", folder / "simple.pt") and "Traceback" not in said
    return row, (kept or not repeats) and len(numbers) > 0 and share > 50 and bool(findings)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scripts", nargs="+", choices=sorted(SCRIPTS), default=list(SCRIPTS))
    parser.add_argument("--jobs", type=int, default=1, help="how many scripts at a time (default 1)")
    args = parser.parse_args()
    missing = [name for name in NEEDS if name in args.scripts and importlib.util.find_spec(name) is None]
    scripts = [name for name in args.scripts if name not in missing]
    gpu = torch.cuda.is_available()

    print(f"{'script':14} {'model':32} iterations in modules  findings   weights", flush=True)
    failed = False
    with tempfile.TemporaryDirectory(prefix="run_unchanged_") as folder, ThreadPoolExecutor(args.jobs) as pool:
        tries = [pool.submit(try_script, name, Path(folder, name.replace(" ", "_")), gpu) for name in scripts]
        for name, one in zip(scripts, tries, strict=True):
            try:
                row, good = one.result()
            except Exception as error:
                row, good = f"{name:14} {error}", False
            failed |= not good
            print(row, "" if good else " !", flush=True)
    for name in missing:
        print(f"{name:14} not tried: {name} is not installed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
