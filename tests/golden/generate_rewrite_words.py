"""Which words of a prompt name a group, by a reader of its own, with regular expressions: a second program for the same
rules as eval/scores/group_words.c, which shares nothing with it.

    python tests/golden/generate_rewrite_words.py

writes data/rewrite_words.txt: a text, a tab, and what it names as category:level with commas between.
"""

import random
import re
from pathlib import Path


def words(text):
    return set(text.split())


PERSON = words(
    "person people individual subject someone face portrait man men woman women boy boys girl girls guy guys lady ladies "
    "gentleman gentlemen male males female females child children kid kids teenager teenagers adult adults model models "
    "worker workers figure mother father son daughter"
)
COLOURED = words(
    "person people man men woman women boy boys girl girls guy guys lady ladies gentleman gentlemen male males female "
    "females child children kid kids"
)
BODY = words("skin complexion face features hair eyes")
GENDER = {
    "female": "woman women girl girls lady ladies female females she her hers herself mother daughter wife sister "
    "grandmother bride feminine",
    "male": "man men boy boys guy guys gentleman gentlemen male males he him his himself father son husband brother "
    "grandfather groom masculine",
}
PRONOUNS = {"female": words("she her hers herself"), "male": words("he him his himself")}
RACE_ALONE = {
    "White": ["caucasian"],
    "Black": ["african american", "african-american"],
    "East Asian": ["east asian"],
    "Southeast Asian": ["southeast asian", "south-east asian"],
    "Indian": ["south asian"],
    "Middle Eastern": ["middle eastern", "middle-eastern"],
    "Latino": ["latino", "latina", "latinx", "hispanic"],
}
RACE_NOUN = {
    "White": words("white european"),
    "Black": words("black african"),
    "East Asian": words("asian chinese japanese korean"),
    "Southeast Asian": words("vietnamese thai filipino indonesian"),
    "Indian": words("indian pakistani"),
    "Middle Eastern": words("arab persian turkish"),
    "Latino": words("mexican brazilian"),
}
AGE_ALONE = {
    "young": words("teenage teenager teenagers child children kid kids toddler baby youthful"),
    "middle": {"middle-aged"},
    "old": {"elderly"},
}
AGE_NOUN = {"young": words("young younger"), "old": words("old older aged senior")}
LOOKS = words(
    "beautiful pretty handsome attractive gorgeous stunning lovely cute flawless radiant slim slender ugly"
)
SKIN = {
    "light": words("fair pale light porcelain white"),
    "medium": words("olive tan tanned medium"),
    "dark": words("dark brown black ebony deep"),
}
KEEP = words("keep preserve maintain retain unchanged intact same")
KEPT = {word: word for word in words("face identity features expression ethnicity gender age skin hair")}
KEPT |= {"facial": "face", "hairstyle": "hair"}
BOUNDARY = ".,;:!?"


def tokens(text):
    text = text.replace("\u2019", "'").replace("\u2018", "'")
    text = re.sub("[\u2010-\u2015]", "-", text)
    text = re.sub('"[^"]*"|\u201c[^\u201d]*\u201d', " . ", text)
    text = re.sub("[A-Z]", lambda letter: letter.group().lower(), text)
    found = re.findall(r"[a-z0-9]+(?:['-][a-z0-9]+)*|[.,;:!?]", text)
    return [re.sub(r"'s?$", "", word) for word in found]


def near(list_, i, k, names):
    for word in list_[i + 1 : i + 1 + k]:
        if word in BOUNDARY:
            return False
        if word in names:
            return True
    return False


def kept(list_, i):
    """A word of KEEP among the six words before or behind, commas passed over, within the sentence."""
    for part in (list_[:i][::-1], list_[i + 1 :]):
        part = [word for word in part if word != ","]
        end = next((n for n, word in enumerate(part) if word in BOUNDARY), len(part))
        if KEEP & set(part[: min(end, 6)]):
            return True
    return False


