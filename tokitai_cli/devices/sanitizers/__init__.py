"""What watches kernels while they run: checks of the cpu device, compute-sanitizer, coverage."""
