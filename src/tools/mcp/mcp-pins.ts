// Pins: the approved place of a server, and the approved definition of each of its tools. A tool whose definition
// changes is not offered until a person approves the change. Pins are read and written here; asking happens elsewhere.
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Frozen } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import { diff } from '../../view/line-diff.ts'
import { spellInvisible } from './readable-text.ts'
import { isObject } from '../../view/untrusted-json.ts'

/** What a server offered when it was approved. */
export type McpPin = Frozen<{
  /** The hash of how the server is run or reached, since a command line can hold secrets. */
  place: string
  /** Each definition as canonical text, by the server's name for the tool. */
  tools: Readonly<Record<string, string>>
}>

/** Where it is kept what a server offered when it was approved. */
export interface McpPins {
  /** The pin of this server. Null if it was never approved. */
  read(server: string): Promise<McpPin | null>
  /** Stores the pin of this server, over the one before. */
  write(server: string, pin: McpPin): Promise<void>
}

/** A definition that is not the approved one. */
export type McpChange = Frozen<{
  /** The server's name for the tool. Null: the server itself is run or reached in another way. */
  tool: string | null
  /** The approved definition; for the server the hash of its approved place. */
  before: string
  /** What the server offers now; for the server the hash of its present place. */
  after: string
  /** Both, line by line. */
  diff: string
}>

/**
 * The name under which a server's instructions are pinned. A tool listed under this name is left out, so the two never
 * collide.
 */
export const INSTRUCTIONS = '(instructions)'
const DEFINITION_CHARS_MAX = 300_000
/** Pins of removed tools are kept too, so that a tool that comes back changed is noticed. */
const PINNED_MAX = 1_000

/** Pins that end with the process: the first definition in it counts as approved. */
export function memoryPins(): McpPins {
  const pins = new Map<string, McpPin>()
  return {
    read: (server) => Promise.resolve(pins.get(server) ?? null),
    write: (server, pin) => {
      pins.set(server, pin)
      return Promise.resolve()
    },
  }
}

/** Pins in a JSON file that is replaced in one step. An unreadable file is a Fault, and never counts as empty. */
export function filePins(path: string): McpPins {
  return {
    read: async (server) => readPins(path)[server] ?? null,
    // Read and replace without a pause: several servers of one process share the file.
    write: async (server, pin) => replacePins(path, { ...readPins(path), [server]: pin }),
  }
}

type SavedPins = Readonly<Record<string, McpPin>>

function readPins(path: string): SavedPins {
  const unreadable = () =>
    new Fault('invalid_config', `The pins in ${path} cannot be read. Repair the file, or remove it to pin anew.`)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
    throw unreadable()
  }
  try {
    const { version, servers } = JSON.parse(text) as { readonly version: unknown; readonly servers: unknown }
    if (version === 1 && isObject(servers) && Object.values(servers).every(isPin)) {
      return Object.assign(emptyRecord<McpPin>(), servers as SavedPins)
    }
  } catch {}
  throw unreadable()
}

function replacePins(path: string, servers: SavedPins): void {
  const temporary = `${path}.${process.pid}.tmp`
  mkdirSync(dirname(path), { recursive: true })
  const file = openSync(temporary, 'w', 0o600)
  try {
    writeFileSync(file, `${JSON.stringify({ version: 1, servers }, null, 2)}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(temporary, path)
}

function isPin(value: unknown): value is McpPin {
  if (!isObject(value) || typeof value['place'] !== 'string' || !isObject(value['tools'])) return false
  return Object.values(value['tools']).every((text) => typeof text === 'string')
}

/** A record without a prototype: names come from strangers, and `__proto__` is one. */
function emptyRecord<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>
}

/**
 * The pinned text of a tool's definition. It includes all fields, even those without a meaning here, in sorted order.
 * Invisible characters are spelled out, so that a change of them is visible.
 */
export function pinnedDefinition(tool: Readonly<Record<string, unknown>>): string {
  const text = JSON.stringify(sortDeep(tool), null, 2)
  if (text.length > DEFINITION_CHARS_MAX) throw new Error(`its definition has over ${DEFINITION_CHARS_MAX} characters`)
  return spellInvisible(text)
}

function sortDeep(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortDeep)
  if (!isObject(value)) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.assign(emptyRecord(), Object.fromEntries(entries.map(([key, item]) => [key, sortDeep(item)])))
}

/** The pin of one server, and how the server differs from it. Stays in step with the stored pins. */
export class ServerPin {
  readonly #pins: McpPins
  readonly #server: string
  readonly #place: string
  readonly #changes = new Map<string | null, McpChange>()
  #pin: McpPin | null = null

  constructor(pins: McpPins, server: string, place: string) {
    this.#pins = pins
    this.#server = server
    this.#place = place
  }

  get changes(): readonly McpChange[] {
    return [...this.#changes.values()]
  }

  /** False if the server would be run or reached in another way than approved. Called before anything is started. */
  async isPlace(): Promise<boolean> {
    this.#pin = await this.#pins.read(this.#server)
    const before = this.#pin?.place ?? this.#place
    if (before === this.#place) {
      this.#changes.delete(null)
      return true
    }
    this.#note(null, `sha256 ${before}\n`, `sha256 ${this.#place}\n`)
    return false
  }

  /** Pins definitions that are seen for the first time. Returns the names whose definition equals the pinned one. */
  async accept(seen: ReadonlyMap<string, string>): Promise<ReadonlySet<string>> {
    this.#pin = await this.#pins.read(this.#server)
    const tools = Object.assign(emptyRecord<string>(), this.#pin?.tools)
    const fresh = [...seen].filter(([name]) => !(name in tools))
    for (const [name, text] of fresh.slice(0, Math.max(0, PINNED_MAX - Object.keys(tools).length))) tools[name] = text
    for (const name of this.#changes.keys()) {
      if (name !== null && (!seen.has(name) || seen.get(name) === tools[name])) this.#changes.delete(name)
    }
    for (const [name, text] of seen) {
      const before = tools[name]
      if (before !== undefined && before !== text) this.#note(name, before, text)
    }
    if (fresh.length > 0 || this.#pin === null) await this.#write(tools)
    return new Set([...seen].filter(([name, text]) => tools[name] === text).map(([name]) => name))
  }

  /** Approves the change that `changes` shows, and no later one. */
  async approve(tool: string | null): Promise<void> {
    const change = this.#changes.get(tool)
    if (!change) {
      const what = tool === null ? 'itself has' : `has no tool "${tool}" that has`
      throw new Fault(
        'invalid_input',
        `MCP server "${this.#server}" ${what} not changed, so there is nothing to approve.`,
      )
    }
    this.#pin = await this.#pins.read(this.#server)
    const tools = Object.assign(emptyRecord<string>(), this.#pin?.tools)
    if (tool !== null) tools[tool] = change.after
    await this.#write(tools, tool === null ? this.#place : this.#pin?.place)
    this.#changes.delete(tool)
  }

  async #write(tools: Readonly<Record<string, string>>, place = this.#place): Promise<void> {
    this.#pin = { place, tools }
    await this.#pins.write(this.#server, this.#pin)
  }

  #note(tool: string | null, before: string, after: string): void {
    const name = tool === null ? this.#server : `${this.#server}/${tool}`
    this.#changes.set(tool, { tool, before, after, diff: diff(name, `${before}\n`, `${after}\n`) })
  }
}
