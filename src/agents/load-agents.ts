// Reads agent definitions: those of the package, of the user, and of a trusted workspace. Each replaces an earlier one
// with the same id, but one of a workspace may only narrow it. The files are untrusted: limited in size, regular files,
// and never links.
import { constants, existsSync, readFileSync } from 'node:fs'
import { open, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Fault } from '../kernel/failure.ts'
import { DEFAULT_LIMITS } from '../kernel/limits.ts'
import { type Checks, countCheck, nonEmptyCheck, flagCheck, listCheck, optionsChecker } from '../options.ts'
import { containsPath } from '../tools/files/path-guard.ts'
import { FRONT_CHARS_MAX, splitFrontMatter } from '../tools/skills/front-matter.ts'
import { removeInvisible } from '../view/invisible.ts'
import {
  type AgentDefinition,
  readDefinition,
  definitionFault,
  type Layer,
  type RawValue,
  type RawDefinition,
} from './agent-definition.ts'
import { type WorkspaceBounds, narrowDefinition } from './narrow-definition.ts'
import { linkDefinitions } from './link-definitions.ts'

/** Where agents are looked for, and whether files of the workspace count. */
export type LoadOptions = {
  /** The user's folder: its `agents/*.md` replace definitions of the package. */
  readonly config?: string
  /** The folder that is worked on: its `.terret/agents/*.md` may narrow definitions, and only if it is `trusted`. */
  readonly workspace?: string
  /** Default false: nothing of the workspace is read. */
  readonly trusted?: boolean
  /** The providers whose models a workspace may name. Default: only those of the definitions it narrows. */
  readonly providers?: readonly string[]
  /** The most requests in a run that a workspace may give an agent of its own. Default: the limit of a harness. */
  readonly maxIterations?: number
}

const CHECKS: Checks<LoadOptions> = {
  config: nonEmptyCheck,
  workspace: nonEmptyCheck,
  trusted: flagCheck,
  providers: listCheck(nonEmptyCheck),
  maxIterations: countCheck(1),
}
const checkOptions = optionsChecker<LoadOptions>('loadAgents', CHECKS)

/** The agents that were found in files, and what is wrong with those that are left out. */
export type LoadedAgents = {
  /** Sorted by id. */
  readonly definitions: readonly AgentDefinition[]
  /** Skipped files and unknown names, one sentence each with file and line. */
  readonly troubles: readonly string[]
}

const FILES_MAX = 200
const BYTES_MAX = 256 * 1024

/**
 * A file that cannot be read is skipped and reported. An error in a file (an unknown key, a bad value, two files with
 * one id, more than a workspace may have, a tier) throws `invalid_config` with the file and the line.
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
  if (!readBuiltIn(shipped, known)) await readLayer({ folder: shipped, layer: 'built-in', known, bounds, troubles })
  if (config !== undefined) await readLayer({ folder: join(config, 'agents'), layer: 'user', known, bounds, troubles })
  if (workspace !== undefined && trusted) {
    const folder = join(workspace, '.terret', 'agents')
    await readLayer({ folder, layer: 'workspace', within: workspace, known, bounds, troubles })
  }
  const { definitions, troubles: missing } = linkDefinitions(
    [...known.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  )
  return { definitions, troubles: [...troubles, ...missing.map(({ message }) => message)] }
}

/**
 * Loads the package's definitions from the JSON that the build made of this folder. False when running from source,
 * where nothing was built.
 */
function readBuiltIn(folder: string, known: Map<string, AgentDefinition>): boolean {
  const built = `${folder}.json`
  if (!existsSync(built)) return false
  // Sound: rolldown.config.ts wrote into it what this file loads.
  const definitions = JSON.parse(readFileSync(built, 'utf8')) as readonly AgentDefinition[]
  for (const each of definitions) known.set(each.id, { ...each, file: join(folder, each.file) })
  return true
}

/** Beside the built module or its chunk, or in the source. */
function archetypesFolder(): string {
  const places = ['./archetypes', '../agents/archetypes', './agents/archetypes'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  )
  const found = places.find((path) => existsSync(path))
  // The tests' build compiles to .build/src, and copies no text files.
  const source = fileURLToPath(new URL('../../../src/agents/archetypes', import.meta.url))
  return found ?? source
}

