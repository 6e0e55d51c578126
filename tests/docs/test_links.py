"""Links of all committed pages lead to a file and a heading, and the site has every page."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from support.markdown import anchors, links

ROOT = Path(__file__).resolve().parents[2]
BUILT = ("docs/rules/", "docs/definitions.md")
"""What `make docs` makes: nothing that is committed may link to it."""


@pytest.fixture(scope="module")
def pages() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return listed.stdout.split()


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_committed_page_links_to_what_is_not_there_or_is_built(pages: list[str]) -> None:
    assert len(pages) > 20
    for page in pages:
        for link in links((ROOT / page).read_text()):
            target, _, anchor = link.partition("#")
            path = (ROOT / page).parent.joinpath(target).resolve() if target else ROOT / page
            assert path.exists(), f"{page} links to {link}"
            inside = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
            assert not inside.startswith(BUILT), f"{page} links to {link}, which is not committed"
            if anchor and path.suffix == ".md":
                assert anchor in anchors(path.read_text()), f"{page} links to {link}: no such heading"


def test_the_site_has_every_page_of_the_docs(pages: list[str]) -> None:
    menu = set(re.findall(r"[\w/]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert {page.removeprefix("docs/") for page in pages if page.startswith("docs/")} <= menu


def test_links_of_the_site_stay_within_it_where_their_page_is_there(hooks: ModuleType) -> None:
    text = "[a](../CONTRIBUTING.md#style) [b](page.md) [`c`](../demo/train.py) `[d](e.md)` [f](https://example.org)"
    site = "[a](contributing.md#style) [b](page.md) `c` `[d](e.md)` [f](https://example.org)"
    assert hooks.rewritten(text, "docs/running.md", "") == site
    assert "[`c`](https://host/x/blob/main/demo/train.py)" in hooks.rewritten(text, "docs/running.md", "https://host/x")
    assert hooks.rewritten("![](docs/images/tour.webp) [](docs/page.md)", "README.md", "") == (
        "![](images/tour.webp) [](page.md)"
    )
    assert hooks.rewritten("[](../page.md) [](../../README.md)", "docs/tutorials/amp.md", "") == (
        "[](../page.md) [](../index.md)"
    )
    with pytest.raises(FileNotFoundError, match=r"links to gone\.md"):
        hooks.rewritten("[](gone.md)", "docs/running.md", "")


def test_a_page_of_the_site_loads_nothing_from_the_network(hooks: ModuleType) -> None:
    page = SimpleNamespace(url="tutorials/amp.html")
    shim = '<script src="https://unpkg.com/iframe-worker/shim"></script><a href="https://example.org">'
    ours = '<script src="../site_assets/worker_from_disk.js"></script><a href="https://example.org">'
    assert hooks.on_post_page(shim, page, None) == ours
    for tag in ('<script src="https://cdn.example/x.js">', '<link rel="stylesheet" href="https://fonts.example/x">'):
        with pytest.raises(ValueError, match=r"would load https://"):
            hooks.on_post_page(tag, page, None)


def test_llms_txt_lists_the_menu_with_the_markdown_of_each_page(hooks: ModuleType) -> None:
    def page(title: str, address: str) -> SimpleNamespace:
        return SimpleNamespace(title=title, file=SimpleNamespace(src_uri=address))

    menu = [
        SimpleNamespace(title="Start", children=[page("First steps", "index.md")]),
        SimpleNamespace(title="Use", children=[page("The pages", "page.md"), page("AMP", "tutorials/amp.md")]),
    ]
    assert hooks.llms_text("tb_dlprof", "A profiler", "https://host/", menu) == (
        "# tb_dlprof\n\n> A profiler\n\n## Start\n\n- [First steps](https://host/index.md)\n\n## Use\n\n"
        "- [The pages](https://host/page.md)\n- [AMP](https://host/tutorials/amp.md)\n"
    )
    assert "(index.md)" in hooks.llms_text("tb_dlprof", "A profiler", "", menu)
