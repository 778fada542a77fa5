"""The steward at work: efforts, exits, budgets, reviews and messages, around the service."""
