"""Published numbers, a module for each subject; `published_values.py` prints them."""
