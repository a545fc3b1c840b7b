// Finds standing rules in the messages of users: sentences that say how something is always or never to be done.
// Questions, quoted lines and code are not rules. Pure, and by words alone: a rule that it misses can be pinned by
// hand, and one that it finds can be unpinned.

import { findOwnWords } from './own-words.ts'

// A sentence is read clause by clause. A clause is a rule if it begins like an instruction, or if "must", "never" or
// another such word stands anywhere in it. A clause that describes what is, was or may be is not a rule, even with the same words.

/** Words before an instruction that do not change its meaning. */
const LEAD =
  /^(?:[-*•#_\s]|\d+[.)]|(?:please|and|but|so|or|also|just|then|ok|okay|hey|well|instead|again|note|important|rule)\b|it(?: is|'s) (?:(?:very|really|absolutely|also|so) )?(?:important|essential|crucial|critical|vital|imperative|mandatory|necessary|required)(?: to (?:me|us))? that\b|i(?: would|'d)? (?:insist|ask|demand|require) that\b)+/
/** The scope of a rule: "in tests", "for commits", "when deploying". It has no subject and no verb. */
const PLACE = String.raw`(?:(?:in|for|on|with|during|at|under|if|when)(?: (?!(?:i|we|you|he|she|it|they|is|are|was|were|has|have|had)\b)[\w/.'-]+){1,5}? )?`
const TOLD = String.raw`(?:(?:you|we|everyone|everybody) )?(?:(?:must|should|may|can|shall|will|have to|need to) )?`
/** "Only the first test fails" is a description, and "only use the first" is an instruction. */
const OF_THINGS = String.raw`(?:the|an?|one|two|three|some|few|my|our|your|this|that|these|those|when|if|in|on|at|then|now|today|yesterday|recently|last|\d+)\b`

const ORDERS = [
  `${PLACE}${TOLD}(?:never|always|do not|don't|avoid|refrain from|prefer|only ever)\\b`,
  `(?:make sure|be sure to|ensure|take care|remember to|see to it)\\b`,
  `only (?!${OF_THINGS})`,
  `only .{1,80}\\b(?:may|can|must|should|(?:is|are) allowed)\\b`,
  `(?:use|do|deploy|answer|reply|respond|write|read|speak|commit|push|merge|run|call|send|change|edit|touch|open|install|return|show|work|query|test|look)\\b.{0,60}\\bonly\\b`,
  `[\\w-]+(?: [\\w-]+)? only$`,
  `stop \\w+ing\\b`,
  `keep (?!\\w+ing\\b|up\\b|calm|it up|at it|in touch|in mind)\\w+ \\w`,
  `(?:ask|check with|confirm with|tell|warn|notify|consult) (?:me|us)\\b.*\\b(?:before|first)\\b`,
  `(?:ask|check|confirm|consult)(?: (?!him|her|them|why|what|how|if|whether)[\\w-]+){0,4} before (?:you|any|every|each|(?!(?:evening|morning|spring|dinner)\\b)\\w+ing)\\b`,
  `ask (?:first$|for (?:permission|approval|confirmation|consent)\\b)`,
  `(?:hands off|keep out of|stay out of|stick to|stay (?:within|under|below)) \\w`,
  `leave .{1,60}\\b(?:alone|untouched|as (?:it is|they are|is))$`,
  `(?:use|write|spell|format|name) .{1,60}\\b(?:throughout|everywhere|at all times|in every case)$`,
  `treat .{1,60} as \\w`,
  `(?:wait for|get) (?:my|our) (?:approval|permission|confirmation|consent|ok|go)\\b`,
  `no .{1,60}\\b(?:without|unless|allowed|please)\\b`,
  `(?:i|we)(?: would|'d)? prefer\\b`,
  `(?:i|we) (?:never |always )?(?:want|expect|require|need) (?:all|every|each|any|no|you to (?:always|never|only))\\b`,
  `(?:i|we) (?:do not|don't|never|always) (?:want|like|allow|accept|approve|tolerate|expect|require)\\b`,
].map((order) => new RegExp(`^${order}`))

/** Words of obligation, anywhere in a clause that is not a description. */
const OBLIGES = [
  /\b(?:must|mustn't|shall)\b/,
  /\b(?:all|every|each|any|no) .{1,60}\b(?:should|needs? to|ha(?:s|ve) to)\b/,
  /\byou (?:may not|may only|can only|should not|shouldn't|(?:are not|aren't|are only) (?:allowed|permitted))\b/,
  // "You can't use the network" forbids it, and "you can't be serious" is an opinion.
  /\byou (?:cannot|can't|can not) (?!(?:be|see|imagine|know|miss|believe|possibly|really|win|blame|expect|help|beat|reproduce|go wrong|have (?:\w+ed|been|seen|done|had|missed)|tell (?:if|whether|which|from|what|why|how|me that)|say that|fix (?:it|that|this)|even)\b)/,
  /\b(?:is|are|only|isn't|aren't) (?:strictly |absolutely |completely )?(?:not allowed|allowed$|only allowed|allowed only|only permitted|forbidden|prohibited|banned|off limits|out of bounds|taboo|read only for you|capped at)\b/,
  // "At no point did it fail" is a description.
  /\b(?:at no (?:point|time)|on no account|in no event|under no condition)\b(?! (?:i|we|he|she|it|they|did|do|does|was|were|is|has|have|had|could|the)\b)/,
  /\b(?:at no (?:point|time)|on no account|in no event|under no condition) (?:the|do) .{0,80}\b(?:may|must|should|shall)\b/,
  /\b(?:is|are) (?:not|never|always|only) to be\b/,
  /\b(?:never|always)\b/,
  /\b(?:under no circumstances|in no case|at all times|without exception|from now on|no matter what)\b/,
  /\b(?:unless|until) (?:i|we) (?:say|tell|ask|approve|agree)\b/,
]

/** Verbs that end like a past tense or like a third person, but are neither. */
const NO_PAST = 'need|feed|embed|exceed|proceed|succeed|speed|seed|shed|heed|shred'
const NO_THIRD = String.raw`\w*ss|focus|canvas|alias`
const PAST = `(?:(?!(?:${NO_PAST})\\b)\\w+ed|saw|had|got|gotten|heard|was|were|been|found|did|made|knew|thought|went|gone|came|said|told|took|ran|broke|wrote|gave|felt|lost|left|met|paid|sent|happened)`
const FREQUENCY = '(?:never|always|only)'

/** Clauses that describe what is, was or may be. */
const DESCRIPTIONS = [
  /^(?:he|she|it|they|this|that|there|these|those|someone|somebody|nobody|something|nothing|people)\b/,
  /^(?:i|i'm|i've|i'd)\b/,
  /^(?:if|because|since|although|while|after|as|that|which|who|how|why|what|where) /,
  // "The list is always empty" is a description. With a word of obligation, "the list must be empty" is a rule all the
  // same.
  /^(?:the|my|our|your|their|his|her|an?) (?!.*\b(?:must|mustn't|shall|should|to be|allowed|forbidden|prohibited|banned|off limits|out of bounds|taboo|read only for you|capped at)\b)/,
  new RegExp(`\\b(?:have|has|had|was|were|we've|you've) (?:\\w+ )?${FREQUENCY}\\b`),
  // "Secrets are never logged" is a rule, and "the job never finished" is a description.
  new RegExp(`(?<!\\b(?:is|are|be) )\\b${FREQUENCY} (?:${PAST}|(?!(?:${NO_THIRD})\\b)\\w+s)\\b`),
  /\bmust have (?:been|gone|got|lost|broken|had|\w+ed)\b/,
  /\b(?:bug|problem|error|issue|cause|reason|mistake|fault|culprit) must be\b/,
  /\bmust be (?:kidding|joking|tired|down|broken|wrong|stuck|busy|offline|somewhere|something|someone)\b/,
  // Praise and blame are not rules: "you always do a great job", "you never listen".
  /^you (?:always|never) (?:forget|fail|listen|seem|know|ignore|miss|manage|disappoint|impress|surprise|understand|learn|complain|sound|look|find|get|have|help me|make me|make mistakes|give me|tell me|let me|cease)\b/,
  /^you (?:always|never) .{0,80}\b(?:great|good|nice|excellent|amazing|awesome|wonderful|fantastic|perfect|best|brilliant|bad|terrible|awful|so (?:well|much|fast))\b/,
  /^never mind\b/,
  /\bno matter what (?:i|we) (?:do|did|try|tried)\b/,
  /\b(?:do not|don't) (?:know|think|understand|see why|remember|believe|recall|care|mind|worry|bother|panic|need to|have to|get (?:it|me))\b/,
  /^we (?:do not|don't) (?:have|see|get|need|want to)\b/,
]
/** Sentences about the user's own wishes, which are rules for others. */
const WISH =
  /^i(?:'d| would)? (?:do not |don't |never |always )?(?:want|expect|require|need|prefer|like|allow|accept|approve|tolerate)\b/

/**
 * A longer line is a document, and not a rule. Of a longer text the beginning and the end are read: the rest was
 * pasted.
 */
const LINE_CHARS_READ = 4_000
const TEXT_CHARS_READ = 40_000
/** Of a longer line, only the sentences that are rules are kept. */
const LINE_CHARS_KEPT = 500
/** The shortest rules, such as "Ask me first", are hardly longer. */
const CLAUSE_CHARS_MIN = 6

/** The rules in a text. */
export type FoundRules = {
  /** The lines with a rule in them, unchanged. Pasted lines are left out. */
  readonly lines: readonly string[]
  /** Nothing in the text was pasted, so it can be kept as a whole. */
  readonly isOwn: boolean
}

export function findRules(text: string): FoundRules {
  const { lines, hasPasted } = findOwnWords(text)
  const found = linesOfBothEnds(lines.join('\n')).filter((line) =>
    sentencesIn(line.slice(0, LINE_CHARS_READ)).some(isRuleSentence),
  )
  return { lines: found.map(shortenToRules), isOwn: !hasPasted }
}

function linesOfBothEnds(text: string): readonly string[] {
  if (text.length <= TEXT_CHARS_READ) return text.split('\n')
  const half = TEXT_CHARS_READ / 2
  // A line that is cut in two is left out.
  return [...text.slice(0, half).split('\n').slice(0, -1), ...text.slice(-half).split('\n').slice(1)]
}

/** Of a long line, keeps the sentences that are rules. */
function shortenToRules(line: string): string {
  if (line.length <= LINE_CHARS_KEPT) return line
  return sentencesIn(line.slice(0, LINE_CHARS_READ)).filter(isRuleSentence).join(' ')
}

function sentencesIn(line: string): readonly string[] {
  return line.split(/(?<=[.!?])\s+/).filter(({ length }) => length >= CLAUSE_CHARS_MIN)
}

/** The apostrophe of "don't" does not open or close a quotation. */
const SINGLE_QUOTED = /(?<![\w'])'(?!\s)(?:[^'\n]|'(?=\w)){1,400}'(?!\w)/g

/** Text in quotation marks inside a sentence does not count. */
function isRuleSentence(sentence: string): boolean {
  if (sentence.trimEnd().endsWith('?')) return false
  const own = sentence
    .replace(/"[^"]*"|“[^”]*”|«[^»]*»|`[^`]*`/g, ' ')
    .replaceAll('’', "'")
    .replace(SINGLE_QUOTED, ' ')
    .toLowerCase()
    .replace(/\b(off|read)-(limits|only)\b/g, '$1 $2')
    .replace(/\b(you|they|we)'re\b/g, '$1 are')
    .replace(/[.!\s]+$/, '')
  return ordersAfterCondition(own) || forbidsThings(own) || clausesIn(own).some(isRuleClause)
}

/**
 * Finds "Whenever you change it, bump the version." A clause about what happens then by itself is not an instruction.
 */
function ordersAfterCondition(sentence: string): boolean {
  return /^(?:whenever|every time|each time|before|after) (?:you|every|each|any)\b[^,]{2,80}, (?!(?:i|we|he|she|it|they|this|that|there|the|my|nothing|everything)\b)\w/.test(
    sentence.replace(LEAD, ''),
  )
}

function clausesIn(sentence: string): readonly string[] {
  return sentence
    .split(/[,;:()]|\s[–—-]\s|\s(?=(?:and|but|so) )/)
    .filter(({ length }) => length >= CLAUSE_CHARS_MIN)
    .map((clause) => clause.trim().replace(LEAD, '').trim())
}

/** Words after "no" in a report or an answer, which forbid nothing. */
const REPORTED =
  'problems?|issues?|errors?|worries|thanks|ideas?|clues?|luck|results?|changes?|differences?|matches|warnings?|failures?|questions?|regrets|updates?|objections|complaints|surprises|crashes|exceptions?|responses?|answers?|users|rows|entries|files|tests|news|hits|logs|traces|signs|doubts?|hints|guarantees|means|reasons|others|matter|kidding|meaning|feelings?|things?|strings?|biggies|buts|ifs|yes|plans|details|tables|records|items|lines|permissions|jobs|processes|connections'
/** Words without a plural that no report has after "no". */
const UNCOUNTED =
  'emoji|jargon|slang|markdown|html|javascript|typescript|jquery|python|sudo|root|profanity|sarcasm|small talk|boilerplate|fluff|filler|preamble|prose|downtime|overtime|code|css|sql|regex|german|english|french|spanish|plagiarism|spam|marketing speak'
const NO_THINGS = new RegExp(
  `^no (?!.*\\b(?:is|are|was|were|has|have|had|left|yet|so far|anymore|here|there|today|yesterday|now|either)\\b)(?!(?:more|other|new|such|further|real|obvious|visible)? ?(?:${REPORTED})\\b)(?!(?:[\\w-]+ ){1,2}(?:${REPORTED})\\b)(?:[\\w-]+ ){0,2}?(?:${UNCOUNTED}|\\w{2,}(?:(?<![su]|[sx]i)s|(?<!th)ing))(?: (?:on|in|during|at|to|from|for|after|before|with|over|under|outside|inside) .{1,60}| (?:ever|at all|whatsoever))?$`,
)

/**
 * Finds "No emojis." and "Rule: no deploys on Friday." Only a whole sentence forbids like this: "it works, no crashes"
 * is a report.
 */
function forbidsThings(sentence: string): boolean {
  const plain = sentence.replace(LEAD, '').replace(/^(?::\s*|(?:rules?|constraints?|policy|style|remember): ?)/, '')
  return plain
    .split(/, | and /)
    .every((part) => NO_THINGS.test(part.trim()) && !/\b\w+(?:[^e]ed|[^e]ied|found|seen)$/.test(part))
}

function isRuleClause(clause: string): boolean {
  const isDescribing = DESCRIPTIONS.some((words) => words.test(clause)) && !WISH.test(clause)
  return !isDescribing && [...ORDERS, ...OBLIGES].some((words) => words.test(clause))
}
