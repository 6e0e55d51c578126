"""The Python environment that holds the profilers we compare with; made once, kept in ``lab/speed/.peers``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "peer_programs"
REQUIREMENTS = PROGRAMS / "requirements.txt"
CACHE = Path(__file__).resolve().parent / ".peers"
PACKAGES = ("torch-tb-profiler", "HolisticTraceAnalysis", "pandas", "numpy")


def peers_python(given: Path | None = None) -> Path:
    """The Python that has the peers: the given one, else that of the cache, which is made where it is missing."""
    if given is not None:
        return given
    python = CACHE / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = CACHE / "requirements.txt"
    if not python.exists() or not done.exists() or done.read_text() != REQUIREMENTS.read_text():
        print(f"installing {', '.join(requirements())} into {CACHE} ...", file=sys.stderr, flush=True)
        venv.create(CACHE, clear=True, with_pip=True)
        pip: list[str | Path] = [
            python,
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "-q",
            "-r",
            REQUIREMENTS,
        ]
        installed = subprocess.run(pip, capture_output=True, text=True)
        if installed.returncode:
            sys.exit(f"the peers could not be installed:\n{installed.stderr[-3000:]}")
        done.write_text(REQUIREMENTS.read_text())
    return python


def requirements() -> list[str]:
    """The pinned packages."""
    return [line for line in REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")]


def peer_versions(python: Path) -> dict[str, str]:
    """Versions of the peers and of what they compute with."""
    code = f"import json, importlib.metadata as m; print(json.dumps({{p: m.version(p) for p in {PACKAGES!r}}}))"
    answer = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    versions: dict[str, str] = json.loads(answer.stdout)
    return versions


def peer_settings() -> dict[str, str]:
    """The environment variables that the peers run under: HTA as exact as it can be, and silent."""
    return {**os.environ, "HTA_DISABLE_NS_ROUNDING": "1", "TORCH_PROFILER_LOG_LEVEL": "CRITICAL"}
