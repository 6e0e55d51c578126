"""The page stays small."""

from __future__ import annotations

import gzip

from lab.browser.first_page import FIRST_PAGE, LIMIT_BYTES
from tb_dlprof_plugin.web.bundle import STATIC


def test_the_pages_take_at_most_their_limit() -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in STATIC.rglob("*.js")}
    # Each of them is there, or the sum would mean nothing.
    assert {part for part in FIRST_PAGE if any(name.startswith(part) for name in sizes)} == set(FIRST_PAGE)
    assert sum(sizes.values()) <= LIMIT_BYTES
