"""What a fitted model offers: functions of records and inputs, and what is refused of them."""
