"""What the product answers about recorded runs, written to a file and compared with what another tree answers.

Only surfaces that outlast a change of the layout are used: TensorBoard's entry point and its routes, the ``tb-dlprof``
command, and the names of the package itself. Where they are is read from the tree's ``pyproject.toml``.
"""
