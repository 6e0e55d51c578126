"""The part of ``tb-dlprof try`` in the script's process: applies a remedy from outside and measures blocks of steps.

`remedy` and `remedies` are also imported by the command, which lists them: neither imports torch at module level.
"""
