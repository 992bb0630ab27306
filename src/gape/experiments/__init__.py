"""Reproduces the paper: graph tasks, translation, runtimes, tables and figures. Nothing in the library imports it."""
