"""The gate: may this very call run, as things stand now. Pure, but for the counter in `rate.py`."""
