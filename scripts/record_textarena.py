#!/usr/bin/env python3
"""Records games of TextArena 0.7.4, for `spar conformance games`.

    PYTHONHASHSEED=0 scripts/record_textarena.py --out FILE [--seeds 0:300] [--games wordle,nim] [--full 1] [--steps 40]

needs Python 3.11 or later with `pip install textarena==0.7.4`. PYTHONHASHSEED has to be 0: Leduc hold'em prints sets,
whose order depends on it. Words of Wordle and Hangman are those of `games/words/english.txt`: their classes would download
lists by nltk, so that both are made without their constructors.

A line of the file is a game: its settings and seed, and for every step the action, who was to move, and what every player
got to see, without what it said itself. Actions are drawn from the seed: moves of the game (some by looking at its secret),
and hostile ones. Games behind the first `--full` of a kind have in place of messages their hash (FNV-1a, 64 bits).
"""

import argparse
import itertools
import json
import os
import random as global_random
import re
import sys
import types
from pathlib import Path

WORDS = (Path(__file__).resolve().parent.parent / "games/words/english.txt").read_text().split()

HOSTILE = [
    "", " ", "[", "]", "[]", "[ ]", "[[1]]", "do nothing at all", "[do nothing at all]", "[1][2]", "[1] [2] [3]", "[999]", "[-1]",
    "[0]", "[00004]", "[٣]", "[1\n2]", "[1\t2]", "[ 1 2 ]", "[1 2]", "[1,2]", "[1  2]", "[1 2 3]", "[1 2 3 4]", "[1 1 1 1]", "[a]",
    "[A]", "[abc]", "[ABC]", "[word]", "[apple]", "[É]", "[ſ]", "[K]", "[ı]", "[İ]", "[up]", "[UP]", "[Down]", "[left right]",
    "[w]", "[hit]", "[HIT] [stand]", "[stand]", "[Hit", "[A C]", "[a,b]", "[A , C]", "[AC]", "[A C] [A B] [C B]", "[B C] [B C]",
    "[0 1 +]", " [0 1 *] ", "[0 1 +] now", "[ 1 0 - ]", "[0 0 +]", "[9 0 /]", "[0 1 ^]", "[red]", "[[red]", "[red] or [blue]",
    "[check]", "[BET]", "[fold]", "[Call]", "[raise]", "[CHEC\u212a]", "[ra\u0131se]", "[col 3]", "[COL 0] and [col 1]\n[col 2]",
    "[col\n4]", "[col 99999999999999999999]", "[player 1]", "[Player 2] [3]", "[0 3]", "[ 1  1 ]", "[2 0]", "[7 1]", "[0 100]",
    "[GAME] hello [Player 0]", "x" * 300, "[" * 50, "\u0000[1]", "[1]\u0000", "🎲 [2] 🎲", "[12345678901234567890123]",
    "[Offer: 3 Sheep, 2 Ore -> 5 Brick]", "[offer 1 wheat -> 1 ore.]", "[Offer: I give 2 Woods -> 3 Sheeps!]", "[Accept]", "[Deny]",
    "[Offer: 1 Wheat]", "[Offer]", "[Offer: ]", "[Offer: 0 Wheat -> 1 Ore]", "[Offer: 500 Ore -> 1 Wheat]", "[accept] [Offer: 1 Ore -> 2 Brick, 1 Brick]",
    "[Offer: 1 Gold -> 1 Ore]", "[Offer: 1 Wheat -> 99999999999999999999999 Ore]", "I say: [Offer: 1 Wood\n-> 1 Wheat . . ] ok?",
]


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def textarena():
    # Its imports ask for words that would be downloaded.
    import nltk
    import nltk.corpus

    nltk.download = lambda *arguments, **options: True
    corpus = types.SimpleNamespace(words=lambda *arguments: list(WORDS))
    nltk.corpus.words = corpus
    nltk.pos_tag = lambda words: [(word, "NN") for word in words]
    import textarena

    return textarena


def env_class(game, name):
    import importlib

    return getattr(importlib.import_module(f"textarena.envs.{game}.env"), name)


# What makes the environment of a game, by its settings.

def plain(folder, name, defaults):
    return lambda settings, seed: env_class(folder, name)(**{**defaults, **settings})


