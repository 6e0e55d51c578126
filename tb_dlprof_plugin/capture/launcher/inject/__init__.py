"""Comes first on PYTHONPATH of the script that ``tb-dlprof run`` starts; holds a ``sitecustomize`` and no more."""
