"""Hooks of mkdocs.yml: pages of the site that are outside docs/, links to files that are not part of it, its scripts.

README.md, CONTRIBUTING.md, CHANGELOG.md and demo/README.md become pages. A link to another file of the repository leads
to the repository's address (``extra.repository``) if there is one; otherwise its text remains. A link to a file that
does not exist ends the build, and so does a page that would load something from the network.

For language models, llms.txt (https://llmstxt.org) lists the pages as Markdown, which lies next to each page.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "demo/README.md": "demo.md",
}
"""Address in the repository, address in the site."""
_LINK_OR_CODE = re.compile(
    r"^ *```.*?^ *```|`[^`\n]+`|(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL | re.MULTILINE,
)

_menu: list[Any] = []
_texts: dict[str, str] = {}
"""Of this build: the menu, and the Markdown of each page by its address."""

_FROM_DISK = ("https://unpkg.com/iframe-worker/shim", "site_assets/worker_from_disk.js")
"""The script by which mkdocs-material's search works from disk, and ours in its place, which needs no network."""
_LOADED = re.compile(r"<(?:script|img|link rel=\"(?:stylesheet|preload|icon)\")[^>]*(?:src|href)=\"?(https?:[^\"> ]+)")


def on_files(files: Files, config: Any) -> Files:
    """Adds `PAGES` to the files of the site."""
    from mkdocs.structure.files import File

    for source, address in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, address, content=rewritten(text, source, config["extra"]["repository"])))
    return files


def on_nav(nav: Navigation, **_: Any) -> None:
    """Keeps the menu for llms.txt."""
    _menu[:] = nav.items


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Rewrites the links of a page in docs/."""
    address = page.file.src_uri
    if address not in PAGES.values():
        markdown = rewritten(markdown, f"docs/{address}", config["extra"]["repository"])
    _texts[address] = markdown
    return markdown


def on_post_build(config: Any) -> None:
    """Writes llms.txt, and each page as Markdown."""
    site = Path(config["site_dir"])
    for address, text in _texts.items():
        place = site / address
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    text = llms_text(config["site_name"], config["site_description"], config["site_url"] or "", _menu)
    (site / "llms.txt").write_text(text, encoding="utf-8")


def llms_text(name: str, description: str, site_url: str, menu: Iterable[Any]) -> str:
    """The text of llms.txt: a section for each part of the menu, with links to the Markdown of its pages.

    Args:
        name, description: of the site.
        site_url: its address with a slash at its end; "": links are relative.
        menu: sections with ``children``, which are pages with ``title`` and ``file``.
    """
    lines = [f"# {name}", "", f"> {description}"]
    for section in menu:
        lines += ["", f"## {section.title}", ""]
        lines += [f"- [{page.title}]({site_url}{page.file.src_uri})" for page in section.children]
    return "\n".join(lines) + "\n"


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The page with all its scripts from the site.

    Raises:
        ValueError: it would load something from the network.
    """
    address = os.path.relpath(_FROM_DISK[1], posixpath.dirname(page.url) or ".").replace(os.sep, "/")
    output = output.replace(_FROM_DISK[0], address)
    elsewhere = _LOADED.findall(output)
    if elsewhere:
        raise ValueError(f"{page.url} would load {', '.join(elsewhere)}.")
    return output


def rewritten(text: str, source: str, repository: str) -> str:
    """The text of ``source`` (an address in the repository) with links as the site needs them.

    Raises:
        FileNotFoundError: a link leads to a file that does not exist.
    """
    here = posixpath.dirname(PAGES[source]) if source in PAGES else posixpath.dirname(source).removeprefix("docs")
    return _LINK_OR_CODE.sub(lambda found: _link(found, source, here.strip("/"), repository), text)


def _link(found: re.Match[str], source: str, here: str, repository: str) -> str:
    target, hash_sign, anchor = (found["target"] or "").partition("#")
    if not target or "://" in target or target.startswith("mailto:"):
        return found[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if not (ROOT / path).exists() and not path.startswith(("docs/rules/", "docs/definitions.md")):
        raise FileNotFoundError(f"{source} links to {target}, which does not exist.")
    if path in PAGES:
        address = PAGES[path]
    elif path.startswith("docs/") and not path.endswith(".py"):
        address = path.removeprefix("docs/")
    elif repository:
        return f"{found['image']}[{found['text']}]({repository.rstrip('/')}/blob/main/{path}{hash_sign}{anchor})"
    else:
        return found["text"]
    relative = os.path.relpath(address, here or ".").replace(os.sep, "/")
    return f"{found['image']}[{found['text']}]({relative}{hash_sign}{anchor})"
