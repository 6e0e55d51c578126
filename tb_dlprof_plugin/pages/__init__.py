"""Profile and selection in, typed page data out: one file per page of the plugin.

The TensorBoard page, the ``tb-dlprof`` command and the reports print what these functions return, so that no number is
computed twice. The TypeScript types of the frontend are generated from the structs here (`typescript.py`).
"""
