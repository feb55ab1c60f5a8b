"""What commands do to a table: the flow of a hand, seats, waiting list, options, club games."""