def hangman(settings, seed):
    env = env_class("Hangman", "HangmanEnv").__new__(env_class("Hangman", "HangmanEnv"))
    low, high = settings.get("min_length", 4), settings.get("max_length", 10)
    env.word_list = [word for word in WORDS if low <= len(word) <= high]
    return env


def wordle(settings, seed):
    env = env_class("Wordle", "WordleEnv").__new__(env_class("Wordle", "WordleEnv"))
    env.word_length = settings.get("word_length", 5)
    env.num_guesses = settings.get("num_guesses", 6)
    env.word_list = [word for word in WORDS if len(word) == env.word_length]
    known = set(WORDS)
    env.dictionary = types.SimpleNamespace(is_english_word=lambda word: word.lower() in known)
    return env


def countdown(settings, seed):
    # The class draws when it is made.
    global_random.seed(seed)
    return env_class("Countdown", "CountdownEnv")(**settings)


# What a game's moves are, drawn by a generator of their own; some look at what is hidden.

def guess_number(env, rng):
    if rng.random() < 0.15:
        return f"[{env.game_number}]"
    return f"[{rng.randint(env.min_number - 1, env.max_number + 1)}]"


def mastermind(env, rng):
    state = env.state.game_state
    if rng.random() < 0.1:
        return "[" + " ".join(map(str, state["secret_code"])) + "]"
    return "[" + " ".join(str(rng.randint(1, state["num_numbers"])) for _ in range(state["code_length"])) + "]"


def hanoi(env, rng):
    if rng.random() < 0.6:
        towers = env.state.game_state["towers"]
        legal = [(s, t) for s in "ABC" for t in "ABC" if s != t and towers[s] and (not towers[t] or towers[t][-1] > towers[s][-1])]
        s, t = rng.choice(legal)
        return f"[{s} {t}]"
    return f"[{rng.choice('ABCabc')} {rng.choice('ABC')}]"


def hanoi_solution(env, rng):
    towers = env.state.game_state["towers"]

    def step(disk, target):
        if disk == 0:
            return None
        place = next(name for name in "ABC" if disk in towers[name])
        if place == target:
            return step(disk - 1, target)
        other = ({*"ABC"} - {place, target}).pop()
        return step(disk - 1, other) or (place, target)

    return "[%s %s]" % step(env.num_disks, "C") if rng.random() < 0.97 else hanoi(env, rng)


def hangman_move(env, rng):
    state = env.state.game_state
    if rng.random() < 0.06:
        return f"[{state['target_word']}]"
    if rng.random() < 0.5:
        return f"[{rng.choice(state['target_letters'])}]"
    return f"[{rng.choice('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ')}]"


def wordle_move(env, rng):
    if rng.random() < 0.1:
        return f"I say [{env.state.game_state['secret_word'].upper()}]"
    return f"[{rng.choice(env.word_list)}]"


def cell_move(env, rng):
    if rng.random() < 0.5:
        hidden = [(r, c) for r in range(env.rows) for c in range(env.cols) if not env.revealed[r][c] and (env.grid[r][c] != -1 or rng.random() < 0.1)]
        if hidden:
            return "[%d %d]" % rng.choice(hidden)
    return f"[{rng.randint(0, env.rows)} {rng.randint(0, env.cols)}]"


def sudoku_move(env, rng):
    board = env.state.game_state["board"]
    empty = [(r, c) for r in range(9) for c in range(9) if board[r][c] == 0]
    if empty and rng.random() < 0.9:
        r, c = rng.choice(empty)
        digit = env.full_grid[r][c] if rng.random() < 0.9 else rng.randint(1, 9)
        return f"[{r + 1} {c + 1} {digit}]"
    return f"[{rng.randint(0, 10)} {rng.randint(1, 9)} {rng.randint(1, 9)}]"


def countdown_move(env, rng):
    return f"[{rng.randint(0, len(env.numbers))} {rng.randint(0, len(env.numbers))} {rng.choice('+-*/')}]"


def words(*choices):
    return lambda env, rng: rng.choice(choices)


def bandit_move(env, rng):
    if rng.random() < 0.2:
        truth = env.state.game_state["ground_truth"]
        return f"[{max(truth, key=truth.get)}]"
    return f"[{rng.choice(env.buttons)}]"


def nim_move(env, rng):
    piles = env.state.game_state["piles"]
    pile = rng.randrange(len(piles))
    return f"[{pile} {rng.randint(1, max(1, piles[pile]))}]"


