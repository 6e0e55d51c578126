"""One small training per rule: ``train(logdir, fixed)`` runs it with the fault, or fixed, and records it."""
