"""What comes of a formula for one case: references and errors, a replay, and wrong outputs."""
