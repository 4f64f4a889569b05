"""One tree of partial decisions: what it decides, and how its nodes are refined, bounded and opened."""
