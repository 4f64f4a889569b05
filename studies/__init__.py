"""Measured tables of the documents, each with the command that makes it."""
