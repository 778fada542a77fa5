"""What is really used: meters, the series they make, and the ledger of held and used."""
