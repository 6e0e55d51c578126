"""What `make demo` does: train two small runs here, then show them with the recorded ones in TensorBoard.

The two runs train the same model in FP32 and in mixed precision, on the GPU where there is one. `demo/runs/logdir/`
then holds `trained here/...`, these two with their traces, and `recorded/...`, copies of event files recorded on GPUs:
those of `demo/recorded/`, and some of the tests' that have what those lack. One plain directory is read the same way by
every TensorBoard loader. The address that is printed first compares a
recorded FP32 run with its AMP run; the second one compares the two runs made here.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded"
LOGDIR = HERE / "runs" / "logdir"
EVENT_FILES = "events.out.tfevents.*"
TRAINED = "trained here"
"""Above the runs of this machine."""
OF_TESTS = {
    "gpt/fp32": "energy/recorded/gpt/fp32",
    "gpt/amp-bf16": "energy/recorded/gpt/bf16",
    "gpt/compiled": "compiled/hook/gpt.default",
    "gpt_try/baseline": "tried/gpt_try/baseline",
    "two_ranks": "ranks/recorded/ddp_slow_host",
}
"""Runs with memory and energy, of torch.compile, with a trial, and a job with a slow rank: their names here, and their
folders in `tests/data`."""
RECORDED_PAIR = ("recorded/resnet50/fp32", "recorded/resnet50/amp-fp16")
"""Base and candidate of the comparison that is opened first."""
START_TIMEOUT_S = 120
LISTED_TIMEOUT_S = 60
"""The longest wait for TensorBoard to have read the runs that the printed addresses name."""

Pair = tuple[str, str]


def _parse_args(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train two small runs and show them in TensorBoard.")
    parser.add_argument("--model", default="custom", help="which demo model to train (default custom)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--logdir", type=Path, default=LOGDIR)
    parser.add_argument("--port", type=int, default=6006, help="preferred port; a free one is taken if it is in use")
    parser.add_argument("--host", default="localhost", help="address that TensorBoard listens on")
    parser.add_argument("--no-train", action="store_true", help="only show what is there")
    parser.add_argument("--no-serve", action="store_true", help="only train")
    return parser.parse_args(argv)


def missing() -> str | None:
    """What keeps the demo from running, in one sentence."""
    for module in ("torch", "tensorboard"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is missing: run `make demo`, or install it with `pip install {module}`."
    points = importlib.metadata.entry_points(group="tensorboard_plugins")
    if not any(point.name == "tb_dlprof" for point in points):
        return "tb_dlprof_plugin is not installed: run `make demo`, or `pip install -e .` in the repository."
    spec = importlib.util.find_spec("tb_dlprof_plugin")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not any(Path(folder, "static", "index.js").is_file() for folder in folders):
        return "the browser bundle is missing: run `make demo`, or `npm ci && npm run build` in frontend/."
    return None


def has_gpu() -> bool:
    """Whether torch sees a GPU; asked in another process, so that this one stays free of CUDA."""
    probe = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", probe], stdin=subprocess.DEVNULL).returncode == 0


def train(model: str, precision: str, device: str, logdir: Path) -> None:
    """Train one small run, with its memory recorded."""
    print(f"training {model} in {precision} on the {'GPU' if device == 'cuda' else 'CPU'} ...", flush=True)
    shutil.rmtree(logdir, ignore_errors=True)
    command = [sys.executable, str(HERE / "train.py"), "--model", model, "--precision", precision, "--device", device]
    command += ["--logdir", str(logdir), "--profile-memory"]
    if device == "cpu":
        command.append("--quick")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"demo/run.py: training {model} in {precision} failed:\n{done.stderr.strip()}")
    if not list(logdir.glob(EVENT_FILES)):
        sys.exit(f"demo/run.py: the training of {model} in {precision} left no event file:\n{done.stderr.strip()}")


def trained_pair(logdir: Path, model: str) -> Pair | None:
    """The FP32 run of ``model`` that was made here and its run in mixed precision, if both are there."""
    base, *candidates = (f"{TRAINED}/{model}/{precision}" for precision in ("fp32", "amp-fp16", "amp-bf16"))
    there = [run for run in (base, *candidates) if list((logdir / run).glob(EVENT_FILES))]
    made_ns = {run: (logdir / run).stat().st_mtime_ns for run in there}
    latest = max((run for run in candidates if run in there), key=made_ns.__getitem__, default=None)
    return (base, latest) if base in there and latest else None


def comparison_text(logdir: Path, pair: Pair) -> str:
    """What the Compare page says of the speedup of a pair, and how certain that is."""
    # Only here: the packages that it needs are what `missing` checks.
    import tb_dlprof_plugin

    base, candidate = (tb_dlprof_plugin.read_profiles(logdir / run)[-1] for run in pair)
    page = base.compare(candidate).data
    # An uncertain headline gives the interval itself.
    interval = "" if page.noise else next(iter(page.explanation), "")
    return f"{pair[1]} against {pair[0]}: {page.headline} {interval}".rstrip()


def copy_recorded(target: Path) -> int:
    """Copy the recorded event files to where TensorBoard looks; returns how many runs there are."""
    shutil.rmtree(target, ignore_errors=True)
    folders = {target / path.parent.relative_to(RECORDED): path.parent for path in RECORDED.rglob(EVENT_FILES)}
    folders |= {target / name: HERE.parent / "tests" / "data" / folder for name, folder in OF_TESTS.items()}
    copied = 0
    for copy, folder in sorted(folders.items()):
        files = list(folder.glob(EVENT_FILES))
        if files:
            copy.mkdir(parents=True, exist_ok=True)
            copied += 1
        for path in files:
            shutil.copy2(path, copy)
    return copied


def free_port(preferred: int, host: str) -> int:
    """``preferred``, or a port the system offers when that one is taken."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            chosen: int = probe.getsockname()[1]
            return chosen
    sys.exit(f"demo/run.py: no port can be opened on {host}.")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def compare_address(server: str, pair: Pair) -> str:
    """The address of the Compare page with these two runs."""
    base, candidate = (urllib.parse.quote(run, safe="") for run in pair)
    prefix = "p.tb_dlprof."
    return f"{server}/#tb_dlprof&{prefix}page=compare&{prefix}a.run={base}&{prefix}b.run={candidate}"


