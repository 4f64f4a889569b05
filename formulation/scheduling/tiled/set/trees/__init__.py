"""Resource allocation trees: what makes one valid, its data flow, its cost in closed form, its plan."""
