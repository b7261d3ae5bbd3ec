"""What every program shares; knows no environment and no agent."""
