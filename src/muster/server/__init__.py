"""The loop that turns facts into plans and plans into facts."""
