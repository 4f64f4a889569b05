"""Answers beyond one best mapping: fronts, the k best, all optima, second opinions, reasons for none."""
