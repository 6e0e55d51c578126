"""Reads torch's snapshots of GPU memory, and what the hook writes of a failed allocation."""
