"""Problems from the literature: what is learned, and from which files."""
