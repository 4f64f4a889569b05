"""What is done before a model is stated, for CP-SAT and the MIP alike.

Intervals close rows and choices that cannot be part of a better mapping, expressions are rewritten so that
their bounds are tight, a dive finds a first mapping, and a given
mapping becomes a point of the space.
"""
