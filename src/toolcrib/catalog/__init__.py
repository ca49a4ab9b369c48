"""The registry: what exists, in which reviewed version, owned by whom."""
