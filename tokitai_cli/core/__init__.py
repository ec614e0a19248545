"""The ground floor: data between stages, numbers, sizes, children, files."""
