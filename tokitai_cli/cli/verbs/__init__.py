"""A file a verb: each unpacks its arguments, calls one function, and names an exit code."""
