"""Programs in C++ for GPUs as a compiler's front end reads them: preprocessed, parsed, modelled."""
