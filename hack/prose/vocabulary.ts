/** An expression that is not used, as a pattern for whole words without regard to case, and what to write instead. */
export type Term = readonly [pattern: string, instead: string];

// docs/contributing/writing.md has the rules behind these, and docs/reference/glossary.md the word for each thing. The patterns are
// those of textlint-rule-terminology. A blank matches a line break, too.

/** Translated and private idiom. */
const IDIOM: readonly Term[] = [
  ["anew|afresh|once more", "again"],
  ["by now", "already, now"],
  ["tells|told", "reports, shows, says"],
  ["people|somebody|someone|somebody's", "the operator, a user, an administrator"],
  ["where absent|where it is absent", "by default"],
  ["rights", "permissions"],
  ["in mid-[a-z]+|mid-way", "in the middle of, during"],
  ["for good", "permanently"],
  ["for ever", "forever"],
  ["bears|bore", "has"],
  ["whom", "which, that"],
  ["mended|mending|mends|mend", "fix"],
  ["in silence|without a word", "silently, without a message"],
  ["in the place of", "instead of"],
  ["be it", "whether"],
  ["becomes of|become of|became of|comes of|came of", "happens to, follows from"],
  ["makes an end of", "ends"],
  ["that is none", "that is not valid"],
  ["lend|lends|lent", "grant"],
  ["goes by|go by|went by|gone by|going by", "uses"],
  ["nothing but", "only"],
  ["speaks of|speak of", "describes, is about"],
  ["sees to it|sees to that", "ensures"],
  ["another's", "that belongs to another one"],
  ["of ours|of theirs|of yours", "our, their, your"],
  ["for want of", "without"],
  ["live look|live looks|looked at live|looks at live", "live read, read live"],
  ["(?:a|the|each|last|every) look", "a read, a check"],
  ["gets to know|get to know|got to know", "learns"],
  ["so to say|as it were", "nothing"],
  ["at the hand of|at hand", "available"],
  ["has to do with", "concerns"],
  ["hands off|hands-off", "no power order is sent"],
  ["see to it|see to that|seen to it", "make sure"],
  ["takes? back what|took back what", "undo"],
  ["given free|gives free", "release"],
  ["goes? on where", "continue"],
];

/** Words that are not in common use any more, or that the style guides advise against. */
const COMMON_WORDS: readonly Term[] = [
  ["shall", "must, will"],
  ["upon", "on"],
  ["till", "until"],
  ["whilst", "while"],
  ["amongst", "among"],
  ["hence|thus|thereby|therein|thereof|whereof|whereby|hitherto", "so, therefore"],
  ["beside", "next to, in addition to"],
  ["lest", "so that … not"],
  ["e\\.g\\.", "for example"],
  ["i\\.e\\.", "that is"],
  ["and the like", "and similar"],
];

/** American spelling, as in the documentation of Kubernetes. */
const SPELLING: readonly Term[] = [
  ["behaviour", "behavior"],
  ["colour", "color"],
  ["honour(s|ed)?", "honor$1"],
  ["neighbour(s)?", "neighbor$1"],
  ["catalogue", "catalog"],
  ["recognis(e|es|ed)", "recogniz$1"],
];

/** Words that the glossary replaces. */
const GLOSSARY: readonly Term[] = [
  ["walk|walks|walker|walked", "remediation, its course; controller"],
  ["pull the plug", "power off"],
];

export const VOCABULARY: readonly Term[] = [...IDIOM, ...COMMON_WORDS, ...SPELLING, ...GLOSSARY];
