"""Verbs and exit codes; everything else is done by the pipeline."""
