// Reads agent definitions: those that ship with the package, those of the user, and those of a workspace that is trusted. By id, each
// replaces the one before; that of a workspace may only narrow. Files are data from elsewhere: bounded, regular, and never a link.
import { constants, existsSync, readFileSync } from 'node:fs'
import { open, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Fault } from '../kernel/failure.ts'
import { DEFAULT_LIMITS } from '../kernel/limits.ts'
import { type Checks, count, filled, flag, listOf, optionsOf } from '../options.ts'
import { contains } from '../tools/files/paths.ts'
import { FRONT_CHARS_MAX, splitFront } from '../tools/skills/front.ts'
import { visible } from '../view/invisible.ts'
import { type AgentDefinition, definitionOf, fault, type Layer, type Raw, type RawFile } from './definition.ts'
import { type Bounds, narrowed } from './narrow.ts'
import { linked } from './tiers.ts'

export type LoadOptions = {
  /** The user's folder: `agents/*.md` in it replace what ships. */
  readonly config?: string
  /** The folder that is worked on: `.terret/agents/*.md` in it may narrow, and only if it is `trusted`. */
  readonly workspace?: string
  /** Default false: nothing of the workspace is read. */
  readonly trusted?: boolean
  /** The providers that a workspace may name a model of. Default: none but those of the definitions it narrows. */
  readonly providers?: readonly string[]
  /** The most requests of a run that a workspace may give an agent of its own. Default: the limit of a harness. */
  readonly maxIterations?: number
}

const CHECKS: Checks<LoadOptions> = {
  config: filled,
  workspace: filled,
  trusted: flag,
  providers: listOf(filled),
  maxIterations: count(1),
}
const checkOptions = optionsOf<LoadOptions>('loadAgents', CHECKS)

export type LoadedAgents = {
  /** By id, in the order of their ids. */
  readonly definitions: readonly AgentDefinition[]
  /** Files that were skipped, and names that are not there, one sentence each with file and line. */
  readonly troubles: readonly string[]
}

const FILES_MAX = 200
const BYTES_MAX = 256 * 1024

/**
 * A file that cannot be read is skipped and named. What a file says wrongly (an unknown key, a bad value, two files of one id, more
 * than a workspace may, a tier) throws `invalid_config` with the file and the line.
 */
export async function loadAgents(options: LoadOptions = {}): Promise<LoadedAgents> {
  checkOptions(options)
  const { config, workspace, trusted = false } = options
  const bounds = {
    providers: options.providers ?? [],
    maxIterations: options.maxIterations ?? DEFAULT_LIMITS.modelRequests,
    timeoutMs: DEFAULT_LIMITS.activeMs,
  }
  const troubles: string[] = []
  const known = new Map<string, AgentDefinition>()
  const shipped = archetypesFolder()
  if (!readBuilt(shipped, known)) await readLayer({ folder: shipped, layer: 'built-in', known, bounds, troubles })
  if (config !== undefined) await readLayer({ folder: join(config, 'agents'), layer: 'user', known, bounds, troubles })
  if (workspace !== undefined && trusted) {
    const folder = join(workspace, '.terret', 'agents')
    await readLayer({ folder, layer: 'workspace', within: workspace, known, bounds, troubles })
  }
  const { definitions, troubles: missing } = linked([...known.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1)))
  return { definitions, troubles: [...troubles, ...missing.map(({ message }) => message)] }
}

/** What ships, as the build read it from the files of this folder. False from source, where nothing was built. */
function readBuilt(folder: string, known: Map<string, AgentDefinition>): boolean {
  const built = `${folder}.json`
  if (!existsSync(built)) return false
  // Sound: rolldown.config.ts wrote there what this file loads.
  const definitions = JSON.parse(readFileSync(built, 'utf8')) as readonly AgentDefinition[]
  for (const each of definitions) known.set(each.id, { ...each, file: join(folder, each.file) })
  return true
}

/** Beside the built module or the chunk it is in, or from source. */
function archetypesFolder(): string {
  const places = ['./archetypes', '../agents/archetypes', './agents/archetypes'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  )
  const found = places.find((path) => existsSync(path))
  // The tests' build compiles to .build/src, and copies no text.
  const source = fileURLToPath(new URL('../../../src/agents/archetypes', import.meta.url))
  return found ?? source
}

type Reading = {
  readonly folder: string
  readonly layer: Layer
  /** The real folder must lie in this one. */
  readonly within?: string
  readonly known: Map<string, AgentDefinition>
  readonly bounds: Bounds
  readonly troubles: string[]
}

