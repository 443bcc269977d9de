"""Claim, send, record: the loop that delivers."""
