"""What a function's body does with its arrays: one walk over its tree, names standing for values."""
