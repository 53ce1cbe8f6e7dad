"""The dashboard: widgets in, a call to :mod:`pricing`, a chart out."""
