"""Policy-aware tool discovery, selection and routing for AI agents."""
