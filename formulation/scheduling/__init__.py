"""Schedules of task graphs on systems: the problem, what every method produces, the evaluator."""
