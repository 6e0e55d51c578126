"""Facts of a run: what the training process alone knows of its machine, its settings, its model and its memory."""
