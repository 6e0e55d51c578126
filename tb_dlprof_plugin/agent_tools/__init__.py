"""The profiler's answers as tools for coding agents: one envelope, intervals with every estimate, sizes that fit."""
