"""What every layer depends on: nothing here knows a network, a machine or a search."""
