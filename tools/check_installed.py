"""Checks an installed package as its users have it: version, command, browser bundle, plugin, an analysis.

    python -m venv empty && empty/bin/pip install dist/*.whl && empty/bin/python tools/check_installed.py

It must run with the Python into whose environment the package was installed, and reads a trace of tests/traces.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata, resources
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRACE = ROOT / "tests" / "traces" / "cuda_training.pt.trace.json.gz"


def command(*arguments: str, cwd: str) -> str:
    """What the installed ``tb-dlprof`` prints; a failure ends the check."""
    script = Path(sysconfig.get_path("scripts")) / ("tb-dlprof.exe" if os.name == "nt" else "tb-dlprof")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHONUTF8": "1"}
    done = subprocess.run(
        [str(script), *arguments], cwd=cwd, env=env, capture_output=True, encoding="utf-8", timeout=300
    )
    if done.returncode:
        sys.exit(f"tb-dlprof {' '.join(arguments)} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Entry point of the script; a failed check ends it with a sentence."""
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() not in (ROOT, ROOT / "tools")]
    try:
        package = resources.files("tb_dlprof_plugin")
    except ModuleNotFoundError:
        sys.exit("tb_dlprof_plugin is not installed in this environment.")
    home = Path(str(package))
    if (home.parent / "pyproject.toml").is_file():
        sys.exit("This is the package of a repository, not an installed one.")
    if not package.joinpath("static/index.js").is_file():
        sys.exit("The browser bundle is missing.")
    plugins = {point.name: point for point in metadata.entry_points(group="tensorboard_plugins")}
    if "tb_dlprof" not in plugins:
        sys.exit("TensorBoard would not find the plugin.")
    plugins["tb_dlprof"].load()
    version = metadata.version("tb_dlprof_plugin")
    with tempfile.TemporaryDirectory() as folder:
        if command("--version", cwd=folder).strip() != version:
            sys.exit(f"tb-dlprof --version does not print {version}.")
        command("import", str(TRACE), "--logdir", "runs", "--run", "trace", cwd=folder)
        summary = command("summary", "runs/trace", cwd=folder)
        command("export", "runs/trace", "--html", "run.html", cwd=folder)
        size = Path(folder, "run.html").stat().st_size
    if "GPU" not in summary or size < 100_000:
        sys.exit(f"The summary or the exported page ({size:,} bytes) is not what it should be:\n{summary}")
    print(f"tb_dlprof_plugin {version} in {home} works.")


if __name__ == "__main__":
    main()
