/** A sentence in which an expression is wrong, and a correct one with the same word in another sense. */
export interface Sample {
  wrong: string;
  right?: string;
}

/**
 * A forbidden expression, as a case-insensitive pattern for whole words, and its replacement. A pattern that is more
 * than a list of words needs a sample: a test checks that each rule finds its sample. The rule of textlint matches a
 * pattern a second time against the expression alone, so a positive lookahead does not work.
 */
export type Term = readonly [pattern: string, instead: string, sample?: Sample];

// docs/contributing/writing.md has the rules, and docs/reference/glossary.md the word for each thing. A blank in a
// pattern also matches a line break. Groups must begin with `(?:`.

/** Translated and private idiom. */
const IDIOM: readonly Term[] = [
  ["anew|afresh|once more", "again"],
  ["by now", "already, now"],
  ["tells", "reports, shows, says"],
  ["where absent|where it is absent", "by default"],
  ["in mid-[a-z]+|mid-way", "in the middle of, during", { wrong: "It stops in mid-flight." }],
  ["for good", "permanently"],
  ["for ever", "forever"],
  ["gainsay|gainsays", "contradict"],
  ["to the letter", "exactly"],
  ["has the last word", "decides"],
  ["bears|bore", "has"],
  ["whom", "which, that"],
  ["mended|mending|mends|mend", "fix"],
  ["in silence|without a word", "silently, without a message"],
  ["in the place of", "instead of"],
  ["be it", "whether"],
  ["becomes of|become of|became of|comes of|came of", "happens to, follows from"],
  ["makes an end of", "ends"],
  ["that is none", "that is not valid"],
  [
    "(?<!there )(?:is|was) no (?!longer|more|later|less|other|better|earlier|newer|older|worse)[a-z]+",
    "is not a …, not a valid …",
    {
      wrong: "The answer is no JSON.",
      right: "There is no JSON in it.",
    },
  ],
  ["lend|lends|lent", "grant"],
  ["goes by|go by|went by|gone by|going by", "uses"],
  ["nothing but", "only"],
  ["speaks of|speak of", "describes, is about"],
  ["sees to it|sees to that", "ensures"],
  ["another's", "that belongs to another one"],
  ["of ours|of theirs|of yours", "our, their, your"],
  ["for want of", "without"],
  ["gets to know|get to know|got to know", "learns"],
  ["so to say|as it were", "nothing"],
  ["at the hand of|at hand", "available"],
  ["has to do with", "concerns"],
  ["hands off|hands-off", "no power order is sent"],
  ["see to it|see to that|seen to it", "make sure"],
  ["takes? back what|took back what", "undo", { wrong: "The agent takes back what it did." }],
  ["given free|gives free", "release"],
  ["goes? on where", "continue", { wrong: "It goes on where it stopped." }],
  ["trying on|tries on", "trying again"],
  ["that right", "that permission", { wrong: "Grant that right to the agent." }],
  [
    "(?:the|a|no) rights? (?:to|that was)(?! left)",
    "permission",
    { wrong: "It needs the right to list Secrets.", right: "The right one answers." },
  ],
  [
    "may not be (?:read|sent|listed|written):|may not be (?:listed|written)",
    "cannot read … (forbidden)",
    { wrong: "Secret a may not be read: forbidden.", right: "The answer may not be the last one." },
  ],
  [
    "(?:BMC|server|agent|operator)s? that (?:is|are|was|were|stays?) away|BMC (?:was|stays) away|agent (?:is|was) away",
    "does not answer, does not run, cannot be reached",
    { wrong: "A BMC that is away.", right: "The agent takes the taint away." },
  ],
  [
    "(?:edited|cordoned it|was away|host) meanwhile",
    "since then, during …, or nothing",
    { wrong: "The target was edited meanwhile.", right: "The agent reads the power meanwhile." },
  ],
  ["correct whichever|in whichever|of whichever|by whichever", "any, also if another"],
  ["nothing to do with", "serves none of, does not concern"],
  ["by record|put on record", "recorded in the status"],
  ["over and over", "again, repeatedly"],
  ["credentials to be had|none to be had|new to be had", "available, provides"],
  ["healthy no more", "no longer healthy"],
  ["have it go on|has it go on", "continue it"],
  ["goes without us|go without us", "is deleted without an undo"],
  ["beyond dispute", "undisputed: say what must hold"],
];

/** Words that are no longer common, or that the style guides advise against. */
const COMMON_WORDS: readonly Term[] = [
  ["shall", "must, will"],
  ["upon", "on"],
  ["till", "until"],
  ["whilst", "while"],
  ["amongst", "among"],
  ["hence|thus|thereby|therein|thereof|whereof|whereby|hitherto", "so, therefore"],
  ["beside", "next to, in addition to"],
  ["lest", "so that … not"],
  ["e\\.g\\.?", "for example", { wrong: "Its kind, e.g. `Node`." }],
  ["i\\.e\\.?", "that is", { wrong: "Its kind, i.e. `Node`." }],
  ["and the like", "and similar"],
];

/** American spelling, as in the documentation of Kubernetes. */
const SPELLING: readonly Term[] = [
  ["behaviours?", "behavior", { wrong: "The behaviours differ." }],
  ["colours?", "color", { wrong: "A red colour." }],
  ["honour(?:s|ed)?", "honor", { wrong: "It honours the pause." }],
  ["neighbours?", "neighbor", { wrong: "The neighbours see it." }],
  ["catalogue", "catalog"],
  ["recognis(?:e|es|ed)", "recognize", { wrong: "It recognises the host." }],
];

