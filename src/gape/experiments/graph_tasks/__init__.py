"""graph_tasks."""
