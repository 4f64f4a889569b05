"""Order, placement and residency of an atomic DAG together, proven; rounds placed together."""
