"""What the planner says of a training's memory beside what it took on a GPU."""
