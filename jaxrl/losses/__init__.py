"""What agents minimise, and what that needs: returns, distributions, minibatches, exploration."""
