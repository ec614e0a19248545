"""Kernels of real programs: what a source declares, what its kernels reach, and the rest left out.

Imported part by part: a warm run needs `source_files` alone.
"""
