"""Validation of user input, files, threads, executors, progress bars, warnings. Not part of the public interface."""
