"""Facts of a run that the training process reads: of its machine, its settings, its model and its memory."""
