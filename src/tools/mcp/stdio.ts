// A server as a child process: messages as lines on its pipes, and a death that takes its descendants along. It fits where the
// SDK wants a transport, and is our own because the SDK's bounds no line and kills no group. It knows nothing of tools.
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { Clock } from '../../ports/system.ts'
import { bornAt, childrenOf, send, runChild } from '../shell/spawn.ts'

type StdioOrder = {
  readonly command: string
  readonly args: readonly string[]
  /** All of it: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string | undefined
}

export const MESSAGE_BYTES_MAX = 8 * 1024 * 1024
/** Answers to a server that asks and does not read pile up here. */
const UNREAD_BYTES_MAX = 16 * 1024 * 1024
const STDERR_CHARS_MAX = 4_096
/** After its input has ended a server has this long to leave by itself, and this long in all. */
const LEAVE_MS = 1_000
const GRACE_MS = 3_000
const DRAIN_MS = 500

/**
 * In a pid namespace: the shell that ends when the server does is its first process, so all the others end with it. Beside it waits
 * one that hears when the harness is gone, or wants an end, and asks all others to end, and then makes them. Between the first one
 * and the server is one more: a server whose parent is process 1 may think that it was left alone.
 */
const APART = `
  (trap '' TERM HUP INT; read -r gone <&3; kill -TERM -1; sleep 2; kill -KILL -1) </dev/null >/dev/null 2>&1 &
  exec 3<&- 4>&2 2>/dev/null
  (trap : TERM HUP INT; (exec "$@" 2>&4 4>&-); exit $?)
  exit $?`

/**
 * Without one: beside the server waits a shell that hears when the harness is gone, however that came. It then ends all that the server
 * started: its process group, its descendants, and by a mark in their environment the processes that left both. `exec` makes the
 * child the server itself.
 */
const SUPERVISED = `
  mark=$1; shift
  kin() { for child in $(cat "/proc/$1/task"/*/children); do echo "$child"; kin "$child"; done; }
  (trap '' TERM HUP INT; read -r gone <&3
   read -r self rest </proc/self/stat
   kin=$(kin $$)
   kill -TERM 0; sleep 1
   for pid in $kin; do [ "$pid" = "$self" ] || kill -KILL "$pid"; done
   for file in $(grep -lsF -- "TERRET_MCP_CHILD=$mark" /proc/[0-9]*/environ); do
     file=\${file#/proc/}; kill -KILL "\${file%/environ}"
   done
   kill -KILL 0) </dev/null >/dev/null 2>&1 &
  exec 3<&-
  export TERRET_MCP_CHILD="$mark"
  exec "$@"`

let children = 0

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #order: StdioOrder
  readonly #clock: Clock
  readonly #mark: string
  readonly #lines = new Lines(MESSAGE_BYTES_MAX)
  #child: ChildProcess | null = null
  #isApart = false
  #isClosed = false
  /** The descendants of the server when it was told to end. */
  #kin: readonly Kin[] = []
  #gone: Promise<void> = Promise.resolve()
  /** Its pipes are read to their end. */
  #drained: Promise<unknown> = Promise.resolve()
  #stderr = ''
  #ending = ''

  constructor(order: StdioOrder, clock: Clock) {
    this.#order = order
    this.#clock = clock
    this.#mark = `${process.pid}.${clock.now()}.${++children}.`
  }

  /** Why it ended and what it said last, for a message; empty while all is well. */
  get trouble(): string {
    const said = this.#stderr.trim()
    return [this.#ending, said && this.#ending && `It said: ${said}`].filter(Boolean).join(' ')
  }

  /** There is no such program, or it cannot be run: a shell says so by its code. */
  get isMissing(): boolean {
    const code = this.#child?.exitCode
    return code === 126 || code === 127
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#order
    const apart = await pidNamespace(this.#clock)
    if (this.#isClosed) throw new Error('It was closed before it began.')
    this.#isApart = apart !== null
    const shell = apart ? [...apart, '/bin/sh', '-c', APART, 'sh'] : ['/bin/sh', '-c', SUPERVISED, 'sh', this.#mark]
    const [file = '', ...before] = shell
    const child = spawn(file, [...before, command, ...args], {
      cwd,
      env: { ...env },
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      // A group of its own, to be killed as one.
      detached: true,
    })
    this.#child = child
    for (const stream of child.stdio) stream?.on('error', () => {})
    child.stdout?.on('data', (chunk: Buffer) => this.#read(chunk))
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#stderr = `${this.#stderr}${chunk.toString('utf8')}`.slice(-STDERR_CHARS_MAX)
    })
    // Listened to from the start: it may come in the same tick as the exit.
    this.#drained = new Promise((resolve) => child.once('close', resolve))
    this.#gone = new Promise((resolve) => child.once('error', resolve).once('exit', resolve)).then(() => this.#bury())
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', (error) => {
        // The system says the same of a folder that is not there as of a program.
        const lost = cwd !== undefined && !existsSync(cwd)
        this.#ending = lost ? `There is no folder ${cwd} to start it in.` : `It did not start: ${error.message}.`
        reject(error)
      })
    })
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin
    if (!stdin?.writable) return Promise.reject(new Error('The server is gone.'))
    if (stdin.writableLength > UNREAD_BYTES_MAX) {
      this.#fail('It does not read what it is sent.')
      return Promise.reject(new Error('The server does not read what it is sent.'))
    }
    stdin.write(`${JSON.stringify(message)}\n`)
    return Promise.resolve()
  }

  /** First its input ends, then it is asked to end, then it is killed. Resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#remember()
    this.#child?.stdin?.end()
    const cancels = [
      this.#clock.timer(LEAVE_MS, () => this.#signal('SIGTERM')),
      this.#clock.timer(GRACE_MS, () => this.#signal('SIGKILL')),
    ]
    await this.#gone
    for (const cancel of cancels) cancel()
  }

  #read(chunk: Buffer): void {
    for (const line of this.#lines.push(chunk)) {
      const message = messageOf(line)
      if (message) this.onmessage?.(message)
      else if (line.trim() !== '') this.onerror?.(new Error('A line was no message.'))
    }
    if (this.#lines.isOverfull) this.#fail(`It sent a message over ${MESSAGE_BYTES_MAX} bytes.`)
  }

  /** Whatever breaks the rules of the pipe is not worth any grace. */
  #fail(why: string): void {
    if (this.#ending !== '') return
    this.#ending = why
    this.#child?.stdout?.destroy()
    this.#signal('SIGKILL')
  }

  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    const pid = this.#child?.pid
    if (pid === undefined) return
    if (!this.#isApart) {
      this.#remember()
      return send(-pid, signal)
    }
    // The last message to the listener inside; or the end of the first process, after which bubblewrap goes too.
    if (signal === 'SIGTERM') this.#child?.stdio[3]?.destroy()
    else send(childrenOf(pid)[0] ?? -pid, signal)
  }

  /** As long as it lives its descendants are known. */
  #remember(): void {
    const pid = this.#child?.pid
    if (pid === undefined || this.#isApart) return
    this.#kin = [...this.#kin, ...kinOf(pid)]
  }

  /** The server has gone: so does what it has started. */
  async #bury(): Promise<void> {
    const { exitCode, signalCode, stdio } = this.#child as ChildProcess
    const signal = signalCode ?? (this.#isApart ? signalOf(exitCode ?? 0) : null)
    this.#ending ||= signal === null ? `It ended with code ${exitCode}.` : `It was ended by ${signal}.`
    // Bubblewrap goes after all the others, unless it was killed itself: then the listener inside ends them.
    if (this.#isApart) stdio[3]?.destroy()
    else {
      // The waiting shell is of its group, so the group's number is still its own.
      this.#signal('SIGKILL')
      for (const { pid, born } of this.#kin) if (bornAt(pid) === born) send(pid, 'SIGKILL')
      for (const stray of marked(this.#mark)) send(stray, 'SIGKILL')
    }
    // What it said last is read, unless a process that got away holds the pipe open.
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.timer(DRAIN_MS, resolve)
      void this.#drained.then(() => {
        cancel()
        resolve()
      })
    })
    for (const stream of stdio) stream?.destroy()
    this.onclose?.()
  }
}

