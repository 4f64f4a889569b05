"""What is to be computed: operators, networks of operators, and their import."""