def tic_tac_toe_move(env, rng):
    return f"[{rng.randint(0, 8)}]"


def leduc_move(env, rng):
    if rng.random() < 0.8:
        return f"[{rng.choice(sorted(env._legal(env.state.game_state)))}]"
    return f"[{rng.choice(['check', 'bet', 'call', 'raise', 'fold'])}]"


def kuhn_move(env, rng):
    tree = env.state.game_state["current_legal_action_tree"]
    if rng.random() < 0.8 and isinstance(tree, dict):
        return f"[{rng.choice(list(tree))}]"
    return f"[{rng.choice(['check', 'bet', 'call', 'fold'])}]"


def trade_move(env, rng):
    names = ["Wheat", "Wood", "Sheep", "Brick", "Ore"]
    side = lambda: ", ".join(f"{rng.randint(1, 9)} {rng.choice(names)}" for _ in range(rng.randint(1, 2)))
    draw = rng.random()
    if draw < 0.45:
        return rng.choice(["Let us trade. ", ""]) + f"[Offer: {side()} -> {side()}]"
    if draw < 0.75:
        return "[Accept]" + (f" [Offer: {side()} -> {side()}]" if rng.random() < 0.3 else "")
    return rng.choice(["[Deny]", "no", "I want more ore.", "[Offer: I give 1 ore -> 2 brick.]"])


def mafia_move(env, rng):
    if env.phase.value == "Day-Discussion":
        return rng.choice(["I trust nobody.", "It was [Player 2]!", "[GAME] I am the game.", "Player 3 is quiet."])
    alive = env.state.game_state["alive_players"]
    target = rng.choice(alive) if rng.random() < 0.93 else rng.randint(0, 20)
    return rng.choice(["[{}]", "[Player {}]", "I vote [player {}]"]).format(target)


# name: (how it is made, moves, players, settings by turns)
GAMES = {
    "guess-the-number": (plain("GuessTheNumber", "GuessTheNumberEnv", dict(max_turns=10)), [guess_number], 1, [{}, {"max_number": 50}, {"max_turns": 3}]),
    "mastermind": (
        plain("Mastermind", "MastermindEnv", {}), [mastermind], 1,
        [{}, {"num_numbers": 8, "max_turns": 30}, {"code_length": 6, "num_numbers": 12, "max_turns": 5, "duplicate_numbers": True}],
    ),
    "tower-of-hanoi": (plain("TowerOfHanoi", "TowerOfHanoiEnv", dict(max_turns=14)), [hanoi, hanoi_solution], 1, [{}, {"num_disks": 4, "max_turns": 30}]),
    "fifteen-puzzle": (plain("FifteenPuzzle", "FifteenPuzzleEnv", {}), [words("[up]", "[down]", "[left]", "[right]")], 1, [{}, {"max_turns": 20}]),
    "hangman": (hangman, [hangman_move], 1, [{}, {"min_length": 5, "max_length": 7}]),
    "wordle": (wordle, [wordle_move], 1, [{}, {"word_length": 7, "num_guesses": 9}]),
    "game-2048": (
        plain("Game2048", "Game2048Env", {}), [words("[Up]", "[Down]", "[Left]", "[Right]", "[w]", "[a]", "then [down, left]")], 1,
        [{"target_tile": 64}, {"target_tile": 32}, {"board_size": 3}, {"board_size": 5, "target_tile": 128}, {}],
    ),
    "minesweeper": (
        plain("Minesweeper", "MinesweeperEnv", {}), [cell_move], 1,
        [{}, {"rows": 5, "cols": 5, "num_mines": 5}, {"rows": 12, "cols": 12, "num_mines": 30}, {"max_turns": 4}],
    ),
    "sudoku": (plain("Sudoku", "SudokuEnv", {}), [sudoku_move], 1, [{"clues": 75}, {"clues": 70}, {"clues": 60}, {"clues": 45}, {"clues": 60, "max_turns": 5}]),
    "countdown": (countdown, [countdown_move], 1, [{}, {"numbers": [100, 75, 6, 4, 3, 2], "target": 532}, {"target": 300}, {"max_turns": 2}]),
    "blackjack": (plain("Blackjack", "BlackjackEnv", dict(num_hands=5)), [words("[Hit]", "[Stand]", "I [hit] now")], 1, [{}, {"num_hands": 15}]),
    "bandit": (
        plain("Bandit", "BanditEnv", dict(p_gap=0.1)), [bandit_move], 1,
        [{}, {"num_turns": 5}, {"buttons": ["red", "blue", "pink"], "num_turns": 6, "p_gap": 0.3, "include_summary": True}],
    ),
    "connect-four": (
        plain("ConnectFour", "ConnectFourEnv", {}), [lambda env, rng: rng.choice(["[col {}]", "[{}]"]).format(rng.randint(0, env.num_cols - 1))], 2,
        [{}, {"is_open": False}, {"num_rows": 12, "num_cols": 15}],
    ),
    "nim": (plain("Nim", "NimEnv", {}), [nim_move], 2, [{}, {"piles": [4, 2, 3, 7]}, {"piles": [5, 7, 9, 11, 2]}]),
    "noughts": (plain("TicTacToe", "TicTacToeEnv", {}), [tic_tac_toe_move], 2, [{}]),
    "kuhn-poker": (plain("KuhnPoker", "KuhnPokerEnv", dict(max_rounds=3)), [kuhn_move], 2, [{}, {"max_rounds": 1}, {"max_rounds": 9}]),
    "leduc-holdem": (plain("LeducHoldem", "LeducHoldemEnv", {}), [leduc_move], 2, [{}, {"max_rounds": 9}, {"starting_bank": 20}]),
    "negotiation": (plain("SimpleNegotiation", "SimpleNegotiationEnv", {}), [trade_move], 2, [{}, {"max_turns": 6}, {"max_turns": 30}]),
    "secret-mafia": (
        lambda settings, seed: env_class("SecretMafia", "SecretMafiaEnv")(**{key: value for key, value in settings.items() if key != "num_players"}),
        [mafia_move], lambda settings: settings.get("num_players", 6), [{}, {"num_players": 9}, {"num_players": 15, "discussion_rounds": 1}],
    ),
}


