"""Schedules by lists, rules of dispatching and engines' sequences, improved step by step in machine code."""
