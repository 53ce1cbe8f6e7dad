"""Markets: rate and borrow curves, dividends in cash and in proportion, dates, files of many."""
