"""The pages of the rules that `make docs` builds."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from support.markdown import links

from tb_dlprof_plugin.advice.engine import all_rules

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rule_pages", DOCS / "rule_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_every_rule_has_a_page_and_all_links_lead_somewhere(generator: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "old_rule.md").write_text("# A rule that is gone\n")
    generator.main(["--out", str(tmp_path)])
    pages = {path.name: path.read_text() for path in tmp_path.glob("*.md")}
    assert {*pages} == {f"{one.rule.id}.md" for one in all_rules()} | {"README.md"}
    for name, text in pages.items():
        files = {link.partition("#")[0] for link in links(text)} - {""}
        missing = {link for link in files if link not in pages and not (DOCS / "rules" / link).resolve().exists()}
        assert not missing, name
        assert name == "README.md" or "## Example" in text, f"{name} has no recorded example"
