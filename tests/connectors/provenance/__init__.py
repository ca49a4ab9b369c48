"""Tests of the connectors room."""
