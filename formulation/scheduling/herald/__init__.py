"""Schedules of task graphs on heterogeneous sub-accelerators: problem, schedule, evaluator."""