type LayerToRead = {
  readonly folder: string
  readonly layer: Layer
  /** The real folder must lie in this one. */
  readonly within?: string
  readonly known: Map<string, AgentDefinition>
  readonly bounds: WorkspaceBounds
  readonly troubles: string[]
}

async function readLayer({ folder, layer, within, known, bounds, troubles }: LayerToRead): Promise<void> {
  const own = new Map<string, AgentDefinition>()
  for (const file of await filesIn(folder, within, troubles)) {
    const raw = await readRawFile(file, layer, troubles)
    if (raw === null) continue
    // The id is read first: keys that a workspace leaves out come from the definition with that id.
    const { id } = readDefinition(raw, ANY)
    const base = known.get(id) ?? null
    const made = readDefinition(raw, layer === 'workspace' ? base : null)
    const twin = own.get(id)
    if (twin) throw definitionFault(made, 'id', `"${id}" is also the id of ${twin.file}. Rename one of them`)
    own.set(id, layer === 'workspace' ? narrowDefinition(made, base, bounds) : made)
  }
  for (const [id, definition] of own) known.set(id, definition)
}

/** Stands in for the definition to narrow while only the id is read. */
const ANY = { whenToUse: 'any', prompt: 'any' } as AgentDefinition

/** Sorted by name. A missing folder has no files. */
async function filesIn(folder: string, within: string | undefined, troubles: string[]): Promise<readonly string[]> {
  try {
    const real = await realpath(folder)
    if (within !== undefined && !containsPath(await realpath(within), real)) {
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

/** Null if it cannot be read; then it is among the troubles. */
async function readRawFile(file: string, layer: Layer, troubles: string[]): Promise<RawDefinition | null> {
  const skip = (why: string): null => {
    troubles.push(`${file}:1: ${why}. It is skipped.`)
    return null
  }
  const text = await readText(file)
  if (typeof text !== 'string') return skip(text.why)
  const parts = splitFrontMatter(text, FRONT_CHARS_MAX)
  if (parts === 'none') return skip('it has no front matter: begin with a line "---"')
  if (parts === 'open') return skip(`no line "---" ends the front matter within ${FRONT_CHARS_MAX} characters`)
  const keys = await parseKeys(parts.front)
  return 'why' in keys
    ? skip(String(keys.why))
    : { file, layer, keys: keys.all, prompt: removeInvisible(parts.body).text }
}

async function readText(file: string): Promise<string | { readonly why: string }> {
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

type ParsedKeys = { readonly all: RawDefinition['keys'] } | { readonly why: string }

/** All scalars are text, as in skills: the check of each key knows its type. */
async function parseKeys(front: string): Promise<ParsedKeys> {
  // Imported only here: it is large, and most harnesses read no definitions.
  const { isMap, isScalar, LineCounter, parseDocument } = await import('yaml')
  const lineCounter = new LineCounter()
  const document = parseDocument(front, { schema: 'failsafe', logLevel: 'silent', lineCounter })
  const [wrong] = document.errors
  if (wrong)
    return { why: `the front matter is not valid YAML: ${(wrong.message.split('\n')[0] ?? '').replace(/:$/, '')}` }
  const { contents } = document
  if (contents === null) return { all: {} }
  if (!isMap(contents)) return { why: 'the front matter must be "key: value" lines' }
  let made: Readonly<Record<string, RawValue>>
  try {
    made = document.toJS() as typeof made
  } catch (error) {
    // An alias without a target, or aliases that expand without end.
    return { why: `the front matter is not valid YAML: ${error instanceof Error ? error.message : String(error)}` }
  }
  const all: Record<string, { readonly value: RawValue; readonly line: number }> = Object.create(null) as never
  for (const { key, value } of contents.items) {
    if (!isScalar(key)) return { why: 'a key of the front matter is no text' }
    // The line of dashes comes before the first one.
    const line = lineCounter.linePos(key.range?.[0] ?? 0).line + 1
    const plain = (isScalar(value) ? value.value : value === null ? '' : made[String(key.value)]) as RawValue
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
