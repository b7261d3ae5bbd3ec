"""The matchmaker: where environment, agent and loop meet; every module here is a command."""

from train.host import entrance

entrance.check()
