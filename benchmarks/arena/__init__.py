"""The arena: methods for tiled machines on one network, one machine and one evaluator, with equal budgets."""
