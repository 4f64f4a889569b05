"""Runs of Gemmini's library: mapping texts of its measurements, what a run does, and how long it takes."""
