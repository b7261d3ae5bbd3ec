"""Phase portraits of maps: fixed points and their kinds, attracting cycles, and what moves them."""
