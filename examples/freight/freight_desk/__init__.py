"""The desk of a freight company: its records, and about 200 tools over them.

seed/*.json ─▶ records.py ◀─ actions.py, computed.py ◀─ catalog/*.py ◀─ ../server.py (MCP)
                             (what tools do)            (what tools are)
"""
