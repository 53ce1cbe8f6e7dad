"""Engines: one protocol, one file for each, and a registry by name."""
