"""Tests of `toolcrib.policy`."""
