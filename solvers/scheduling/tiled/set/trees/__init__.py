"""All trees over the layers of a small network: subtrees by class and place, and what bounds them."""
