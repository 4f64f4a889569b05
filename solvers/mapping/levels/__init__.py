"""What some levels of a machine cost together: bounds for all that is decided at the others."""
