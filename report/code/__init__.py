"""Answers as something to run: loop nests, calls of libraries, scripts for compilers."""
