"""The frontend bundle as a fixed map from route to file: paths from requests are never used on the file system."""

from __future__ import annotations

import mimetypes
from pathlib import Path

STATIC = Path(__file__).resolve().parent.parent / "static"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}
_NOT_BUILT = b"""export function render() {
  document.body.textContent =
    "The frontend of tb_dlprof_plugin is not built. Run `make frontend` in its repository, or `pip install .` again.";
}
"""


def bundle_files(static: Path = STATIC) -> dict[str, Path]:
    """Route ("/index.js") to file, for every file of the built bundle; empty where it is not built."""
    if not static.is_dir():
        return {}
    return {"/" + path.relative_to(static).as_posix(): path for path in sorted(static.rglob("*")) if path.is_file()}


def content_of(files: dict[str, Path], route: str) -> tuple[bytes, str]:
    """Bytes and type of a bundle file; a placeholder page if the bundle is not built."""
    if route not in files:
        return _NOT_BUILT, _TYPES[".js"]
    path = files[route]
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return path.read_bytes(), kind
