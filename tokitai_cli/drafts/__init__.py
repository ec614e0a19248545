"""Specs drafted from a kernel's text: what it tells, guesses that say so, and what is missing."""
