"""What runs jobs. An engine observes and acts, and decides nothing."""
