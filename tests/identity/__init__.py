"""Tests of `toolcrib.identity`."""
