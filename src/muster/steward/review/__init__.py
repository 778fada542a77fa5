"""The standing review: what consumes, who defends it, and what is stopped because nobody does."""
