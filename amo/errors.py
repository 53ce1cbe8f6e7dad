"""Errors that say what was expected, what arrived and the way out; all have one base."""


class AMOError(Exception):
    """Something that a user can fix; the message says how."""


class SettingsError(AMOError, ValueError):
    """A setting makes no sense; the message says which, and what would."""


class FileError(AMOError):
    """A file cannot be read or written; the message names it and the reason."""


class CheckpointError(AMOError):
    """A model folder cannot be used; the message names the file and the way out."""


class DataError(AMOError):
    """A data folder cannot be used; the message names the file and the way out."""


class FailedError(AMOError):
    """A model or an engine gave no usable number where it had to."""


class StoppedError(AMOError):
    """Work was stopped before its end; the message says how to go on."""


class ClusterError(AMOError):
    """Processes or a cluster cannot be reached, or went away; the message says how to go on."""
