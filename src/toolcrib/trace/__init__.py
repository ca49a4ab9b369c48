"""What happened, and at which stage did it go wrong: records, two views of them, and explanations."""
