"""Training runs, shared by graph tasks and translation: settings, folders, worker processes, progress, result files."""
