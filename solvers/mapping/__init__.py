"""One layer on one engine, proven."""
