"""Reads Kineto's trace files into a Timeline. Faults of a file become notes or a `TraceError`."""
