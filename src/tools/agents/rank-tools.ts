// Toolkit ranking: of hundreds of tools, picks those that fit a prompt. It compares words only: it asks no model and
// reads no file, and the same input gives the same list.

/** A tool as `rankTools` compares it with a task. */
export type RankedTool = {
  /** The name of the tool. */
  readonly name: string
  /** What the tool does, in words that a task may share. */
  readonly description: string
}

const TOOLS_MAX = 20
/** With fewer hits than this, the prompt says too little to leave out all other tools. */
const HITS_MIN = 3
const PROMPT_CHARS_MAX = 4_000
const DESCRIPTION_CHARS_MAX = 1_000

/** The seven verbs, each with the words that mean it. */
const VERBS: Readonly<Record<string, readonly string[]>> = {
  create: [
    'create',
    'add',
    'new',
    'make',
    'open',
    'insert',
    'post',
    'draft',
    'start',
    'write',
    'generate',
    'upload',
    'schedule',
    'append',
    'put',
    'book',
  ],
  send: ['send', 'reply', 'forward', 'notify', 'share', 'message', 'email', 'invite'],
  read: [
    'read',
    'get',
    'fetch',
    'show',
    'view',
    'retrieve',
    'download',
    'check',
    'see',
    'look',
    'what',
    'who',
    'when',
    'why',
  ],
  list: ['list', 'search', 'find', 'query', 'browse', 'all', 'which', 'where', 'any'],
  update: [
    'update',
    'edit',
    'change',
    'modify',
    'set',
    'rename',
    'move',
    'patch',
    'replace',
    'assign',
    'close',
    'reopen',
  ],
  delete: ['delete', 'remove', 'trash', 'archive', 'cancel', 'clear', 'unset'],
  merge: ['merge', 'combine', 'squash', 'rebase'],
}
const VERB_OF: ReadonlyMap<string, string> = new Map(
  Object.entries(VERBS).flatMap(([verb, words]) => words.map((word) => [word, verb] as const)),
)

const ABBREVIATIONS: Readonly<Record<string, string>> = {
  pr: 'pull request',
  prs: 'pull request',
  mr: 'merge request',
  dm: 'direct message',
  dms: 'direct message',
  msg: 'message',
  repo: 'repository',
  repos: 'repository',
  org: 'organization',
  orgs: 'organization',
  doc: 'document',
  docs: 'document',
  cal: 'calendar',
  ci: 'workflow run',
  env: 'environment',
  vars: 'variable',
  config: 'configuration',
  auth: 'authentication',
}
const STOPWORDS: ReadonlySet<string> = new Set(
  'a an and are at be by can do for from has have i if in into is it its me my of on or our please so that the their them then there this to up us we with you your'.split(
    ' ',
  ),
)

/** Nouns that people use where a toolkit uses another word. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  ticket: ['issue'],
  bug: ['issue'],
  meeting: ['event'],
  appointment: ['event'],
  lunch: ['event'],
  mail: ['email'],
  build: ['workflow'],
  error: ['log'],
}

/** Returns at most `most` tools, best first. Equal scores are ordered by name. */
export function rankTools<T extends RankedTool>(tools: readonly T[], prompt: string, most = TOOLS_MAX): readonly T[] {
  const read = tools.map(readToolWords)
  const { nouns, weightOf } = countWords(read)
  const wanted = readPrompt(prompt.slice(0, PROMPT_CHARS_MAX), nouns, weightOf)
  const scored = tools.map((tool, i) => ({ tool, ...scoreTool(read[i] as ToolWords, wanted) }))
  const hits = scored.filter(({ hit }) => hit)
  if (hits.length === 0) return tools
  // With one or two hits the prompt says little, so other tools fill the list.
  return (hits.length < HITS_MIN ? scored : hits)
    .toSorted((a, b) => b.score - a.score || compareNames(a.tool.name, b.tool.name))
    .slice(0, most)
    .map(({ tool }) => tool)
}

/** The words of a tool's name and description. `subjects` are the words of the name without its verb. */
type ToolWords = {
  readonly verb: string | null
  readonly subjects: readonly string[]
  readonly told: ReadonlySet<string>
}

function readToolWords({ name, description }: RankedTool): ToolWords {
  const named = normalWords(name)
  const told = normalWords(description.slice(0, DESCRIPTION_CHARS_MAX))
  const verb = findVerb(named)
  return { verb: verb ?? findVerb(told), subjects: named.filter((word) => word !== verb), told: new Set(told) }
}