const MARK = 'TERRET_MCP_CHILD'

/** Bytes to lines in bounded memory, and without copying a long line again for each of its chunks. */
class Lines {
  readonly #bytesMax: number
  #parts: Buffer[] = []
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get isOverfull(): boolean {
    return this.#bytes > this.#bytesMax
  }

  *push(chunk: Buffer): Generator<string> {
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.#add(chunk.subarray(from, end))
      from = end + 1
      if (this.isOverfull) return
      const line = Buffer.concat(this.#parts).toString('utf8')
      this.#parts = []
      this.#bytes = 0
      yield line
    }
    this.#add(chunk.subarray(from))
  }

  #add(part: Buffer): void {
    this.#bytes += part.length
    if (this.isOverfull) this.#parts = []
    else if (part.length > 0) this.#parts.push(part)
  }
}

function messageOf(line: string): JSONRPCMessage | null {
  try {
    const value = JSON.parse(line) as unknown
    const isMessage = typeof value === 'object' && value !== null && 'jsonrpc' in value && value.jsonrpc === '2.0'
    // Sound: the receiver checks what kind of message it is.
    return isMessage ? (value as JSONRPCMessage) : null
  } catch {
    return null
  }
}

/** Processes that carry the mark in their environment, wherever in the tree they are by now. Only Linux tells. */
function marked(mark: string): readonly number[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${MARK}=${mark}`)
      } catch {
        return false
      }
    })
    .map(Number)
}

type Kin = { readonly pid: number; readonly born: string }

function kinOf(pid: number): readonly Kin[] {
  return childrenOf(pid).flatMap((child) => {
    const born = bornAt(child)
    return [...(born === null ? [] : [{ pid: child, born }]), ...kinOf(child)]
  })
}

/** A shell tells a death by signal as a code. */
function signalOf(code: number): string | null {
  return Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0] ?? null
}

// A place of its own among the processes for a program that may do everything else: when its first process ends, all it has started
// end with it, however far they went. No sandbox: sandbox.ts builds that one.

/** The system's own only: this runs beside programs that the user chose, and never by what a folder put on PATH. */
const BWRAP = '/usr/bin/bwrap'
/** All the rest as it is: the disk, the devices, the network and the rights. */
const ARGS = ['--dev-bind', '/', '/', '--proc', '/proc', '--unshare-pid', '--as-pid-1', '--cap-add', 'ALL', '--']

let found: Promise<readonly string[] | null> | null = null

/**
 * The words that start a command in a PID namespace; null where that is not allowed, as in many containers. Tried once per process.
 * Only for root: other users would need a user namespace too, in which root's files have no known owner and no program gains rights,
 * so that ssh, sudo and rootless containers fail.
 */
export function pidNamespace(clock: Clock): Promise<readonly string[] | null> {
  found ??= tried(clock)
  return found
}

async function tried(clock: Clock): Promise<readonly string[] | null> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null
  const limits = { previewBytesMax: 1_000, wholeBytesMax: 0 }
  const frame = { cwd: '/', env: {}, softMs: 5_000, hardMs: 5_000, namespaced: false, limits }
  const order = { ...frame, file: BWRAP, args: [...ARGS, '/bin/true'], signal: new AbortController().signal }
  const { how } = await runChild(order, clock)
  return how.type === 'exited' && how.code === 0 ? [BWRAP, ...ARGS] : null
}
