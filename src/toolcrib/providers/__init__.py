"""What model providers want to be handed and how they answer: names, payload shapes, calls read back."""
