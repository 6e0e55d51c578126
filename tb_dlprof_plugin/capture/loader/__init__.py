"""Measures a DataLoader from inside: `meter` where batches are made, `ring` to the training process, `watch` there."""
