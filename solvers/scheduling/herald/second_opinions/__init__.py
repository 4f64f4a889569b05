"""Second opinions on schedules, their costs and their bounds, by ways that did not make them."""
