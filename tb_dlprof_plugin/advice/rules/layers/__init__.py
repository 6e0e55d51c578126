"""Rules of the topic "Layers", with the helpers that only they use."""
