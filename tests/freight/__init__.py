"""The freight example: its server alone, and the story through the crib."""
