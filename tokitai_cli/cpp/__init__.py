"""What is read of C++: kernels of a source, what they reach, how they use their arrays."""
