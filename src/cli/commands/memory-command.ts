// `terret memory`: shows the runtime files of a session, and shows, searches, promotes and removes the learnings of
// this folder. The runtime files are made from the log; editing them changes only this output.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Event } from '../../kernel/index.ts'
import type { Learned, Ownership } from '../../memory/index.ts'
import type { CommandArgs } from '../args.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { readAllEvents } from '../state/read-log.ts'
import { CLI_AGENT, openFolderMemory, type FolderMemory, runtimeDir } from '../state/folder-memory.ts'
import { withStoreToRead, type CommandContext, findSession } from '../state/command-context.ts'
import { print, printJson, printQuoted, shortId, warn, terretCommand } from '../present/print.ts'

const VERBS = [
  'query',
  'learnings',
  'episodes',
  'promote',
  'forget',
  'forget-episode',
  'share',
  'forget-owner',
  'rebuild',
] as const
type Verb = (typeof VERBS)[number]

export function memoryCommand(call: CommandArgs): Promise<number> {
  const given = VERBS.filter((verb) => call.is(verb) || call.text(verb) !== undefined)
  const [verb] = given
  if (given.length + call.words.length > 1)
    throw new CliError(
      EXIT.usage,
      `Only one of these at a time: an ID, or one of ${VERBS.map((each) => `--${each}`).join(', ')}.`,
    )
  if (call.text('top') !== undefined && verb !== 'query')
    throw new CliError(EXIT.usage, '--top goes with --query: terret memory --query TEXT --top N')
  const owner = call.text('owner')
  if (owner !== undefined && (verb === undefined || verb === 'rebuild' || verb === 'forget-owner'))
    throw new CliError(
      EXIT.usage,
      '--owner goes with --query, --learnings, --episodes, --promote, --forget, --forget-episode and --share.',
    )
  const top = call.count('top')
  return withStoreToRead(async (place) => {
    if (verb === undefined) return showRuntimeFiles(place, call, call.words[0] ?? 'latest')
    if (verb === 'rebuild') return rebuildFiles(place, call, call.text(verb) ?? '')
    const remembered = await openFolderMemory(place.home, place.folder, place.store)
    try {
      return await ACTS[verb]({
        ...remembered,
        call,
        given: call.text(verb) ?? '',
        top,
        whose: owner === undefined ? {} : { owner },
      })
    } finally {
      await remembered.memory.close()
    }
  })
}

const FILES = ['working-buffer.md', 'session-state.md', 'checkpoint.json'] as const

async function showRuntimeFiles(place: CommandContext, call: CommandArgs, name: string): Promise<number> {
  const { session } = await findSession(place, name)
  const [{ runtimeFolder }, expected] = await Promise.all([
    import('../../memory/index.ts'),
    expectedTexts(session, await readAllEvents(place.store, session)),
  ])
  const folder = runtimeFolder(session, runtimeDir(place.home))
  const files = FILES.map((file) => {
    const text = readOrNull(join(folder, file))
    return { file, text, state: text === null ? 'missing' : text === expected[file] ? 'current' : 'stale' }
  })
  if (call.is('json')) printJson({ session, folder, files })
  else {
    for (const { file, text } of files)
      if (text !== null) {
        print(`--- ${oneLine(join(folder, file), 400)}`, '')
        printQuoted(text.trimEnd())
        print('')
      }
    const off = files.filter(({ state }) => state !== 'current')
    const again = `\`${terretCommand`memory --rebuild ${session}`}\` writes them from the log, and so does a wake.`
    if (off.length > 0) warn(`${off.map(({ file, state }) => `${file}: ${STATES[state] ?? ''}`).join('; ')}. ${again}`)
  }
  return EXIT.ok
}

const STATES: Readonly<Record<string, string>> = {
  missing: 'not there',
  stale: 'not what the log says now',
}

async function expectedTexts(session: string, events: readonly Event[]): Promise<Readonly<Record<string, string>>> {
  const { checkpointOf, sessionStateOf, workingBufferOf } = await import('../../memory/index.ts')
  return {
    'checkpoint.json': checkpointOf(session, events),
    'session-state.md': sessionStateOf(session, events),
    'working-buffer.md': workingBufferOf(session, events),
  }
}

function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

async function rebuildFiles(place: CommandContext, call: CommandArgs, name: string): Promise<number> {
  const { session } = await findSession(place, name)
  const { writeRuntimeFiles } = await import('../../memory/index.ts')
  const folder = await writeRuntimeFiles(place.store, session, runtimeDir(place.home))
  if (call.is('json')) printJson({ session, folder, files: FILES })
  else print(`Wrote ${FILES.join(', ')} in ${oneLine(folder, 400)}.`)
  return EXIT.ok
}

type VerbInput = FolderMemory & {
  readonly call: CommandArgs
  readonly given: string
  readonly top: number | undefined
  readonly whose: Ownership
}

/** A person waits for the answer, so the search may take longer than in a run. */
const SEARCH_MS = 30_000
const LEAST_SCORE = 0.01

