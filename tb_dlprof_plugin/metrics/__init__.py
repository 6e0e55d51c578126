"""Computes all totals of a profile over a selection, for pages, advice and reports."""
