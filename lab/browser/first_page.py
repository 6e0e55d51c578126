"""What a browser loads for the first page, and how much it may be."""

from __future__ import annotations

LIMIT_BYTES = 300_000
"""Of its code, by gzip."""
FIRST_PAGE = ("index", "preload", "mount", "shared", "echarts")
"""Chunks that the Summary needs; the other pages' are loaded once it is drawn."""
