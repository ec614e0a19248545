"""The batch under way: tasks in a queue, workers that answer them, and results that are kept."""
