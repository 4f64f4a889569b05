"""How a decision is found and proven: exact solvers, bounds and limits."""
