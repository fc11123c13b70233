"""Prompt data sets."""
