"""What every verb does, in a line of its own help."""

from __future__ import annotations

LINES = {
    "map": "Find the best mapping of every layer of a model, with a bound that proves how good it is.",
    "explore": "Find the best machine among all combinations of some fields' values, with a proof.",
    "schedule": "Schedule networks on the sub-accelerators of a system, or one on a tiled machine, "
    "with a bound.",
    "codesign": "Find the best split of a class's PEs and bandwidth, with a bound over the whole grid "
    "of splits.",
    "bench": "Run methods on suites and compare each answer with the proven optimum.",
    "compare": "Compare methods on one tiled machine with equal budgets, and rank them.",
    "runs": "List, filter, summarise, export, plot and check the runs of a store.",
    "evaluate": "Evaluate a mapping, schedule or plan: violations (exit code 5), energy and cycles.",
    "check": "Evaluate all mappings or schedules of a result and compare its claims (exit code 5: one "
    "fails).",
    "list": "List machines, models, solvers, methods and other names.",
    "show": "Show a machine as a tree, a model as a table, a layer as its loops, a mapping as a loop nest.",
    "convert": "Convert files of other programs and list the losses (docs/convert.md).",
    "emit": "Write a mapping as NumPy loops, a call of Gemmini's library, MLIR or JSON (docs/emit.md).",
    "doctor": "Check Python, libraries, models and machines, and time a small proof; or look at a machine.",
}
"""The first line of every verb's help, so that the program's help loads none of them."""