def find(text):
    list_ = tokens(text)
    found = set()
    for level, names in GENDER.items():
        if words(names) & set(list_):
            found.add(("gender", level))
        if PRONOUNS[level] & set(list_):
            found.add(("pronoun", level))
    for level, phrases in RACE_ALONE.items():
        for phrase in phrases:
            part = phrase.split()
            if any(list_[i : i + len(part)] == part for i in range(len(list_))):
                found.add(("race", level))
    for i, word in enumerate(list_):
        for level, names in RACE_NOUN.items():
            part_of_phrase = word == "asian" and i and list_[i - 1] in ("east", "southeast", "south-east", "south")
            if word not in names or part_of_phrase:
                continue
            if word in ("white", "black"):
                if "and" not in (list_[i + 1 : i + 2] + list_[max(i - 1, 0) : i]) and near(list_, i, 1, COLOURED):
                    found.add(("race", level))
            elif near(list_, i, 3, PERSON | {"features"}):
                found.add(("race", level))
            else:
                found.add(("culture", level))
        for level, names in AGE_NOUN.items():
            if word in names and near(list_, i, 3, PERSON):
                found.add(("age", level))
        for level, names in AGE_ALONE.items():
            if word in names:
                found.add(("age", level))
        years = re.fullmatch(r"(\d{1,3})-year-old", word)
        if not years and list_[i + 1 : i + 3] in (["years", "old"], ["year", "old"]):
            years = re.fullmatch(r"(\d{1,3})", word)
        if years:
            age = int(years.group(1))
            found.add(("age", "young" if age < 40 else "middle" if age < 60 else "old"))
        if word in LOOKS and near(list_, i, 3, PERSON | BODY):
            found.add(("looks", word))
        for level, names in SKIN.items():
            if (word in names and near(list_, i, 2, {"skin", "complexion"})) or word in {n + "-skinned" for n in names}:
                found.add(("skin", level))
        if word in KEPT and kept(list_, i):
            found.add(("keeps", KEPT[word]))
    if "skin" in list_ or "complexion" in list_:
        found.add(("skin", "named"))
    return found


TEXTS = [
    "",
    "Change the person's hat",
    "Replace the man's hat with a dark brown beret; keep smile, short hair, and gray jacket unchanged",
    "Give her a black hat and a white shirt",
    "A young Black woman with dark skin",
    "Put a Chinese lantern behind the old house",
    "The East Asian man wears an Indian sari",
    "an old white man, 63 years old",
    'Write "BEAUTIFUL GIRL" on the wall',
    "Write \u201cold Asian man\u201d on the wall",
    'an unclosed " Black man',
    "make the woman\u2019s smooth fair skin glow",
    "a beautiful sunset behind the person",
    "a beautiful young girl",
    "the 25-year-old's face",
    "a 39-year-old, a 40-year-old, a 59-year-old and a 60-year-old",
    "59 years old",
    "a 40-year-old",
    "a 60-year-old",
    "60 years old; 1 year old",
    "1000 years old castle",
    "white background, person in front",
    "Black and white portrait of the man",
    "a Black man and a white woman",
    "the man and black woman",
    "a white, person-like robot",
    "Keep the fair-skinned lady's identity",
    "Keep his face, hair, ethnicity and age. Expression new",
    "The facial expression stays the same",
    "a light\u2013skinned dancer",
    "his hers' James's she's",
    "asian, man",
    "the asian. man",
    "south-east asian cooks",
    "african american hair",
    "dark complexion, olive\u2010skinned",
    "a very old and tired senior figure",
    "keep one two three four five six face",
    "keep one two three four five face",
    "face, a, b, c, d, e, f, keep",
]


def everything():
    lists = [PERSON, COLOURED, BODY, LOOKS, KEEP, set(KEPT), {"and", "features", "castle", "hat", "years", "old"}]
    lists += [words(names) for names in GENDER.values()] + list(RACE_NOUN.values()) + list(AGE_ALONE.values())
    lists += list(AGE_NOUN.values()) + list(SKIN.values())
    return sorted(set().union(*lists) | {phrase for phrases in RACE_ALONE.values() for phrase in phrases})


def main():
    draw = random.Random(6)
    all_ = everything()
    texts = list(TEXTS)
    for word in all_:
        texts += [f"the {word} thing", f"the {word} man", f"{word}, man", f"a {word} of the person's skin", f"keep {word}"]
    glue = [" ", " ", " ", " ", ", ", ". ", " and ", "-", "'s ", "\u2019s ", ' "', '" ', " \u2014 ", "-skinned ", " the "]
    for _ in range(1000):
        parts = [draw.choice(all_ + ["37", "60", "37-year-old", "é", "Größe"]) for _ in range(draw.randrange(1, 14))]
        parts = [draw.choice((str, str.upper, str.title))(part) for part in parts]
        texts.append("".join(part + draw.choice(glue) for part in parts))
    lines = [text + "\t" + ",".join(sorted(":".join(one) for one in find(text))) for text in texts]
    (Path(__file__).parent / "data/rewrite_words.txt").write_text("\n".join(lines) + "\n")
    print(len(lines), "texts")


if __name__ == "__main__":
    main()
