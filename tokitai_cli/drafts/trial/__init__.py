"""Drafts that are run once, and changed until their kernels come to their end."""
