"""FP32, TF32 and AMP runs of the same models: recorded on a GPU, then matched, explained and forecast."""
