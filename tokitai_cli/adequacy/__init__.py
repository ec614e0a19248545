"""Whether a spec would notice a wrong kernel: changed kernels, changed formulas, missing shapes."""
