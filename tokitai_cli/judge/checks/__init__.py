"""Checks of a spec on one output: what each metric measures, and its tally over chunks."""
