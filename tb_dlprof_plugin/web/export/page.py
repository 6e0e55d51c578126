"""Builds one HTML file from responses and the browser bundle; it needs no server and sends no requests.

Untrusted names (of runs, modules, kernels) are stored as base64 of gzip, or as JSON without a "<": no name can close
its element. The content security policy allows one script, identified by its hash, and the code that this script loads
from the file; it forbids every connection.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.version import __version__
from tb_dlprof_plugin.web.export.answers import AnswerBlock, AnsweredRuns
from tb_dlprof_plugin.web.export.bundle import chunks, licences

_HERE = Path(__file__).parent
_POLICY = (
    "default-src 'none'",
    "script-src '{boot}' blob:",
    "style-src 'unsafe-inline'",
    "img-src data: blob:",
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
)


class PageExportError(VisibleMessage):
    """The file cannot be built; the message says why and what to do."""


class _Place(msgspec.Struct, frozen=True):
    """The requests that the block of the same index answers."""

    route: str
    runs: tuple[str, ...]


class _Contents(msgspec.Struct, frozen=True):
    title: str
    made: str
    version: str
    blocks: list[_Place]


@dataclass(frozen=True, slots=True)
class Made:
    """The file's text; the size of the page's code in it, and of the responses by run."""

    text: str
    code_bytes: int
    answer_bytes: dict[tuple[str, ...], int]


def html_file(answered: AnsweredRuns, title: str, made: datetime) -> Made:
    """The file.

    Raises:
        ExportError: the browser bundle is not built.
    """
    modules = chunks()
    if not modules:
        raise PageExportError(
            "the browser page is not built: run `make frontend` in the repository, or install the package again"
        )
    contents = _Contents(
        title,
        made.isoformat(timespec="seconds"),
        __version__,
        [_Place(block.route, block.runs) for block in answered.blocks],
    )
    code = [_script("data-module", name, gzip.compress(text.encode(), 9, mtime=0)) for name, text in modules.items()]
    data = [_script("id", f"dlprof-block-{place}", block.data) for place, block in enumerate(answered.blocks)]
    listed = f'<script type="application/json" id="dlprof-contents">{script_json(contents)}</script>'
    boot = (_HERE / "boot.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(boot.encode()).digest()).decode()
    parts = {
        "policy": "; ".join(_POLICY).format(boot=f"sha256-{digest}"),
        "generator": f"tb_dlprof_plugin {__version__}",
        "title": html.escape(title),
        "data": "\n".join((listed, *data, *code)),
        "licences": script_text(licences()),
        "boot": boot,
    }
    text = (_HERE / "page.html").read_text("utf-8")
    # Put together piece by piece: a title that looks like a placeholder stays a title.
    pieces = text.split("@")
    whole = "".join(parts.get(piece, piece) if place % 2 else piece for place, piece in enumerate(pieces))
    return Made(whole, sum(map(len, code)), _bytes_by_runs(answered.blocks, data))


def script_json(value: object) -> str:
    """JSON for a script element, safe for any names in it: no "<", and no end of line for JavaScript."""
    text = msgspec.json.encode(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def script_text(text: str) -> str:
    """A trusted text for a script element."""
    return text.replace("</", "<\\/").replace("<!--", "<\\!--")


def _script(attribute: str, value: str, packed: bytes) -> str:
    text = base64.b64encode(packed).decode()
    return f'<script type="application/json" {attribute}="{html.escape(value)}">"{text}"</script>'


def _bytes_by_runs(blocks: Sequence[AnswerBlock], data: Sequence[str]) -> dict[tuple[str, ...], int]:
    sizes: dict[tuple[str, ...], int] = {}
    for block, text in zip(blocks, data, strict=True):
        sizes[block.runs] = sizes.get(block.runs, 0) + len(text)
    return sizes
