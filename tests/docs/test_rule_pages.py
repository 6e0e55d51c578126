"""The pages that `make docs` builds, and the links of those that are written by hand."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tb_dlprof_plugin.advice.engine import all_rules

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BUILT = {"docs/rules", "docs/definitions.md"}
"""What `make docs` makes: nothing that is committed may link to it."""
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rule_pages", DOCS / "rule_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def links(text: str) -> set[str]:
    """Targets of a page's links to files; code has none."""
    text = re.sub(r"```.*?```|`[^`\n]*`(?!\])", "", text, flags=re.DOTALL)
    found = {first or second for first, second in _LINK.findall(text)}
    return {target.partition("#")[0] for target in found if "://" not in target and not target.startswith("#")}


@pytest.mark.slow
def test_every_rule_has_a_page_and_all_links_lead_somewhere(generator: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "old_rule.md").write_text("# A rule that is gone\n")
    generator.main(["--out", str(tmp_path)])
    pages = {path.name: path.read_text() for path in tmp_path.glob("*.md")}
    assert {*pages} == {f"{one.rule.id}.md" for one in all_rules()} | {"README.md"}
    for name, text in pages.items():
        missing = {link for link in links(text) if link not in pages and not (DOCS / "rules" / link).resolve().exists()}
        assert not missing, name
        assert name == "README.md" or "## Example" in text, f"{name} has no recorded example"


def test_no_committed_page_links_to_what_is_not_there_or_is_built() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    pages = [ROOT / name for name in listed.stdout.split()]
    assert len(pages) > 20
    for page in pages:
        for link in links(page.read_text()):
            target = (page.parent / link).resolve()
            assert target.exists(), f"{page.relative_to(ROOT)} links to {link}"
            inside = target.relative_to(ROOT).as_posix() if target.is_relative_to(ROOT) else ""
            assert not any(inside == built or inside.startswith(f"{built}/") for built in BUILT), f"{page}: {link}"
