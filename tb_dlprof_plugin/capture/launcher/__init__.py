"""``tb-dlprof run``, the part in the script's process: what a script would do with `profile`, done from outside.

The folder `inject` comes first on PYTHONPATH, so that every Python of the script, whoever starts it, runs the
``sitecustomize`` in it. That waits for ``import torch`` and then calls `arm.arm`. From there on hooks of torch's own
say where the iterations are (`recorder`). Nothing in here raises into the script.
"""
