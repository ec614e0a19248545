"""The host's side of a program: launches, and what they hand to kernels."""
