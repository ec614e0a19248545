"""Files with AMD machine code: ELF, bundles, code objects, their kernels and parameters."""
