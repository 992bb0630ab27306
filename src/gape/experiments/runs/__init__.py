"""Training runs: what graph tasks and translation share.

Both use run folders, checkpoints and files of results (``folder``), settings as text (``settings``) and Lightning
(``lightning``); ``pool`` and queue files are for graph tasks.
Each has its own settings, training loop and time limit: that of a graph task counts all sessions and ends the training,
that of translation is one of the session.
"""
