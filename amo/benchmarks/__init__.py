"""Problems of the literature: what is learned, from which files."""