/** A word that few tools have weighs more than one that all have. `nouns` are the subjects of all names. */
function countWords(read: readonly ToolWords[]) {
  const counts = new Map<string, number>()
  const nouns = new Set<string>()
  for (const { subjects, told } of read) {
    for (const word of subjects) nouns.add(word)
    for (const word of new Set([...subjects, ...told])) counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  const weightOf = (word: string): number => Math.log(1 + read.length / (COUNT_MIN + (counts.get(word) ?? read.length)))
  return { nouns, weightOf }
}

/**
 * `verb` is the first verb as written; `verbs` are the meanings of the later ones. Each subject has its synonyms, with
 * their weights.
 */
type PromptWords = {
  readonly verb: string | null
  readonly verbs: ReadonlySet<string>
  readonly subjects: readonly (readonly (readonly [word: string, weight: number])[])[]
}

function readPrompt(prompt: string, nouns: ReadonlySet<string>, weightOf: (word: string) => number): PromptWords {
  const words = [...new Set(normalWords(prompt))].filter((word) => !STOPWORDS.has(word))
  const [verb = null, ...others] = words.filter((word) => VERB_OF.has(word))
  const subjects = words.flatMap((word, at) => {
    // "open" is not a subject. "email" is one if some tool has it as its subject, even in "email Bob".
    const whole = !VERB_OF.has(word) ? 1 : !nouns.has(word) ? 0 : word === verb ? VERB_AS_SUBJECT : 1
    const share = whole / (1 + at * LATER)
    const synonyms = (Object.hasOwn(SYNONYMS, word) ? SYNONYMS[word] : undefined) ?? []
    const meant = [[word, share] as const, ...synonyms.map((other) => [other, SYNONYM * share] as const)]
    return share === 0 ? [] : [meant.map(([other, part]) => [other, part * weightOf(other)] as const)]
  })
  return { verb, verbs: new Set(others.flatMap((word) => VERB_OF.get(word) ?? [])), subjects }
}

const NAME_WEIGHT = 3
const VERB_AS_SUBJECT = 0.5
const SYNONYM = 0.7
/** Earlier words weigh more: "a message in the channel" is about a message. */
const LATER = 0.2
/** In a small toolkit it means little that one more tool has a word. */
const COUNT_MIN = 3
/**
 * Factors for the score, by the tool's verb: the prompt's own word, a word of the same meaning, a related verb, no
 * verb, a later verb, another verb.
 */
const VERB_WEIGHTS = { same: 1.6, meant: 1.5, near: 1.3, none: 1.1, later: 1.1, other: 0.8 }
const NEAR: Readonly<Record<string, string>> = { read: 'list', list: 'read', create: 'send', send: 'create' }

/** A tool that shares no subject with the prompt is not a hit, whatever its verb. */
function scoreTool(
  tool: ToolWords,
  { verb, verbs, subjects }: PromptWords,
): { readonly hit: boolean; readonly score: number } {
  const weight = VERB_WEIGHTS[verbMatch(tool.verb, verb, verbs)]
  let overlap = 0
  const named = new Set<string>()
  for (const meant of subjects) {
    let best = 0
    for (const [word, value] of meant) {
      const inName = tool.subjects.includes(word)
      if (inName) named.add(word)
      best = Math.max(best, inName ? NAME_WEIGHT * value : tool.told.has(word) ? value : 0)
    }
    overlap += best
  }
  // Of two tools that match equally, the one with fewer other words in its name is nearer.
  const near = (1 + named.size) / (1 + tool.subjects.length)
  return overlap > 0 ? { hit: true, score: weight * overlap * (1 + near) } : { hit: false, score: weight - 10 }
}

function verbMatch(own: string | null, asked: string | null, later: ReadonlySet<string>): keyof typeof VERB_WEIGHTS {
  if (own === null || asked === null) return 'none'
  if (own === asked) return 'same'
  const [kind = '', wanted = ''] = [VERB_OF.get(own), VERB_OF.get(asked)]
  if (kind === wanted) return 'meant'
  return NEAR[kind] === wanted ? 'near' : later.has(kind) ? 'later' : 'other'
}

/** The first verb of a text. Names begin with their verb, or with the toolkit's name and then the verb. */
function findVerb(words: readonly string[]): string | null {
  return words.slice(0, 3).find((word) => VERB_OF.has(word)) ?? null
}

/**
 * Splits text into lower-case words: separates `camelCase` and `snake_case`, expands abbreviations, makes plurals
 * singular.
 */
function normalWords(text: string): readonly string[] {
  const spaced = text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()
  const words = spaced.match(/[\p{L}\p{N}]+/gu) ?? []
  return words.flatMap((word) =>
    Object.hasOwn(ABBREVIATIONS, word) ? (ABBREVIATIONS[word] ?? '').split(' ') : [singularOf(word)],
  )
}

function singularOf(word: string): string {
  if (word.length <= 3 || /(ss|us|is)$/.test(word)) return word
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`
  if (/(ch|sh|ss|x)es$/.test(word)) return word.slice(0, -2)
  return word.endsWith('s') ? word.slice(0, -1) : word
}

function compareNames(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
