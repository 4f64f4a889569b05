"""Which layers of a network form groups: the cheapest cover."""
