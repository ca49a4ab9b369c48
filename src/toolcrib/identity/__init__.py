"""Who asks: callers as trusted code at the boundary establishes them. Nothing else builds a `Caller`."""