/**
 * The words in the table at the end of the glossary. A test compares the two lists. If a word has other senses, its
 * pattern matches only the sense that the glossary replaces.
 */
export const GLOSSARY: Readonly<Record<string, readonly Term[]>> = {
  walk: [["walk|walks|walked|pull the plug", "the course of a remediation; power off"]],
  walker: [["walkers?", "controller", { wrong: "The walker acts." }]],
  seen: [
    ["(?:the|a|its|this) seen", "observation", { wrong: "It adds this to the seen.", right: "The host was seen off." }],
  ],
  "a look": [["(?:a|the|each|last|every) looks?", "a read, a check", { wrong: "The last look found it off." }]],
  "a live look": [["live looks?|looks? at live|looked at live", "live read, read live", { wrong: "A live look." }]],
  turn: [
    [
      "(?:a|its|their|the|his|each|every|whose|own) turns?(?! of the event loop)",
      "admission, slot, position in the queue",
      {
        wrong: "The remediation waits for its turn.",
        right: "The agent turns it off, and yields a turn of the event loop.",
      },
    ],
  ],
  place: [
    [
      "(?:free|queue) places?|gives? (?:its|their) place|places? (?:is|in the queue|are|becomes?|become) (?:free|taken)",
      "slot, position in the queue",
      { wrong: "It waits until a place is free.", right: "Another Machine takes its place." },
    ],
  ],
  gate: [
    [
      "gates? of (?:a|the|each|every|this) state|state gates?",
      "a function that begins with `ensure`",
      {
        wrong: "The gate of a state comes first.",
        right: "The BMC gate bounds calls, and a gate of the health check holds it.",
      },
    ],
  ],
  stop: [
    [
      "(?:no|each|every|which) stops?(?! switch)",
      "hold",
      {
        wrong: "An order waits for every stop.",
        right: "A stop waits for the run that is under way; the stop switch is on.",
      },
    ],
  ],
  twin: [["twins?", "counterpart", { wrong: "Its twin is gone." }]],
  taker: [["takers?", "consumer", { wrong: "The taker of the host." }]],
  rival: [["rivals?", "competitor", { wrong: "A rival names the same host." }]],
  away: [
    [
      "clusters?(?: that)? (?:is|are|was|were|be) away",
      "disconnected, cannot be reached",
      {
        wrong: "A workload cluster that is away.",
        right: "The agent takes the taint away.",
      },
    ],
  ],
  heard: [["heard", "received"]],
  said: [["said", "reported, stated"]],
  told: [
    ["told(?! apart)", "informed, reported", { wrong: "The agent is told.", right: "The two cannot be told apart." }],
  ],
  move: [
    [
      "(?:legal|allowed|next|possible|only|these|all) moves?(?! to)",
      "transition",
      {
        wrong: "These are the legal moves of the machine.",
        right: "The move to the next step moves nothing else.",
      },
    ],
  ],
  plan: [
    ["(?:the|a|its|this|each) plan", "strategy", { wrong: "The plan of a remediation.", right: "Plan half an hour." }],
  ],
  pass: [
    [
      "(?:a|one|each|every|the|per|first|second|next|last|this|single) pass(?! the)|passes of",
      "evaluation, round",
      { wrong: "One deletion a pass.", right: "All tests pass; the limits that pass the check hold." },
    ],
  ],
  census: [["census", "counts"]],
  listed: [
    [
      "(?:the|these|those) listed (?:is|are|count|counts)",
      "live nodes",
      { wrong: "The listed are counted.", right: "The listed nodes." },
    ],
  ],
  "last check": [
    [
      "same last check|last checks? (?:before|of a node|of a machine)|last check:",
      "start guard",
      { wrong: "The last check before a remediation is created.", right: "The last check was 5 s ago." },
    ],
  ],
  "side by side": [
    [
      "side by side (?:checks?|remediations?|holds?)",
      "peer check",
      { wrong: "The side by side check holds it.", right: "Both tests run side by side." },
    ],
  ],
  "steady time": [["steady time", "monotonic time"]],
  "lost member": [["lost members?", "etcd member whose Node was deleted", { wrong: "The lost members count." }]],
  subject: [
    [
      "subject of (?:a|the|this|each) command",
      "host selection",
      {
        wrong: "The subject of a command.",
        right: "The subject of a remediation.",
      },
    ],
  ],
  powered: [
    [
      "the powered(?! (?:host|off|on|node))",
      "powered host",
      { wrong: "The powered is next.", right: "The powered host." },
    ],
  ],
  rights: [["rights", "RBAC permissions"]],
  people: [["people", "the operator, a user, an administrator"]],
  somebody: [["somebody|someone|somebody's|someone's", "the operator, a user, an administrator"]],
  anybody: [["anybody|anybody's|everybody|everybody's", "any user, any client, an untrusted …"]],
  nobody: [["nobody|nobody's", "no user, no agent, nothing; or name who does not"]],
  whoever: [["whoever|whomever", "any user who, any client that"]],
};

export const VOCABULARY: readonly Term[] = [...IDIOM, ...COMMON_WORDS, ...SPELLING, ...Object.values(GLOSSARY).flat()];

/** The pattern of a term as the linter uses it: whole words, and any white space for a blank. */
export function wholeWords(pattern: string): string {
  return `(?<![\\w.-])(?:${pattern})(?![\\w-])`.replaceAll(" ", "\\s+");
}
