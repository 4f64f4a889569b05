"""One layer: its operator, and the ways to write one down."""
