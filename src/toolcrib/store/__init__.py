"""Where state lies: publications, reviews, approvals, traces. One small protocol, one embedded implementation."""
