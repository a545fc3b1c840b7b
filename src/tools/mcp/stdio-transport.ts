// An MCP server as a child process: messages are lines on its pipes, and ending it also ends its descendants. It
// implements the SDK's transport. The SDK's own one limits no line length and ends no process group. It knows nothing
// of tools.
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { Clock } from '../../ports/system.ts'
import { processStartTime, childPids, sendSignal, runChild } from '../shell/child-process.ts'

type StdioCommand = {
  readonly command: string
  readonly args: readonly string[]
  /** The whole environment: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string | undefined
}

export const MESSAGE_BYTES_MAX = 8 * 1024 * 1024
/** The limit of unread bytes, for a server that sends requests and does not read the answers. */
const UNREAD_BYTES_MAX = 16 * 1024 * 1024
const STDERR_CHARS_MAX = 4_096
/** After its input ends, the server has LEAVE_MS to exit by itself; after GRACE_MS it is killed. */
const LEAVE_MS = 1_000
const GRACE_MS = 3_000
const DRAIN_MS = 500

/**
 * The script in a PID namespace. Its shell is the namespace's first process and ends with the server, which ends all
 * the others. A second shell waits until the harness is gone or ends the server: it first asks all processes to end,
 * then kills them. A third shell stands between the first and the server: a server whose parent is process 1 may think
 * it was abandoned.
 */
const APART = `
  (trap '' TERM HUP INT; read -r gone <&3; kill -TERM -1; sleep 2; kill -KILL -1) </dev/null >/dev/null 2>&1 &
  exec 3<&- 4>&2 2>/dev/null
  (trap : TERM HUP INT; (exec "$@" 2>&4 4>&-); exit $?)
  exit $?`

/**
 * The script without a namespace. A shell beside the server waits until the harness is gone, for any reason. It then
 * ends all that the server started: its process group, its descendants, and, by a mark in their environment, the
 * processes that left both. `exec` makes the child the server itself.
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

let childCount = 0

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #order: StdioCommand
  readonly #clock: Clock
  readonly #mark: string
  readonly #lines = new LineSplitter(MESSAGE_BYTES_MAX)
  #child: ChildProcess | null = null
  #isApart = false
  #isClosed = false
  /** The descendants of the server when it was asked to end. */
  #kin: readonly Descendant[] = []
  #gone: Promise<void> = Promise.resolve()
  /** Resolves when its pipes are read to their end. */
  #drained: Promise<unknown> = Promise.resolve()
  #stderr = ''
  #ending = ''

  constructor(order: StdioCommand, clock: Clock) {
    this.#order = order
    this.#clock = clock
    this.#mark = `${process.pid}.${clock.now()}.${++childCount}.`
  }

  /** Why the process ended and its last error output, for a message; empty while it runs. */
  get trouble(): string {
    const said = this.#stderr.trim()
    return [this.#ending, said && this.#ending && `It said: ${said}`].filter(Boolean).join(' ')
  }

  /** The program does not exist or cannot be run: the shell's exit code says so. */
  get isMissing(): boolean {
    const code = this.#child?.exitCode
    return code === 126 || code === 127
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#order
    const apart = await findPidNamespace(this.#clock)
    if (this.#isClosed) throw new Error('It was closed before it began.')
    this.#isApart = apart !== null
    const shell = apart ? [...apart, '/bin/sh', '-c', APART, 'sh'] : ['/bin/sh', '-c', SUPERVISED, 'sh', this.#mark]
    const [file = '', ...before] = shell
    const child = spawn(file, [...before, command, ...args], {
      cwd,
      env: { ...env },
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      // A process group of its own, so that it can be killed as one.
      detached: true,
    })
    this.#child = child
    for (const stream of child.stdio) stream?.on('error', () => {})
    child.stdout?.on('data', (chunk: Buffer) => this.#read(chunk))
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#stderr = `${this.#stderr}${chunk.toString('utf8')}`.slice(-STDERR_CHARS_MAX)
    })
    // Listen from the start: the event may come in the same tick as the exit.
    this.#drained = new Promise((resolve) => child.once('close', resolve))
    this.#gone = new Promise((resolve) => child.once('error', resolve).once('exit', resolve)).then(() => this.#bury())
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', (error) => {
        // The system reports a missing folder like a missing program.
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

  /** Ends its input, then asks it to end, then kills it. Resolves when no process of it is left. */
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
      const message = parseMessage(line)
      if (message) this.onmessage?.(message)
      else if (line.trim() !== '') this.onerror?.(new Error('A line was no message.'))
    }
    if (this.#lines.isOverfull) this.#fail(`It sent a message over ${MESSAGE_BYTES_MAX} bytes.`)
  }

  /** A server that breaks the rules of the pipe is killed without a grace period. */
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
      return sendSignal(-pid, signal)
    }
    // Closing the pipe tells the shell inside to end the others. Killing the namespace's first process ends bubblewrap
    // too.
    if (signal === 'SIGTERM') this.#child?.stdio[3]?.destroy()
    else sendSignal(childPids(pid)[0] ?? -pid, signal)
  }

  /** Collects its descendants while it lives. */
  #remember(): void {
    const pid = this.#child?.pid
    if (pid === undefined || this.#isApart) return
    this.#kin = [...this.#kin, ...descendantsOf(pid)]
  }

  /** The server has exited: ends everything it started. */
  async #bury(): Promise<void> {
    const { exitCode, signalCode, stdio } = this.#child as ChildProcess
    const signal = signalCode ?? (this.#isApart ? signalName(exitCode ?? 0) : null)
    this.#ending ||= signal === null ? `It ended with code ${exitCode}.` : `It was ended by ${signal}.`
    // Bubblewrap exits after all the others, unless it was killed itself: then the shell inside ends them.
    if (this.#isApart) stdio[3]?.destroy()
    else {
      // The waiting shell belongs to the group, so the group's id is still valid.
      this.#signal('SIGKILL')
      for (const { pid, born } of this.#kin) if (processStartTime(pid) === born) sendSignal(pid, 'SIGKILL')
      for (const stray of pidsWithMark(this.#mark)) sendSignal(stray, 'SIGKILL')
    }
    // Wait for the last output, unless an escaped process holds the pipe open.
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

/** Splits bytes into lines in bounded memory, without copying a long line again for each chunk. */
class LineSplitter {
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

function parseMessage(line: string): JSONRPCMessage | null {
  try {
    const value = JSON.parse(line) as unknown
    const isMessage = typeof value === 'object' && value !== null && 'jsonrpc' in value && value.jsonrpc === '2.0'
    // Sound: the receiver checks what kind of message it is.
    return isMessage ? (value as JSONRPCMessage) : null
  } catch {
    return null
  }
}

/** The processes with this mark in their environment, wherever they are in the tree. Works only on Linux. */
function pidsWithMark(mark: string): readonly number[] {
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

type Descendant = { readonly pid: number; readonly born: string }

function descendantsOf(pid: number): readonly Descendant[] {
  return childPids(pid).flatMap((child) => {
    const born = processStartTime(child)
    return [...(born === null ? [] : [{ pid: child, born }]), ...descendantsOf(child)]
  })
}

/** The signal that a shell reports as an exit code. */
function signalName(code: number): string | null {
  return Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0] ?? null
}

// A PID namespace for a program with otherwise full rights: when its first process ends, everything it started ends
// too. This is not a sandbox: sandbox.ts builds that.

/** Only the system's own bubblewrap, never one on PATH: it runs beside programs that the user chose. */
const BWRAP = '/usr/bin/bwrap'
/** Everything else stays as it is: the disk, the devices, the network and the rights. */
const ARGS = ['--dev-bind', '/', '/', '--proc', '/proc', '--unshare-pid', '--as-pid-1', '--cap-add', 'ALL', '--']

let namespaceCommand: Promise<readonly string[] | null> | null = null

/**
 * Returns the arguments that start a command in a PID namespace; null where that is not allowed, as in many containers.
 * Tried once per process. Only for root: other users would need a user namespace too, in which root's files have no
 * known owner and no program gains rights, so that ssh, sudo and rootless containers fail.
 */
export function findPidNamespace(clock: Clock): Promise<readonly string[] | null> {
  namespaceCommand ??= tryPidNamespace(clock)
  return namespaceCommand
}

async function tryPidNamespace(clock: Clock): Promise<readonly string[] | null> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null
  const limits = { previewBytesMax: 1_000, wholeBytesMax: 0 }
  const frame = { cwd: '/', env: {}, softMs: 5_000, hardMs: 5_000, namespaced: false, limits }
  const order = { ...frame, file: BWRAP, args: [...ARGS, '/bin/true'], signal: new AbortController().signal }
  const { how } = await runChild(order, clock)
  return how.type === 'exited' && how.code === 0 ? [BWRAP, ...ARGS] : null
}
