"""The doors of a running crib: the MCP gateway over stdio and HTTP.

Floor 5: above `crib.py`, below `cli/`. Read `surface.py` (what a caller sees), then `mcp_gateway.py` (how it is asked).
"""
