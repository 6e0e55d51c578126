"""What a browser loads for the first page, and how much all pages may be."""

from __future__ import annotations

LIMIT_BYTES = 200_000
"""Of the code of all pages, by gzip."""
FIRST_PAGE = ("index", "preload", "mount", "shared")
"""Chunks that the Summary needs; the other pages' are loaded once it is drawn."""
