"""The kinds of recordings of `capture_traces.py`, one function each, by what they need: a CPU, a GPU, several."""