async function readLayer({ folder, layer, within, known, bounds, troubles }: Reading): Promise<void> {
  const own = new Map<string, AgentDefinition>()
  for (const file of await filesIn(folder, within, troubles)) {
    const raw = await rawOf(file, layer, troubles)
    if (raw === null) continue
    // The id first: what a workspace leaves out is that of the definition it narrows.
    const { id } = definitionOf(raw, ANY)
    const base = known.get(id) ?? null
    const made = definitionOf(raw, layer === 'workspace' ? base : null)
    const twin = own.get(id)
    if (twin) throw fault(made, 'id', `"${id}" is also the id of ${twin.file}. Rename one of them`)
    own.set(id, layer === 'workspace' ? narrowed(made, base, bounds) : made)
  }
  for (const [id, definition] of own) known.set(id, definition)
}

/** Stands for whatever a file narrows while only its id is looked at. */
const ANY = { whenToUse: 'any', prompt: 'any' } as AgentDefinition

/** In the order of their names. A folder that is not there has no files. */
async function filesIn(folder: string, within: string | undefined, troubles: string[]): Promise<readonly string[]> {
  try {
    const real = await realpath(folder)
    if (within !== undefined && !contains(await realpath(within), real)) {
      troubles.push(`${folder} leads out of its workspace, and is not read.`)
      return []
    }
    const entries = await readdir(real, { withFileTypes: true })
    const names = entries.map(({ name }) => name).filter((name) => /^[^.].*\.md$/i.test(name))
    if (names.length > FILES_MAX) troubles.push(`${folder} has ${names.length} files; the first ${FILES_MAX} are read.`)
    return names
      .toSorted()
      .slice(0, FILES_MAX)
      .map((name) => join(folder, name))
  } catch (error) {
    if (!isMissing(error)) troubles.push(`${folder} cannot be read (${codeOf(error)}), and is skipped.`)
    return []
  }
}

/** Null if it cannot be read; then it is named among the troubles. */
async function rawOf(file: string, layer: Layer, troubles: string[]): Promise<RawFile | null> {
  const skip = (why: string): null => {
    troubles.push(`${file}:1: ${why}. It is skipped.`)
    return null
  }
  const text = await textOf(file)
  if (typeof text !== 'string') return skip(text.why)
  const parts = splitFront(text, FRONT_CHARS_MAX)
  if (parts === 'none') return skip('it has no front matter: begin with a line "---"')
  if (parts === 'open') return skip(`no line "---" ends the front matter within ${FRONT_CHARS_MAX} characters`)
  const keys = await keysOf(parts.front)
  return 'why' in keys ? skip(String(keys.why)) : { file, layer, keys: keys.all, prompt: visible(parts.body).text }
}

async function textOf(file: string): Promise<string | { readonly why: string }> {
  try {
    const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    try {
      const found = await handle.stat()
      if (!found.isFile()) return { why: 'it is not a regular file' }
      if (found.size > BYTES_MAX) return { why: `it has ${found.size} bytes, and at most ${BYTES_MAX} are read` }
      return await handle.readFile('utf8')
    } finally {
      await handle.close()
    }
  } catch (error) {
    const why = codeOf(error) === 'ELOOP' ? 'it is a link' : `it cannot be read (${codeOf(error)})`
    return { why }
  }
}

type Keys = { readonly all: RawFile['keys'] } | { readonly why: string }

/** All scalars are text, as in skills: the checks of the keys know what each should be. */
async function keysOf(front: string): Promise<Keys> {
  // Only here: it is large, and most harnesses read no definitions.
  const { isMap, isScalar, LineCounter, parseDocument } = await import('yaml')
  const lineCounter = new LineCounter()
  const document = parseDocument(front, { schema: 'failsafe', logLevel: 'silent', lineCounter })
  const [wrong] = document.errors
  if (wrong)
    return { why: `the front matter is not valid YAML: ${(wrong.message.split('\n')[0] ?? '').replace(/:$/, '')}` }
  const { contents } = document
  if (contents === null) return { all: {} }
  if (!isMap(contents)) return { why: 'the front matter must be "key: value" lines' }
  let made: Readonly<Record<string, Raw>>
  try {
    made = document.toJS() as typeof made
  } catch (error) {
    // An alias of nothing, or aliases of aliases without end.
    return { why: `the front matter is not valid YAML: ${error instanceof Error ? error.message : String(error)}` }
  }
  const all: Record<string, { readonly value: Raw; readonly line: number }> = Object.create(null) as never
  for (const { key, value } of contents.items) {
    if (!isScalar(key)) return { why: 'a key of the front matter is no text' }
    // The line of the dashes comes before the first one.
    const line = lineCounter.linePos(key.range?.[0] ?? 0).line + 1
    const plain = (isScalar(value) ? value.value : value === null ? '' : made[String(key.value)]) as Raw
    all[String(key.value)] = { value: plain ?? '', line }
  }
  return { all }
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(codeOf(error))
}

function codeOf(error: unknown): string {
  if (error instanceof Fault) return error.message
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
