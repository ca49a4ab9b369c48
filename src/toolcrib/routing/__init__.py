"""Operating rules beside policy: what is never admissible for a caller, and which of two matches is preferred."""
