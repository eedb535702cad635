"""Parts of bench/run: programs (run them), machine (its limits and load), goals, table."""
