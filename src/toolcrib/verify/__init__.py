"""Proof on the operator's own catalog: nothing leaks (isolation); listed, found and callable are one set (parity)."""
