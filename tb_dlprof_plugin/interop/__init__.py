"""Copies of recordings for viewers of other projects."""
