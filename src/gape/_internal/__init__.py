"""Validation of user input, files written whole, threads and warnings. Not part of the public interface."""
