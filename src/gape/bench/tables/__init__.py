"""Runs put together into tables, beside what the paper printed."""
