"""Looking inside: what each pattern, node and training graph adds to a decision, in pictures."""
