"""Schedules of task graphs on systems: the problem, the schedule that every method produces, the evaluator."""
