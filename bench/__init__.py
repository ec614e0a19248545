"""Measurements behind docs/performance.md: each compares two things within one run."""
