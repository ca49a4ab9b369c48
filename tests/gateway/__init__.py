"""The gateway before real clients of the `mcp` SDK."""
