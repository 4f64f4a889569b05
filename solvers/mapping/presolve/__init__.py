"""What CP-SAT and the MIP do before they state a model.

Intervals close rows and choices that cannot be part of a better mapping, expressions are rewritten so that
their bounds are tight, a dive finds a first mapping, and a given mapping becomes a point of the space.
"""
