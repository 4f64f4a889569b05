"""Herald's scheduler and its ways to sample partitions."""
