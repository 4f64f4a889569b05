"""The Python interface, of which the command line is a client; ``import tilewright as tw`` has its names."""
