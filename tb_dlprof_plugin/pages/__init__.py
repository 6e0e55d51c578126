"""Builds the typed data of each page from a profile and a selection: one file per page.

The TensorBoard page, the ``tb-dlprof`` command and the reports print the return values of these functions, so that no
number is computed twice. The TypeScript types of the frontend are generated from the structs here (`typescript.py`).
"""
