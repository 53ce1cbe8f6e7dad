"""Errors of more than one room."""


class SettingsError(ValueError):
    """A setting makes no sense; the message says which, and what would."""


class CheckpointError(Exception):
    """A model folder cannot be used; the message names the file and the way out."""


class StoppedError(Exception):
    """A row of a table was stopped before its end; the message says how to go on."""
