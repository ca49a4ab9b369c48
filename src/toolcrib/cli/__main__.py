"""`python -m toolcrib.cli`."""

from toolcrib.cli.main import main

main()
