"""Compiled models recorded by the hook: how much of their kernels' time has a module."""
