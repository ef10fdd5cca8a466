"""Days of the week, months, dates. February has 28 days.

There are few weekdays and few months, so what is held out is a question: these numbers in this wording. Of dates there are
enough to hold out the date and the step themselves.
"""
import random

from grammar import fill, number_word, pick
from sample import Sample, loosely, turns
from split import draw, held
from words.kinds import DAYS, MONTHS

LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()


def _th(n: int) -> str:
    return str(n) + ("th" if 10 < n % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th"))


def _count(rng, n: int) -> str:
    return str(n) if n > 20 or rng.random() < 0.6 else number_word(n)


NEXT = ["What [day|day of the week] comes after {d}?", "What day is the day after {d}?", "Which day follows {d}?", "Today is {d}. What day is tomorrow?", "What comes after {d}?",
        "If today is {d}, what is tomorrow?", "It is {d}. What day will it be tomorrow?"]
PREVIOUS = ["What [day|day of the week] comes before {d}?", "What day is the day before {d}?", "Today is {d}. What day was yesterday?", "What comes before {d}?",
            "If today is {d}, what was yesterday?", "Which day is just before {d}?"]
LATER = ["What day is {n} days after {d}?", "Today is {d}. What day is it in {n} days?", "If today is {d}, what day [is|will] it [be |]in {n} days?".replace("[is|will] it [be |]", "will it be "),
         "It is {d} today. Which day comes {n} days later?", "What day of the week is {n} days after {d}?", "{n} days after {d} is which day?", "In {n} days from {d}, what day is it?",
         "What day will it be {n} days from {d}?"]
EARLIER = ["What day was {n} days before {d}?", "Today is {d}. What day was it {n} days ago?", "If today is {d}, what day was it {n} days ago?", "What day is {n} days before {d}?",
           "{n} days before {d} is which day?"]
MONTH_NEXT = ["What month comes after {m}?", "Which month follows {m}?", "What is the month after {m}?", "It is {m}. What is next month?", "What comes after {m}?"]
MONTH_BEFORE = ["What month comes before {m}?", "Which month is before {m}?", "What is the month before {m}?", "It is {m}. What was last month?"]
MONTH_LATER = ["What month is {n} months after {m}?", "It is {m}. What month is it in {n} months?", "Which month comes {n} months after {m}?", "What month will it be {n} months after {m}?"]
MONTH_NTH = ["What is the {o} month of the year?", "Which month is the {o}?", "What is month number {k}?", "Name the {o} month."]
MONTH_NUMBER = ["What number is {m}?", "Which month of the year is {m}, as a number?", "What number month is {m}?"]
MONTH_LENGTH = ["How many days does {m} have?", "How many days are in {m}?", "How many days are there in {m}?", "How long is {m}, in days?"]
DAY_NTH = ["What is the {o} day of the week?", "Which day is the {o} day of the week, counting from Monday?"]
DATE_LATER = ["What date is {n} days after {d}?", "Today is {d}. What date is it in {n} days?", "What is the date {n} days after {d}?", "If today is {d}, what [date|day] will it be in {n} days?",
              "Which date comes {n} days after {d}?", "It is {d}. What is the date in {n} days?", "[Add {n} days to|Count {n} days from] {d}. What date is that?"]
DATE_TOMORROW = ["Today is {d}. What is tomorrow's date?", "What date comes after {d}?", "What is the day after {d}?", "It is {d}. What date is tomorrow?"]
DATE_YESTERDAY = ["Today is {d}. What was yesterday's date?", "What date comes before {d}?", "What is the day before {d}?", "It is {d}. What date was yesterday?"]
WEEKDAY_DATE = ["{d} is a {w}. What day of the week is {e}?", "If {d} is a {w}, what day is {e}?", "{d} falls on a {w}. On which day does {e} fall?"]


def days(rng, want_held):
    """Weekdays. With so few of them, only the steps over more than two days are held out."""
    day = rng.randrange(7)
    if not want_held and rng.random() < 0.35:
        step = rng.choice((1, -1))
        question = fill(rng, pick(rng, NEXT if step > 0 else PREVIOUS), {"d": DAYS[day]})
        return Sample("days", turns((loosely(rng, question), DAYS[(day + step) % 7])))
    if not want_held and rng.random() < 0.05:
        k = rng.randrange(7)
        return Sample("days", turns((fill(rng, pick(rng, DAY_NTH), {"o": ORDINALS[k]}), DAYS[k])))
    while True:
        n, back = rng.randint(2, rng.choice((7, 14, 31))), rng.random() < 0.3
        question = fill(rng, pick(rng, EARLIER if back else LATER), {"d": DAYS[day], "n": _count(rng, n)})
        if held("day", question) == want_held:
            break
        day = rng.randrange(7)
    return Sample("days", turns((loosely(rng, question), DAYS[(day + (-n if back else n)) % 7])))


def _months_later(rng) -> tuple[int, int, str]:
    month, n = rng.randrange(12), rng.randint(2, 11)
    return month, n, fill(rng, pick(rng, MONTH_LATER), {"m": MONTHS[month], "n": _count(rng, n)})


def months(rng, want_held):
    month = rng.randrange(12)
    kind = 5 if want_held else rng.randrange(7)
    if kind == 0:
        question, answer = fill(rng, pick(rng, MONTH_NEXT), {"m": MONTHS[month]}), MONTHS[(month + 1) % 12]
    elif kind == 1:
        question, answer = fill(rng, pick(rng, MONTH_BEFORE), {"m": MONTHS[month]}), MONTHS[month - 1]
    elif kind == 2:
        question, answer = fill(rng, pick(rng, MONTH_NTH), {"o": rng.choice((ORDINALS[month], _th(month + 1))), "k": month + 1}), MONTHS[month]
    elif kind == 3:
        question, answer = fill(rng, pick(rng, MONTH_LENGTH), {"m": MONTHS[month]}), str(LENGTHS[month])
    elif kind == 4:
        question, answer = fill(rng, pick(rng, MONTH_NUMBER), {"m": MONTHS[month]}), str(month + 1)
    else:
        month, n, question = draw(want_held, lambda: _months_later(rng), lambda t: ("month", t[2]))
        answer = MONTHS[(month + n) % 12]
    return Sample("months", turns((loosely(rng, question), answer)))


def _shift(month: int, day: int, n: int) -> tuple[int, int]:
    day += n
    while day > LENGTHS[month]:
        day -= LENGTHS[month]
        month = (month + 1) % 12
    while day < 1:
        month = (month - 1) % 12
        day += LENGTHS[month]
    return month, day


def dates(rng, want_held, weekday=False):
    styles = [lambda m, d: f"{MONTHS[m]} {d}", lambda m, d: f"{d} {MONTHS[m]}", lambda m, d: f"{MONTHS[m]} {_th(d)}", lambda m, d: f"the {_th(d)} of {MONTHS[m]}"]
    style = rng.choice(styles[:2] + styles)
    answer_style = styles[1] if style is styles[1] or style is styles[3] else styles[0]
    kind = rng.random()
    n = rng.randint(2, rng.choice((7, 14, 30, 30))) if kind < 0.65 else 1 if kind < 0.85 else -1
    if weekday:
        n = rng.randint(1, 20)

    def day():
        m = rng.randrange(12)
        d = rng.randint(1, LENGTHS[m])
        if rng.random() < 0.3:
            d = max(1, LENGTHS[m] - rng.randint(0, 8)) if n > 0 else rng.randint(1, 3)
        return m, d
    month, date = draw(want_held, day, lambda t: ("date", n) + t)
    new = _shift(month, date, n)
    slots = {"d": style(month, date), "n": _count(rng, n) if n > 0 else ""}
    if weekday:
        start = rng.randrange(7)
        question = fill(rng, pick(rng, WEEKDAY_DATE), slots | {"w": DAYS[start], "e": style(*new)})
        later = "one day" if n == 1 else f"{n} days"        # the step in between is what makes it possible
        return Sample("weekdays of dates", turns((question[0].upper() + question[1:], f"That is {later} later, so it is a {DAYS[(start + n) % 7]}.")))
    question = fill(rng, pick(rng, DATE_LATER if n > 1 else DATE_TOMORROW if n == 1 else DATE_YESTERDAY), slots)
    return Sample("dates", turns((loosely(rng, question), answer_style(*new))))


def weekdays(rng, want_held):
    """A date is a Monday; what is another?"""
    return dates(rng, want_held, weekday=True)


TASKS = {"days": days, "months": months, "dates": dates, "weekdays of dates": weekdays}
