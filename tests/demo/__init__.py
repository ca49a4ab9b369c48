"""`make demo`: its installing, its narration, its checks."""
