// What was approved of a server: where it is and what each of its tools said it is. A tool that says something else later is
// not offered until a person approves that too. Pins are read and written here; asking is done elsewhere.
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Frozen } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import { diff } from '../../view/diff.ts'
import { shown } from './text.ts'
import { isObject } from '../../view/json.ts'

/** `place` is a hash, since a command line can hold secrets. `tools` holds each definition as canonical text, by name. */
export type Pin = Frozen<{ place: string; tools: Readonly<Record<string, string>> }>

export interface Pins {
  read(server: string): Promise<Pin | null>
  write(server: string, pin: Pin): Promise<void>
}

/** `tool` is null when it is the server itself that is run or reached another way than approved. */
export type McpChange = Frozen<{ tool: string | null; before: string; after: string; diff: string }>

/** The name under which the instructions of a server are pinned. No tool can have it: tools are named by servers in one line. */
export const INSTRUCTIONS = '(instructions)'
const DEFINITION_CHARS_MAX = 300_000
/** Kept also for tools that are gone, so that one that comes back changed is noticed. */
const PINNED_MAX = 1_000

/** Pins that end with the process: what a server says first in it is what counts. */
export function memoryPins(): Pins {
  const pins = new Map<string, Pin>()
  return {
    read: (server) => Promise.resolve(pins.get(server) ?? null),
    write: (server, pin) => {
      pins.set(server, pin)
      return Promise.resolve()
    },
  }
}

/** Pins in a JSON file that is replaced in one step. A file that cannot be read is a Fault, and never an empty one. */
export function filePins(path: string): Pins {
  return {
    read: async (server) => readPins(path)[server] ?? null,
    // Read and replaced without a pause: several servers of one process share the file.
    write: async (server, pin) => replace(path, { ...readPins(path), [server]: pin }),
  }
}

type Saved = Readonly<Record<string, Pin>>

function readPins(path: string): Saved {
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
      return Object.assign(bare<Pin>(), servers as Saved)
    }
  } catch {}
  throw unreadable()
}

function replace(path: string, servers: Saved): void {
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

function isPin(value: unknown): value is Pin {
  if (!isObject(value) || typeof value['place'] !== 'string' || !isObject(value['tools'])) return false
  return Object.values(value['tools']).every((text) => typeof text === 'string')
}

/** Names come from strangers, and `__proto__` is one. */
function bare<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>
}

/**
 * What is pinned of a tool, in one form whatever the order of its fields: all of it, also fields that mean nothing here.
 * Invisible characters are spelled out, so that a difference in them is one to be seen.
 */
export function definitionOf(tool: Readonly<Record<string, unknown>>): string {
  const text = JSON.stringify(sorted(tool), null, 2)
  if (text.length > DEFINITION_CHARS_MAX) throw new Error(`its definition has over ${DEFINITION_CHARS_MAX} characters`)
  return shown(text)
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.assign(bare(), Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)])))
}

/** The pin of one server, and what differs from it. Kept in step with where the pins are kept. */
export class Pinned {
  readonly #pins: Pins
  readonly #server: string
  readonly #place: string
  readonly #changes = new Map<string | null, McpChange>()
  #pin: Pin | null = null

  constructor(pins: Pins, server: string, place: string) {
    this.#pins = pins
    this.#server = server
    this.#place = place
  }

  get changes(): readonly McpChange[] {
    return [...this.#changes.values()]
  }

  /** False while the server would be run or reached another way than approved. Asked before anything is started. */
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

  /** Pins what is seen for the first time. Returns the names whose definition is the pinned one. */
  async accept(seen: ReadonlyMap<string, string>): Promise<ReadonlySet<string>> {
    this.#pin = await this.#pins.read(this.#server)
    const tools = Object.assign(bare<string>(), this.#pin?.tools)
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

  /** Approves what `changes` shows, and nothing that came after it. */
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
    const tools = Object.assign(bare<string>(), this.#pin?.tools)
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
