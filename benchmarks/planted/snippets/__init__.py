"""One small training per rule: ``train(logdir, mended)`` runs it with the fault, or mended, and records it."""
