"""SET's released program as reference: its tile, its networks, its way to write them down."""
