"""Numbers of the pieces that are no words."""

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
