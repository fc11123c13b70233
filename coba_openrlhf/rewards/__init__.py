"""Scores of responses: built-in verifiers, a user's file, or a reward server."""
