"""How long encodings take, beside today's ways, in one run."""
