"""Measures of held-out performance, independent of how responses were made."""
