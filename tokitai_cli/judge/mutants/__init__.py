"""Wrong outputs: made of references, formulas and zeroed inputs, and tried on the checks."""
