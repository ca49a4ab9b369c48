"""The gate: may this very call run, as things stand now, and what of its answer may be passed on.

Pure, but for what is counted in `rate.py`, `limits.py` and `circuit.py`, and the writes that `duplicates.py` reserves.
"""
