"""How much of the time each stage of the proof of a round plan may take, and how large its models may be."""

from __future__ import annotations

from fractions import Fraction

from tilewright.solvers.scheduling.tiled.exact.counts import alike, twins

ANNEALS, ANNEAL_SHARE = 1, 0.35
"""Annealings of the best plan, one after the other, and the part of the time left that they may take."""

ANNEALS_PRICED, ANNEAL_SHARE_PRICED = 2, 0.6
"""The same where energy counts, on which windows and orders say little."""

EARLY_ANNEALS, EARLY_ANNEAL_SHARE = 4, 0.25
"""Annealings before sequences are priced by the best plan, and the part of the time left they may take."""

RESTARTS, RESTART_SHARE = 6, 0.5
"""Annealings of the same first plan after that: they soon are where they end, but few end near the best."""

ANNEAL_FROM = 12
"""Atoms from which on it is of use: fewer are proven at once."""

TRIALS = 1_000
"""Changes per atom, at most."""

HEAT = 0.002
"""Temperature at first, as a relative change of the objective."""

ORDERS = 0.7
"""Part of the changes that move an atom."""

REPAIRS = 20
"""Changes of transfers by which a plan with an atom moved settles before it is judged."""

CHANGES = 2
"""Changes per pair of transfers where order and places stand."""

SEQUENCE_SHARE, FINER_SHARE = 0.4, 0.4
"""Part of the time left that sequences of rounds may take, and of that the next of them; for cycles alone the
last of them may take all of it."""

CYCLES_SHARE = 0.1
"""Part of the time left that those for cycles alone may take where energy counts."""

LINE_SHARE = 0.25
"""Part of the time left that sequences may take for energy and cycles together."""

SEQUENCES = ((alike, 40), (twins, 40), (alike, 1000), (twins, 1000), (alike, 30_000))
"""How tasks are put together, and in how many ways the blocks that are counted may have been fetched."""

SPARE = 2
"""Rounds beyond those of the best sequence, or the fewest possible, in which a first order is sought."""

TARGETS = (Fraction(0), Fraction(1, 4), Fraction(1))
"""Orders are sought that close so much of the gap, but for this part of it, one after the other."""

TARGET_SHARE = 0.15
"""Part of the time left that the first of them may take."""

FIRST_SHARE = 0.08
"""Part of the time left that each of the others may take."""

ORDERS_SHARE = 0.5
"""Part of the time left that the relaxation may take."""

FIXED_SHARE = 0.08
"""Part of the time left after it that placing its order may take: once within the order's own cycles, and
once within those of the best plan."""

POLISH_SHARE = 0.35
"""Part of the time left that improving the best plan by windows of its rounds may take."""

POLISH_SHARE_PRICED = 0.6
"""The same where energy counts, on which orders say little."""

FEWEST_OPEN = 2
"""Rounds that are open at first."""

LONGEST_WINDOW = 3.0
"""Seconds that one window may take."""

CLOSING_SHARE = 0.3
"""The same of an order that the relaxation gives no more than the bound."""

EARLY_DECISIONS = 5_000
"""Movements up to which the whole statement is tried early."""

EARLY_SHARE = 0.4
"""Part of the time left that this may take."""

MOST_DECISIONS = 200_000
"""Movements that the whole statement may decide, at most: beyond, only the relaxation is solved."""

LOADS_SHARE, LONGEST_LOADS = 0.05, 5.0
"""Part of the time left, and seconds at most, that the energy of engines with limited loads may take."""
