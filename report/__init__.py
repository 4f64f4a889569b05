"""Tables, loop nests and drawings of what was found."""
