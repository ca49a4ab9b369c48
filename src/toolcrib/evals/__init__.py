"""Measuring: cases, metrics, baselines, and the page that shows them. `cli/evals.py` is the door."""
