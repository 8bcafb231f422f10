"""Where rows live other than in this process."""
