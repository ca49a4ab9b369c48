"""What a reviewer is shown before a definition may reach a model. Lint goes deeper with time; it never approves."""