_PLACES = (
    ("memory, what fits and energy of a small GPT", "recorded/gpt/fp32", "memory"),
    ("a rank that delays the other", "recorded/two_ranks", "distributed"),
)


def page_address(server: str, page: str, run: str) -> str:
    """The address of a page of one run."""
    prefix = "p.tb_dlprof."
    return f"{server}/#tb_dlprof&{prefix}page={page}&{prefix}run={urllib.parse.quote(run, safe='')}"


def wait_until_listed(server: str, runs: set[str]) -> None:
    """Wait until TensorBoard has read these runs: it answers before."""
    deadline = time.monotonic() + LISTED_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{server}/data/plugin/tb_dlprof/runs", timeout=30) as answer:
                if runs <= {run["run"] for run in json.load(answer)["runs"]}:
                    return
        except (urllib.error.URLError, OSError, ValueError, KeyError):
            pass
        time.sleep(0.2)


def serve(logdir: Path, host: str, port: int, recorded: Pair | None, trained: Pair | None) -> None:
    """Run TensorBoard until Ctrl-C, and print the addresses of the two comparisons as soon as it shows them."""
    server_address = f"http://{host}:{port}"
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--host", host, "--port", str(port)]
    log = logdir.parent / "tensorboard.log"
    with log.open("w", encoding="utf-8") as out:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _answers(f"{server_address}/data/environment"):
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"demo/run.py: TensorBoard did not start; it said:\n{log.read_text(encoding='utf-8').strip()}")
            time.sleep(0.2)
        pairs = [pair for pair in (recorded, trained) if pair is not None]
        wait_until_listed(server_address, {run for pair in pairs for run in pair})
        for pair in pairs:
            what = "trained here" if pair == trained else "recorded on a GPU"
            print(f"\n{pair[1]} against {pair[0]}, {what}:\n\n    {compare_address(server_address, pair)}", flush=True)
        if not pairs:
            print(f"\n    {server_address}/#tb_dlprof", flush=True)
        for what, run, page in _PLACES if recorded else ():
            print(f"\n{what}:\n\n    {page_address(server_address, page, run)}", flush=True)
        print("\nopen an address in a browser; Ctrl-C ends TensorBoard", flush=True)
        server.wait()
    except KeyboardInterrupt:
        print("\nended", flush=True)
    finally:
        server.terminate()
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()


def main(argv: list[str] | None = None) -> None:
    """Entry point of the script."""
    args = _parse_args(argv)
    problem = missing()
    if problem:
        sys.exit(f"demo/run.py: {problem}")
    if not args.no_train:
        device = args.device
        if device == "auto":
            device = "cuda" if has_gpu() else "cpu"
        mixed = "amp-fp16" if device == "cuda" else "amp-bf16"
        for precision in ("fp32", mixed):
            train(args.model, precision, device, args.logdir / TRAINED / args.model / precision)
    trained = trained_pair(args.logdir, args.model)
    if trained and not args.no_train:
        print(comparison_text(args.logdir, trained), flush=True)
    count = copy_recorded(args.logdir / "recorded")
    if count:
        print(f"{count} recorded runs are listed with them", flush=True)
    else:
        print("there are no recorded runs in demo/recorded/: showing the two runs of this machine alone", flush=True)
    if not args.no_serve:
        print("starting TensorBoard ...", flush=True)
        recorded = RECORDED_PAIR if all((args.logdir / run).is_dir() for run in RECORDED_PAIR) else None
        serve(args.logdir, args.host, free_port(args.port, args.host), recorded, trained)


if __name__ == "__main__":
    # A service manager or `kill` ends TensorBoard with it, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nended")
