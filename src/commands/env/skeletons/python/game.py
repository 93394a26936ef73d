"""NAME: guess a number from 1 to 9. Put your own game in its place; docs in spar_env.py."""

from spar_env import Env, serve

NUMBERS = [str(number) for number in range(1, 10)]


class Game(Env):
    def reset(self, task, seed):
        # The task follows from `task`, so that training and test differ; `seed` is for luck within an episode.
        self.secret = task["seed"] * 7919 % 9 + 1
        return "Guess a number from 1 to 9."

    def step(self, text):
        guess = text.strip()
        if guess not in NUMBERS:
            self.invalid()
            return "Nothing happens."
        if int(guess) == self.secret:
            self.end(success=True, reward=1.0)
            return "Right."
        return "More." if int(guess) < self.secret else "Less."

    def admissible(self):
        return NUMBERS

    def oracle(self):
        return str(self.secret)


serve(Game)
