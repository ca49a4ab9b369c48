"""What goes into the context: whole definitions within a limit and a token budget, and an outcome in words."""
