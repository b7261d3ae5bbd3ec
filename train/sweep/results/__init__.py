"""What came out of a sweep: tables and pictures."""
