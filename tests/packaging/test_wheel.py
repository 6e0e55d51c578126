"""What `pip install` gets: the browser bundle, the generated code, the entry points, and nothing of the workshop.

The wheel is built from a copy of the tree, without build isolation, so that nothing is downloaded and the tree stays
as it is.
"""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tb_dlprof_plugin.version import PUBLISHED

ROOT = Path(__file__).resolve().parents[2]
WORKSHOP = (
    ".git",
    ".venv",
    ".make",
    "node_modules",
    "build",
    "dist",
    "*.egg-info",
    "__pycache__",
    "runs",
    "recorded",
    ".*",
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the repository holds, with the bundle that is built before the tests run."""
    assert (ROOT / "tb_dlprof_plugin/static/index.js").is_file(), "build the bundle first: npm run build in frontend/"
    copy = tmp_path_factory.mktemp("tree") / "tb_dlprof_plugin"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*WORKSHOP))
    bundle = copy / "tb_dlprof_plugin/static/index.js"
    bundle.touch()  # a source edited since `make test` built the bundle must not start npm here
    return copy


def _build(kind: str, source: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=source.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    return _build("wheel", tree, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of this tree."""
    return _build("sdist", tree, tmp_path_factory.mktemp("sdist"))


def _names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.mark.slow
def test_the_wheel_holds_the_whole_browser_bundle(tree: Path, wheel: Path) -> None:
    static = {
        path.relative_to(tree).as_posix() for path in (tree / "tb_dlprof_plugin/static").rglob("*") if path.is_file()
    }
    assert "tb_dlprof_plugin/static/index.js" in static
    assert static <= set(_names(wheel))


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_the_generated_code(tree: Path, wheel: Path) -> None:
    modules = {path.relative_to(tree).as_posix() for path in (tree / "tb_dlprof_plugin").rglob("*.py")}
    assert "tb_dlprof_plugin/readers/xplane/xplane_pb2.py" in modules
    modules |= {f"tb_dlprof_plugin/web/export/{name}" for name in ("page.html", "boot.js")}
    modules.add("tb_dlprof_plugin/cli/help.json")
    assert modules <= set(_names(wheel))


@pytest.mark.slow
def test_the_wheel_holds_only_the_package(wheel: Path) -> None:
    assert {name.split("/")[0].split("-")[0] for name in _names(wheel)} == {"tb_dlprof_plugin"}
    assert not [name for name in _names(wheel) if "node_modules" in name or name.endswith((".ts", ".tsx"))]


@pytest.mark.slow
def test_the_wheel_announces_the_plugin_and_the_command(wheel: Path) -> None:
    name = next(name for name in _names(wheel) if name.endswith(".dist-info/entry_points.txt"))
    points = configparser.ConfigParser()
    with zipfile.ZipFile(wheel) as archive:
        points.read_string(archive.read(name).decode())
    assert dict(points["tensorboard_plugins"]) == {"tb_dlprof": "tb_dlprof_plugin.loader:Loader"}
    assert dict(points["console_scripts"]) == {"tb-dlprof": "tb_dlprof_plugin.cli.main:main"}


@pytest.mark.slow
def test_the_wheel_bears_the_version_and_needs_no_torch(wheel: Path) -> None:
    from tb_dlprof_plugin.version import __version__

    name = next(name for name in _names(wheel) if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(name).decode()
    assert f"\nVersion: {__version__}\n" in metadata
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert any(line.startswith("Requires-Dist: tensorboard>=2.14.1") for line in needed)
    assert not any("torch" in line for line in needed)


@pytest.mark.long
def test_a_source_distribution_brings_the_finished_bundle_and_builds_without_npm(
    sdist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.unpack_archive(sdist, tmp_path / "unpacked", "gztar")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert (source / "tb_dlprof_plugin/static/index.js").is_file()
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert "tb_dlprof_plugin/static/index.js" in _names(_build("wheel", source, tmp_path / "wheel"))


@pytest.mark.slow
def test_without_npm_and_without_a_bundle_the_build_says_so_in_one_sentence(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(tree, bare, ignore=shutil.ignore_patterns("static"))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    command = [sys.executable, "setup.py", "--quiet", "build_py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=bare)
    assert done.returncode != 0
    assert "needs npm (Node.js 20 or newer)" in done.stderr
    assert ("`pip install tb-dlprof-plugin`" if PUBLISHED else "a wheel that `pip wheel") in done.stderr
    assert "Traceback" not in done.stderr
