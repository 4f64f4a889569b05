"""Trees of fused layers: skeletons, residents, turns, and what a tree costs."""