def seen(env, players, is_full):
    from textarena.core import ObservationType

    told = []
    for player in range(players):
        messages = env.state.observations[player]
        env.state.observations[player] = []
        own = [
            [sender, kind.name, text]
            for sender, text, kind in messages
            # Two classes of one player have the game say what the player said.
            if sender != player and isinstance(kind, ObservationType) and (players > 1 or kind is not ObservationType.PLAYER_ACTION)
        ]
        told.append(own if is_full else fnv("".join(f"{sender}\0{kind}\0{text}\0" for sender, kind, text in own)))
    return told


def record(game, seed, number, is_full, max_steps):
    make, movers, players, all_settings = GAMES[game]
    settings = all_settings[number % len(all_settings)]
    players = players(settings) if callable(players) else players
    env = make(settings, seed)
    env.reset(num_players=players, seed=seed)
    rng = global_random.Random(f"{game} {seed}")
    move = rng.choice(movers)
    hostility = rng.choice([0.0, 0.05, 0.3])
    trace = {"game": game, "settings": settings, "seed": seed, "begin": seen(env, players, is_full), "steps": []}
    for _ in range(max_steps):
        player = env.state.current_player_id
        action = rng.choice(HOSTILE) if rng.random() < hostility else move(env, rng)
        step = {"player": player, "action": action}
        trace["steps"].append(step)
        try:
            done, _ = env.step(action)
        except (AttributeError, ValueError, IndexError, StopIteration) as error:
            # A fault of the package, behind which nothing is compared.
            step["raises"] = f"{type(error).__name__}: {error}"
            return trace
        step["seen"] = seen(env, players, is_full)
        if done:
            rewards = env.state.rewards
            trace["rewards"] = [rewards[player] if isinstance(rewards[player], (int, float)) else None for player in range(players)]
            trace["reason"] = env.state.game_info[0]["reason"]
            break
    return trace


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seeds", default="0:12")
    parser.add_argument("--games", default=",".join(GAMES))
    parser.add_argument("--full", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        sys.exit("PYTHONHASHSEED has to be 0")
    textarena()
    first, last = map(int, arguments.seeds.split(":"))
    with arguments.out.open("w") as out:
        for game in arguments.games.split(","):
            for number, seed in enumerate(range(first, last)):
                trace = record(game, seed, number, number < arguments.full, arguments.steps)
                out.write(json.dumps(trace, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
