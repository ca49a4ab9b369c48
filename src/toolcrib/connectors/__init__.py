"""The connectors room: how Toolcrib speaks to the servers behind it (MCP over stdio and HTTP, files, functions)."""
