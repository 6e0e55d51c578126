"""First on the PYTHONPATH of the script that ``tb-dlprof run`` starts; contains only a ``sitecustomize``."""
