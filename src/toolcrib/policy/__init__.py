"""What a caller may know of and use: Cedar policies, decision classes, eligibility. Enter through `engine.py`."""