const ACTS: Readonly<Record<Exclude<Verb, 'rebuild'>, (act: VerbInput) => Promise<number>>> = {
  query: async ({ memory: learnings, call, given, top: limit = 5, whose }) => {
    if (given.trim() === '') throw new CliError(EXIT.usage, 'The query is empty. Usage: terret memory --query TEXT')
    const wide = { ...whose, limit, minScore: LEAST_SCORE, charsMax: Number.POSITIVE_INFINITY, timeoutMs: SEARCH_MS }
    const found = await learnings.recall(CLI_AGENT, given, wide)
    if (call.is('json')) for (const one of found) printJson(one)
    else if (found.length === 0) warn('No learning of this folder matches.')
    else
      for (const { id, kind, title, score, at, snippet } of found) {
        print(`${score.toFixed(2)}  ${learningHead({ id, kind, title, at })}`, `      ${oneLine(snippet, 400)}`)
      }
    return EXIT.ok
  },
  learnings: async ({ memory: learnings, call, promoted, whose }) => {
    const all = await learnings.list(CLI_AGENT, whose)
    if (call.is('json')) for (const one of all) printJson(one)
    else if (all.length === 0) warn('Nothing was learned in this folder yet.')
    else {
      for (const one of all)
        print(
          `${learningHead(one)}${one.promote ? '  (asks to be kept)' : ''}`,
          `  ${oneLine(one.detail, 400)}`,
          ...sourceLines(one),
        )
      if (existsSync(promoted)) warn(`Kept ones are in ${oneLine(promoted, 400)}.`)
    }
    return EXIT.ok
  },
  episodes: async ({ memory: learnings, call, whose }) => {
    const all = await learnings.episodes(CLI_AGENT, whose)
    if (call.is('json')) for (const one of all) printJson(one)
    else if (all.length === 0) warn('There are no episodes of this folder. "memory": { "episodes": true } keeps them.')
    else
      for (const { id, outcome, at, asked, answer } of all)
        print(
          `${shortLearningId(id)}  ${outcome.padEnd(11)}  ${new Date(at).toISOString().slice(0, 10)}  ${oneLine(asked, 200)}`,
          `  ${oneLine(answer, 200)}`,
        )
    return EXIT.ok
  },
  promote: async ({ memory: learnings, call, given, promoted, whose }) => {
    const { id, title } = findLearning(await learnings.list(CLI_AGENT, whose), given)
    const [added] = await learnings.promote(CLI_AGENT, { ...whose, file: promoted, ids: [id] })
    if (call.is('json')) printJson({ id, title, file: promoted, added: added !== undefined })
    else print(added ? `Kept "${oneLine(title)}" in ${promoted}.` : `"${oneLine(title)}" is in ${promoted} already.`)
    return EXIT.ok
  },
  forget: async ({ memory: learnings, call, given, promoted, whose }) => {
    const { id, title } = findLearning(await learnings.list(CLI_AGENT, whose), given)
    await learnings.forget(CLI_AGENT, id, { ...whose, file: promoted })
    if (call.is('json')) printJson({ id, title, forgotten: true })
    else print(`Forgot "${oneLine(title)}". The log of its session still has it.`)
    return EXIT.ok
  },
  'forget-episode': async ({ memory: learnings, call, given, whose }) => {
    const { id } = findRemembered(await learnings.episodes(CLI_AGENT, whose), given, EPISODES)
    await learnings.forgetEpisode(CLI_AGENT, id, whose)
    if (call.is('json')) printJson({ id, forgotten: true })
    else print(`Forgot the episode ${shortLearningId(id)}. The log of its session still has the run.`)
    return EXIT.ok
  },
  share: async ({ memory: learnings, call, given, whose }) => {
    const { id, title } = findLearning(await learnings.list(CLI_AGENT, whose), given)
    await learnings.share(CLI_AGENT, id, whose)
    if (call.is('json')) printJson({ id, title, shared: true })
    else print(`"${oneLine(title)}" is shown to the sessions of all owners in this folder.`)
    return EXIT.ok
  },
  'forget-owner': async ({ memory: learnings, call, given }) => {
    const forgotten = await learnings.forgetOwner(given)
    if (call.is('json')) printJson({ owner: given, forgotten })
    else print(`Forgot ${forgotten} learnings of ${oneLine(given)}. The logs of the sessions still have them.`)
    return EXIT.ok
  },
}

function learningHead({ id, kind, title, at }: Pick<Learned, 'id' | 'kind' | 'title' | 'at'>): string {
  return `${shortLearningId(id)}  ${kind.padEnd(10)}  ${new Date(at).toISOString().slice(0, 10)}  ${oneLine(title)}`
}

/** The sources of an extracted learning. */
function sourceLines({ from }: Learned): readonly string[] {
  return from.length === 0 ? [] : [`  extracted from ${from.map(shortLearningId).join(', ')}`]
}

/** `session:seq`, with a short session id. */
function shortLearningId(id: string): string {
  const at = id.lastIndexOf(':')
  return `${shortId(id.slice(0, at))}${shownId(id.slice(at))}`
}

const LEARNINGS = { one: 'learning', all: 'learnings' } as const
const EPISODES = { one: 'episode', all: 'episodes' } as const

function findLearning(all: readonly Learned[], name: string): Learned {
  return findRemembered(all, name, LEARNINGS)
}

/** Finds the one with this id, which may have a short session id. */
function findRemembered<T extends { readonly id: string }>(
  all: readonly T[],
  name: string,
  called: typeof LEARNINGS | typeof EPISODES,
): T {
  const cut = name.lastIndexOf(':')
  const [start, end] = [name.slice(0, cut), name.slice(cut)]
  const alike = ({ id }: T): boolean => id.startsWith(start) && id.slice(id.lastIndexOf(':')) === end
  const found = all.filter(({ id }) => id === name)
  const near = found.length > 0 || cut < 1 ? found : all.filter(alike)
  const [one] = near
  if (one && near.length === 1) return one
  const what = one
    ? `"${name}" could mean several ${called.all}.`
    : `There is no ${called.one} "${name}" in this folder.`
  const shows = called === EPISODES ? terretCommand`memory --episodes` : terretCommand`memory --learnings`
  throw new CliError(EXIT.missing, `${what} \`${shows}\` shows them.`)
}
