"""The browser bundle's chunks that a file needs, each after those that it imports."""

from __future__ import annotations

import re
from pathlib import Path

from tb_dlprof_plugin.web.bundle import STATIC

_IMPORTED = re.compile(r'"\./([\w.-]+\.js)"')
_ENTRY = "standalone-*.js"
LICENCES = "third-party-licenses.txt"


def chunks(static: Path = STATIC) -> dict[str, str]:
    """Name to text of the chunks, the entry last; empty where the bundle is not built."""
    assets = static / "assets"
    entries = sorted(assets.glob(_ENTRY)) if assets.is_dir() else []
    found: dict[str, str] = {}

    def add(path: Path) -> None:
        text = path.read_text("utf-8")
        for name in _IMPORTED.findall(text):
            if name not in found and name != path.name and (assets / name).is_file():
                add(assets / name)
        found[path.name] = text

    if entries:
        add(entries[-1])
    return found


def licences(static: Path = STATIC) -> str:
    """The licence texts of what is in the bundle; empty where the bundle is not built."""
    path = static / "assets" / LICENCES
    return path.read_text("utf-8") if path.is_file() else ""
