"""Measurements behind docs/internals/performance.md: each compares two things within one run."""
