"""A compiler for the numeric kernels: typed Python functions as machine code, by llvmlite alone."""
