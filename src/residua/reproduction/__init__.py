"""The paper's tables and figures, each a function from settings to records."""
