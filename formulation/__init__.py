"""The problem statements: which decisions exist, which are legal, what each costs."""
