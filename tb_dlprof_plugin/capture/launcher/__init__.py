"""The part of ``tb-dlprof run`` in the script's process: does from outside what a script would do with `profile`.

The folder `inject` comes first on PYTHONPATH, so that every Python process of the script runs its ``sitecustomize``.
That waits for ``import torch`` and then calls `attach.attach`. From there on torch's own hooks mark the iterations
(`recorder`). Of JAX and TensorFlow `xplane` counts the calls of compiled functions. Nothing here raises into the
script.
"""
