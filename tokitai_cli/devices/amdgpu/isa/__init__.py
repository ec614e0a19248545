"""AMD machine code: files and bundles in, code objects with kernels, facts and instructions out."""
