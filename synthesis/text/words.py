"""Lists of words that decide where sentences end and where they may be cut; all in lower case."""

from __future__ import annotations


def words(*lines: str) -> frozenset[str]:
    """The words of `lines`, which are separated by spaces."""
    return frozenset(word for line in lines for word in line.split())


#: Before a full stop: followed by what they abbreviate or introduce, so never the end of a sentence.
NEVER_END = words(
    "mr mrs ms mx dr prof rev hon gen col capt cmdr lt sgt maj gov sen rep pres st mt ft messrs mme mlle",
    "e.g i.e eg ie vs cf ca approx viz al resp incl est esp ave blvd dept tel ext",
    "sr sra srta dra ud uds z.b d.h bzw nr str hr fr bspw vgl dott sig avv",
    "т.е т.н ул д г стр рис им см тыс млн млрд напр",
)
#: Followed by a number, these introduce it ("No. 5", "Fig. 2"); otherwise they are words like any other.
BEFORE_NUMBER = words("no nos vol fig figs p pp ch sec art eq pt par ver v op bd abs")
#: Abbreviations that may end a sentence, and then the next word is one of `STARTERS`.
MAY_END = words(
    "etc inc ltd co corp bros jr sr esq a.m p.m am pm ph.d m.d b.a m.a b.sc m.sc d.c",
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun",
    "usw u.a т.д т.п др",
)
#: Words that sentences often start with, and names do not.
STARTERS = words(
    "a an the this that these those there here he she it we they you i my our your his her its their",
    "and but or so yet then now if when while where why who what how which as at in on by for from with",
    "after before however still also not no yes please let some many most all each every one another because",
    "although since die der das ein eine er sie es wir und aber il elle le la les un une el los las",
    "он она они это мы я и но",
)
#: A clause often begins with one of these: without any comma, a cut before them is the least audible.
CLAUSE_STARTERS = words(
    "and but or so because which that when while where if although though who whose since until before after"
)
