"""How a kernel's text indexes its arrays: strides, shapes, limits, blocks; each a guess for a draft."""
