"""Rules of the topic "Several GPUs", with the helpers that only they use."""
