"""tokitai verifies GPU kernels against a reference and writes evidence of what was checked."""

__version__ = "0.1.0"
