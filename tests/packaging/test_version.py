"""One version everywhere, and the release workflow builds and checks what the repository has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import tb_dlprof_plugin

ROOT = Path(__file__).resolve().parents[2]
RELEASE = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")


def test_manifests_for_agents_have_the_version_and_the_skill() -> None:
    files = (".claude-plugin/plugin.json", ".codex-plugin/plugin.json", "gemini-extension.json")
    manifests = [json.loads((ROOT / file).read_text()) for file in files]
    assert {(one["name"], one["version"]) for one in manifests} == {("tb-dlprof", tb_dlprof_plugin.__version__)}
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text())
    assert [(one["name"], one["source"]) for one in market["plugins"]] == [("tb-dlprof", "./")]
    assert (ROOT / manifests[1]["skills"] / "tb-dlprof" / "SKILL.md").is_file()


def test_the_citation_and_the_changelog_have_the_version() -> None:
    version = re.escape(tb_dlprof_plugin.__version__)
    assert re.search(rf"^version: {version}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert re.search(rf"^## \[{version}\] - ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_documented_schema_is_the_one_that_is_written() -> None:
    from tb_dlprof_plugin.model.profile import SCHEMA_VERSION

    assert f"at present {SCHEMA_VERSION} " in (ROOT / "docs" / "versions.md").read_text()


def test_the_release_runs_scripts_that_are_there_and_publishes_only_what_was_tested() -> None:
    scripts = set(re.findall(r"tools/\w+\.py", RELEASE))
    assert scripts == {"tools/check_installed.py"}
    assert all((ROOT / script).is_file() for script in scripts)
    publish = RELEASE.partition("\n  publish:\n")[2]
    assert "needs: test" in publish
    assert "id-token: write" in publish
    assert "secrets." not in RELEASE
