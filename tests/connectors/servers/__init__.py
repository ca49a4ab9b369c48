"""Servers for the tests; each runs as a script of its own."""
