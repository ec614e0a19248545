"""Verbs and exit codes; everything else is done by other rooms."""
