"""What to stimulate next: policies, Fisher information, and the planner iCEM."""
