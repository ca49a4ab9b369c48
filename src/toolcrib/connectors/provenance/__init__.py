"""What really runs behind a server, or answers for it. `observed.py` is the entry; read `launchers.py` first."""
