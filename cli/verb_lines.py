"""What every verb does, in a line of its own help."""

from __future__ import annotations

LINES = {
    "map": "Find the best mapping of every layer of a model, with a bound that proves how good it is.",
    "explore": "Find the best machine among all combinations of some fields' values, with a proof.",
    "schedule": "Schedule networks on the sub-accelerators of a system, or one on a tiled machine, "
    "with a bound.",
    "codesign": "Find the best split of a class's PEs and bandwidth, with a bound over the whole grid "
    "of splits.",
    "bench": "Run methods on suites, prove each optimum, and tell how far from it every method ends.",
    "compare": "Let methods search for the same plan with equal budgets, and tell who wins and what "
    "bound is left.",
    "runs": "List, filter, summarise, export, plot and check the runs of a store.",
    "evaluate": "Evaluate a mapping, schedule or plan: what it breaks (exit code 5), energy and cycles.",
    "check": "Evaluate every mapping or schedule of a result anew and compare its claims (exit "
    "code 5: one fails).",
    "list": "List machines, models, solvers and whatever else there is to choose from.",
    "show": "Show a machine as a tree, a model as a table, a layer as its loops, a mapping as a loop nest.",
    "convert": "Convert files of other programs, and name what does not carry over (docs/convert.md).",
    "doctor": "Check Python, libraries, shipped models and machines, and time a small proof.",
}
"""The first line of every verb's help, so that the program's help loads none of them."""
