"""Chains of segments by dynamic programming: KAPLA's on estimates, Tangram's on costs."""
