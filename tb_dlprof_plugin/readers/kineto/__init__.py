"""Trace files in, a Timeline out; one reader per format. What is wrong with a file becomes a note or a `TraceError`."""
