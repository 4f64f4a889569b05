"""What every floor stands on: nothing here knows a network, a machine or a search."""
