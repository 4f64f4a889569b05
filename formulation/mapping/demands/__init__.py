"""What a user may demand of a mapping: constraints, dataflows, and the rules that they mean."""
