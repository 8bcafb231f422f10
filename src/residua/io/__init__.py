"""Files in and out: node and edge tables, model files."""
