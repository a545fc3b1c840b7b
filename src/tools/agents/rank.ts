// Toolkit ranking: of hundreds of tools, those that fit a prompt. Words only: no model is asked, nothing is read, and the same input
// gives the same list.

export type RankedTool = { readonly name: string; readonly description: string }

const TOOLS_MAX = 20
/** With fewer hits than this the prompt says too little, and all tools stay. */
const HITS_MIN = 3
const PROMPT_CHARS_MAX = 4_000
const DESCRIPTION_CHARS_MAX = 1_000

/** The seven verbs, with the words that mean them. */
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
  ],
  send: ['send', 'reply', 'forward', 'notify', 'share', 'message', 'email', 'invite'],
  read: ['read', 'get', 'fetch', 'show', 'view', 'retrieve', 'download', 'check', 'see', 'look'],
  list: ['list', 'search', 'find', 'query', 'browse', 'all'],
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

/** At most `most` tools, the best first. The order of equals is that of their names. */
export function rankTools<T extends RankedTool>(tools: readonly T[], prompt: string, most = TOOLS_MAX): readonly T[] {
  const words = wordsOf(prompt.slice(0, PROMPT_CHARS_MAX))
  const verbs = new Set(words.flatMap((word) => VERB_OF.get(word) ?? []))
  // A verb is no subject: "open" must not fetch "list open issues".
  const subjects = new Set(words.filter((word) => !VERB_OF.has(word) && !STOPWORDS.has(word)))
  const scored = tools.flatMap((tool) => {
    const score = scoreOf(tool, subjects, verbs)
    return score === null ? [] : [{ tool, score }]
  })
  const hits = scored.filter(({ score }) => score > 0)
  if (hits.length < HITS_MIN) return tools
  return hits
    .toSorted((a, b) => b.score - a.score || compare(a.tool.name, b.tool.name))
    .slice(0, most)
    .map(({ tool }) => tool)
}

const NAME_WEIGHT = 3
const SAME_VERB = 3
const OTHER_VERB = -2

/** Null: it does something else than the prompt asks for. A tool without a subject of the prompt is no hit, whatever its verb. */
function scoreOf(
  { name, description }: RankedTool,
  subjects: ReadonlySet<string>,
  verbs: ReadonlySet<string>,
): number | null {
  const named = wordsOf(name)
  const verb = verbIn(named)
  if (verb !== null && verbs.size > 0 && !verbs.has(verb)) return null
  const own = new Set(named)
  const told = wordsOf(description.slice(0, DESCRIPTION_CHARS_MAX))
  const inName = [...subjects].filter((word) => own.has(word)).length
  const inText = [...subjects].filter((word) => told.includes(word)).length
  const overlap = NAME_WEIGHT * inName + inText
  if (overlap === 0) return 0
  const toldVerb = verb ?? verbIn(told.slice(0, 3))
  const bonus = verbs.size === 0 || toldVerb === null ? 0 : verbs.has(toldVerb) ? SAME_VERB : OTHER_VERB
  // Of two that match alike, the one with fewer other words is nearer.
  const strange = named.filter((word) => !subjects.has(word) && !VERB_OF.has(word)).length
  return Math.max(0, overlap + bonus - strange / 100)
}

/** The first word of a name that is a verb: names begin with it, or with their toolkit and then it. */
function verbIn(words: readonly string[]): string | null {
  for (const word of words.slice(0, 3)) {
    const verb = VERB_OF.get(word)
    if (verb !== undefined) return verb
  }
  return null
}

/** Lower case, `camelCase` and `snake_case` apart, abbreviations written out, plurals as singulars. */
function wordsOf(text: string): readonly string[] {
  const spaced = text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()
  const words = spaced.match(/[\p{L}\p{N}]+/gu) ?? []
  return words.flatMap((word) =>
    Object.hasOwn(ABBREVIATIONS, word) ? (ABBREVIATIONS[word] ?? '').split(' ') : [singular(word)],
  )
}

function singular(word: string): string {
  if (word.length <= 3 || /(ss|us|is)$/.test(word)) return word
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`
  return word.endsWith('s') ? word.slice(0, -1) : word
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
