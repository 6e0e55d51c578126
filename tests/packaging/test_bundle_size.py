"""What a browser loads for the first page stays small; the code of other pages comes after it."""

from __future__ import annotations

import gzip

from lab.browser.first_page import FIRST_PAGE, LIMIT_BYTES
from tb_dlprof_plugin.web.bundle import STATIC


def test_the_first_page_takes_at_most_its_limit() -> None:
    names = {path.name: path for path in STATIC.rglob("*.js")}
    first = {name: path for name, path in names.items() if name.startswith(FIRST_PAGE)}
    # Each of them is there, or the sum would mean nothing.
    assert {part for part in FIRST_PAGE if any(name.startswith(part) for name in first)} == set(FIRST_PAGE)
    assert set(names) - set(first)
    assert sum(len(gzip.compress(path.read_bytes())) for path in first.values()) <= LIMIT_BYTES
