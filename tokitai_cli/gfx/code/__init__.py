"""Code objects of gfx11: files in, kernels, facts and instructions out."""
