"""SET's annealing and faster ways to good resource allocation trees."""
