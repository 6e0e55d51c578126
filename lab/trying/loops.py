"""`tb-dlprof try` on unchanged scripts of each kind of loop: plain, Lightning, Accelerate, Trainer, several ranks.

    python -m lab.trying.loops [--only imagenet torchrun ...] [--budget 120]

At least one remedy has to be measured, with a verdict, and no file of the script's folder may be written or removed.
A row per script; ends with 1 where one is not measured, or a file is not as it was. Needs lightning, accelerate and
transformers for the scripts that import them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "lab" / "run_scripts"
_TORCHRUN = ("--", sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
LONG = "100000"
LOOPS: dict[str, tuple[str, ...]] = {
    "imagenet": ("imagenet.py", "--epochs", LONG, "--batches", "40", "--save", "weights.pt"),
    "gan": ("gan.py", "--steps", LONG),
    "lightning": ("lightning_module.py", "--epochs", LONG, "--batches", "40"),
    "accelerate": ("accelerate_loop.py", "--steps", LONG),
    "transformers": ("transformers_trainer.py", "--steps", LONG),
    "torchrun": (*_TORCHRUN, "imagenet.py", "--epochs", LONG, "--batches", "40", "--save", "weights.pt"),
    "torchrun lightning": (*_TORCHRUN, "lightning_module.py", "--epochs", LONG, "--batches", "40"),
    "torchrun accelerate": (*_TORCHRUN, "accelerate_loop.py", "--steps", LONG),
    "torchrun transformers": (*_TORCHRUN, "transformers_trainer.py", "--steps", LONG),
    "short": ("six_models.py", "--model", "mlp"),
}
"""Command lines in the folder of the scripts."""
REMEDIES = ("fused_optimizer", "bf16_autocast", "ddp_bucket_view")


def try_loop(words: tuple[str, ...], folder: Path, budget_s: float) -> dict[str, Any]:
    """The JSON of ``tb-dlprof try``, with ``status`` and what it wrote to standard error."""
    command = [sys.executable, "-W", "ignore", "-m", "tb_dlprof_plugin.cli.main", "try", "--format", "json"]
    command += ["--record", "none", "--budget", f"{budget_s:.0f}s", "--precision", "5%"]
    command += ["--remedies", ",".join(REMEDIES), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    try:
        return {**json.loads(done.stdout), "status": done.returncode, "said": done.stderr}
    except ValueError:
        return {"status": done.returncode, "said": done.stderr, "rows": []}


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(one): (one.stat().st_mtime_ns, one.stat().st_size) for one in folder.rglob("*")}


def main() -> None:
    """See the module's docstring."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", nargs="*", default=list(LOOPS))
    options.add_argument("--budget", type=float, default=120.0, help="seconds of each trial")
    chosen = options.parse_args()
    bad = 0
    for name in chosen.only:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made, "work")
            shutil.copytree(SCRIPTS, folder)
            before, began = _state(folder), time.monotonic()
            result = try_loop(LOOPS[name], folder, chosen.budget)
            kept = _state(folder) == before
            rows = [row for row in result["rows"] if row.get("gain_percent") is not None and row.get("verdict")]
            said = [f"{row['remedy']} {row['gain_percent']:+.0f} % {row['verdict']}" for row in rows]
            said += [
                f"{row['remedy']}: {row.get('error') or row.get('no_effect') or row.get('not_tried')}"
                for row in result["rows"]
                if row not in rows
            ]
            good = result["status"] == 0 and len(rows) >= 1 and kept
            bad += not good
            print(
                f"{name:22} {'measured' if good else 'FAILED'} in {time.monotonic() - began:.0f} s, files "
                f"{'as before' if kept else 'CHANGED'}: {'; '.join(said) or result['said'].strip()[-600:]} "
                f"{' '.join(result.get('notes') or ())}",
                flush=True,
            )
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
