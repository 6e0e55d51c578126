"""Pages as JSON responses of at most 1 MB: notebook proxies cut larger ones."""

from __future__ import annotations

import gzip
import time
from dataclasses import dataclass

import msgspec
from werkzeug.http import http_date
from werkzeug.wrappers import Request, Response

from tb_dlprof_plugin.web.errors import RequestError


@dataclass(frozen=True, slots=True)
class Answer:
    """JSON, packed with gzip, and the tag by which a browser knows it.

    ``complete`` is False for a part of a table of runs that are still being read.
    """

    packed: bytes
    etag: str
    complete: bool


MAX_RESPONSE_BYTES = 1_000_000
PACKING_LEVEL = 3
"""Of gzip, as TensorBoard's own answers have it."""
_TEXTS = ("application/json", "image/svg+xml")
_SHORTEST_ROW = 50
"""Least bytes of a row: more rows would be encoded only to be cut off."""


_TABLES = ("rows", "ops", "runs")


def encode_page(page: msgspec.Struct, offset: int = 0) -> bytes:
    """A page as JSON; where it is too large, its table is shortened (``total_rows`` or ``total`` still counts all).

    Args:
        page: the page.
        offset: rows of that table that were sent before, and are left out; a page with an ``offset`` of its own begins
            there already.

    Raises:
        RequestError: it is too large without its table.
    """
    return encode_piece(page, offset)[0]


def encode_piece(page: msgspec.Struct, offset: int = 0) -> tuple[bytes, bool]:
    """`encode_page`, and whether rows are left for another answer."""
    table = next((name for name in _TABLES if isinstance(getattr(page, name, None), list)), None)
    # Most tables fit as a whole; of one that does not, as many rows are tried as would fit if they were short.
    first = 0 if hasattr(page, "offset") else offset
    whole = getattr(page, table)[first:] if table else []
    rows = whole[: MAX_RESPONSE_BYTES // _SHORTEST_ROW]
    data = _encode(page, table, rows)
    while len(data) > MAX_RESPONSE_BYTES:
        if not rows:
            raise RequestError(
                422,
                f"This page would take {len(data) / 1e6:.1f} MB, and an answer has at most 1 MB, because notebook "
                "proxies cut longer ones; pick fewer iterations, or take the same from tb-dlprof.",
            )
        rows = rows[: max(0, min(len(rows) - 1, int(len(rows) * 0.95 * MAX_RESPONSE_BYTES / len(data))))]
        data = _encode(page, table, rows)
    return data, len(rows) < len(whole)


def _encode(page: msgspec.Struct, table: str | None, rows: list[object]) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(page, **{table: rows}) if table else page)


def response(
    request: Request,
    content: bytes,
    kind: str,
    status: int = 200,
    kept_s: int = 0,
    is_packed: bool = False,
    policy: str | None = None,
) -> Response:
    """A response with these bytes, text compressed where the browser allows, whichever server sends it.

    Args:
        request: what is answered; HEAD gets no body.
        content: the bytes.
        kind: their media type, without a charset: text is UTF-8.
        status: of HTTP.
        kept_s: how long the browser may keep it (s); by default it asks each time.
        is_packed: whether the bytes are compressed with gzip already.
        policy: of a document, which content it may have.
    """
    is_text = kind in _TEXTS or kind.startswith("text/")
    accepts = request.accept_encodings["gzip"] > 0
    if is_packed and not accepts:
        content, is_packed = gzip.decompress(content), False
    elif is_text and not is_packed and accepts:
        content, is_packed = gzip.compress(content, PACKING_LEVEL, mtime=0), True
    headers = [("Content-Length", str(len(content))), ("X-Content-Type-Options", "nosniff")]
    if is_packed:
        headers.append(("Content-Encoding", "gzip"))
    if kept_s:
        headers.append(("Expires", http_date(time.time() + kept_s)))
    # Never by a proxy on the way.
    headers.append(("Cache-Control", f"private, max-age={kept_s}" if kept_s else "no-cache, must-revalidate"))
    if policy is not None:
        headers.append(("Content-Security-Policy", policy))
    charset = "; charset=utf-8" if is_text and kind != "application/json" else ""
    body = None if request.method == "HEAD" else content
    return Response(body, status, headers, content_type=kind + charset)


def respond(request: Request, data: bytes, status: int = 200) -> Response:
    """A JSON response, compressed where the browser allows."""
    return response(request, data, "application/json", status)


def respond_answer(request: Request, answer: Answer) -> Response:
    """An answer that is packed already; 304 without a body where the browser has the same one."""
    result = response(request, answer.packed, "application/json", is_packed=True)
    result.set_etag(answer.etag)
    result.make_conditional(request)
    return result


def respond_piece(request: Request, data: bytes) -> Response:
    """A part of a file, unchanged."""
    # A trace is compressed on the way, a gzip file is not again. A charset would have text transcoded. An HTML file is
    # saved: as a page of this server it would run with its rights.
    is_trace = request.args.get("name", "").endswith(".json")
    return response(request, data, "application/json" if is_trace else "application/octet-stream")


def respond_error(request: Request, status: int, message: str) -> Response:
    """``{"error": message}``."""
    return respond(request, msgspec.json.encode({"error": message}), status)
