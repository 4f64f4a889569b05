"""Systems of several engines that run graphs of layers."""
