"""The command line for operators, reviewers and CI. Data goes to standard output, everything else to standard error."""

from toolcrib.cli.main import main

__all__ = ["main"]
