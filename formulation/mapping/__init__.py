"""One layer on one engine: map space, legality, cost."""
