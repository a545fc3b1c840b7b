// The `bash` tool: one shell command in the workspace, confined by bubblewrap where that is present, with a structured result.
// A command that fails is a result, not a failure. What it asks for is decided elsewhere; `asksFor` says when somebody must be.
import { realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import type { Json } from '../kernel/content.ts'
import type { Captured } from './capture.ts'
import { type Metadata, type Output, output, ToolFailure } from './output.ts'
import * as sandboxes from './sandbox.ts'
import type { Sandbox } from './sandbox.ts'
import { selfTest } from './sandbox-check.ts'
import { type ChildEnd, type ChildOrder, runChild, type Stream } from './spawn.ts'
import { defineTool, type StandardSchema, type Tool, type ToolContext } from './tool.ts'

export type BashArgs = {
  readonly command: string
  readonly timeout_ms?: number
  readonly soft_timeout_ms?: number
  readonly network?: boolean
}

export type BashOptions = {
  readonly workspace: string
  /** Default: what `findSandbox` finds. */
  readonly sandbox?: Sandbox
  /** Relative to the workspace; default `PROTECTED_PATHS`. */
  readonly protectedPaths?: readonly string[]
  /** More to hide than the usual secrets. Absolute. */
  readonly masked?: readonly string[]
  /** Where the harness keeps its records; hidden too, as ~/.terret always is. Default: TERRET_HOME. */
  readonly dataFolder?: string
  /** Where the allowed variables are read from; default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Called for each line as it comes, up to a number of lines per call. For people who watch; never for the record. */
  readonly onLine?: (event: BashLine) => void
}

export type BashLine = {
  readonly type: 'bash_stdout_line'
  readonly stream: Stream
  readonly line: string
  readonly session: string
  readonly call: string
}

const SOFT_MS = 10_000
const HARD_MS = 120_000
const HARD_MS_MAX = 600_000
const PREVIEW_BYTES_MAX = 50_000
const WHOLE_BYTES_MAX = 8_000_000
const COMMAND_BYTES_MAX = 100_000
const CONTENT_CHARACTERS_MAX = 4 * PREVIEW_BYTES_MAX
const LINES_MAX = 5_000
const LINE_CHARACTERS_MAX = 2_000

/** Must a person decide on this very call? Always for the network, and for everything where nothing confines a command. */
export function asksFor(args: { readonly network?: unknown }, sandbox: Sandbox): boolean {
  return sandbox.type === 'none' || (args.network !== undefined && args.network !== false)
}

export function bashTool(options: BashOptions): Tool {
  const sandbox = options.sandbox ?? sandboxes.findSandbox(options.workspace, options.env)
  return defineTool({
    name: 'bash',
    description: describe(sandbox),
    input,
    effect: 'once',
    sequential: true,
    // The command's own limits come first; this one only if they did not work.
    timeoutMs: HARD_MS_MAX + 10_000,
    approval: (args) => (asksFor(args, sandbox) ? 'ask' : 'auto'),
    execute: (args, context) => execute(args, context, { ...options, sandbox }),
  })
}

type Settled = BashOptions & { readonly sandbox: Sandbox }

async function execute(args: BashArgs, context: ToolContext, options: Settled): Promise<Output> {
  const { sandbox } = options
  const shell = sandboxes.findShell()
  const { order, watched } = await prepare(args, context, { options, shell })
  const before = watched.map(sandboxes.glimpse)
  const end = await runChild(order, context.clock)
  const changed = watched.filter((path, i) => sandboxes.glimpse(path) !== before[i])
  if (end.how.type === 'unstarted') {
    throw new ToolFailure('Unavailable', `The command was not run: ${end.how.message || 'it did not start.'}`)
  }
  if (end.how.type === 'aborted') {
    throw new ToolFailure('Interrupted', `Stopped after ${end.durationMs} ms, with everything the command had started.`)
  }
  return report({ args, end, changed, shell, context, confined: sandbox.type !== 'none' })
}

type Prepared = { readonly order: ChildOrder; readonly watched: readonly string[] }

async function prepare(
  args: BashArgs,
  context: ToolContext,
  { options, shell }: { readonly options: Settled; readonly shell: string },
): Promise<Prepared> {
  const { sandbox, onLine, env: source = process.env } = options
  const workspace = realpathSync(options.workspace)
  const env = sandboxes.allowedEnvironment(source)
  const argv = [shell, '-lc', args.command]
  const lines = onLine ? new Lines((stream, line) => onLine({ ...named(context), stream, line })) : null
  const limits = { previewBytesMax: PREVIEW_BYTES_MAX, wholeBytesMax: WHOLE_BYTES_MAX }
  const frame = {
    cwd: workspace,
    env,
    signal: context.signal,
    limits,
    softMs: args.soft_timeout_ms ?? SOFT_MS,
    hardMs: args.timeout_ms ?? HARD_MS,
    ...(lines ? { onChunk: (stream: Stream, chunk: Uint8Array) => lines.push(stream, chunk) } : {}),
  }
  if (sandbox.type === 'none') {
    return { order: { ...frame, file: shell, args: argv.slice(1), namespaced: false }, watched: [] }
  }
  const verdict = await selfTest(sandbox.path, context.clock)
  if (verdict.type === 'unsound') {
    throw new ToolFailure('Unavailable', `The sandbox does not hold, so nothing is run in it: ${verdict.reason}.`)
  }
  const home = env['HOME'] ?? homedir()
  const data = options.dataFolder ?? sandboxes.dataFolder(source)
  const confinement = {
    workspace,
    env,
    network: args.network === true,
    masked: [...sandboxes.secretPaths(home, data), ...(options.masked ?? [])],
    protectedPaths: options.protectedPaths ?? sandboxes.PROTECTED_PATHS,
  }
  const walls = sandboxes.raiseWalls(confinement, verdict.features)
  const wrapped = [...walls.args, ...sandboxes.heldBack(argv)]
  return { order: { ...frame, file: sandbox.path, args: wrapped, namespaced: true }, watched: walls.watched }
}

type Report = {
  readonly args: BashArgs
  readonly end: ChildEnd
  readonly changed: readonly string[]
  readonly shell: string
  readonly context: ToolContext
  readonly confined: boolean
}

function report({ args, end, changed, shell, context, confined }: Report): Output {
  const { how, durationMs } = end
  const code = how.type === 'exited' ? how.code : null
  const stdout = bounded(end.stdout, context)
  const stderr = bounded(end.stderr, context)
  const result = {
    command: args.command,
    shell,
    stdout: stdout.text,
    stderr: stderr.text,
    exit_code: code,
    success: code === 0,
    ...(how.type === 'timeout'
      ? { timed_out: true, timeout_kind: how.kind, message: timeoutText(how.kind, args) }
      : {}),
    ...(changed.length > 0 ? { protected_changed: changed } : {}),
  }
  const error = how.type === 'timeout' ? 'Timeout' : code === 0 ? null : 'NonZeroExit'
  const metadata: Metadata = {
    exit_code: code,
    timed_out: how.type === 'timeout',
    duration_ms: durationMs,
    sandboxed: confined,
    network: !confined || args.network === true,
    stdout_bytes: end.stdout.bytes,
    stderr_bytes: end.stderr.bytes,
    stdout_truncated: end.stdout.omittedBytes > 0,
    stderr_truncated: end.stderr.omittedBytes > 0,
    ...(stdout.blob ? { stdout_blob: stdout.blob } : {}),
    ...(stderr.blob ? { stderr_blob: stderr.blob } : {}),
    ...(changed.length > 0 ? { protected_changed: changed } : {}),
    ...(error ? { error_type: error } : {}),
  }
  return output({ content: contentOf(result), metadata })
}

/** JSON writes a control character as six: of binary output the preview keeps the shape, and the blob the bytes. */
function contentOf(result: { readonly stdout: string; readonly stderr: string }): string {
  const content = JSON.stringify(result)
  if (content.length <= CONTENT_CHARACTERS_MAX) return content
  // oxlint-disable-next-line no-control-regex -- they are what it is about
  const plain = (text: string): string => text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f]/g, '.')
  return JSON.stringify({ ...result, stdout: plain(result.stdout), stderr: plain(result.stderr) })
}

function bounded(captured: Captured, context: ToolContext): { readonly text: string; readonly blob: Json | null } {
  const { head, tail, bytes, omittedBytes, whole, lostBytes } = captured
  if (whole === null) return { text: head, blob: null }
  const blob = context.keep(whole)
  const lost = lostBytes > 0 ? `; the last ${lostBytes} bytes were not kept` : ''
  const notice = `[${omittedBytes} of ${bytes} bytes left out here; the full text is blob ${blob.hash}${lost}]`
  return { text: `${head}\n${notice}\n${tail}`, blob: { ...blob } }
}

function timeoutText(kind: 'soft' | 'hard', args: BashArgs): string {
  if (kind === 'hard')
    return `Stopped after ${args.timeout_ms ?? HARD_MS} ms. "timeout_ms" allows up to ${HARD_MS_MAX}.`
  const ms = args.soft_timeout_ms ?? SOFT_MS
  return `Stopped: no output for ${ms} ms. Is it waiting for input? Let it print progress, or raise "soft_timeout_ms".`
}

function describe(sandbox: Sandbox): string {
  const what = `Runs a shell command in the workspace and returns JSON: command, shell, stdout, stderr, exit_code, success. Each call is a fresh shell, and no process outlives it. It is stopped after ${SOFT_MS / 1000} s without output and after ${HARD_MS / 1000} s in all.`
  if (sandbox.type === 'none') {
    return `${what} WARNING: NOT SANDBOXED (${sandbox.reason}). The command has all rights of the user, and a person is asked for every call.`
  }
  return `${what} Sandboxed: only the workspace and /tmp can be written, /tmp is empty in each call, and there is no network unless "network" is true, for which a person is asked.`
}

function named({ session, call }: ToolContext): Pick<BashLine, 'type' | 'session' | 'call'> {
  return { type: 'bash_stdout_line', session, call }
}

/** Lines for whoever watches: bounded in length and number, since a command may print without end. */
class Lines {
  readonly #emit: (stream: Stream, line: string) => void
  readonly #streams = {
    stdout: { decoder: new TextDecoder(), rest: '' },
    stderr: { decoder: new TextDecoder(), rest: '' },
  }
  #count = 0

  constructor(emit: (stream: Stream, line: string) => void) {
    this.#emit = emit
  }

  push(name: Stream, chunk: Uint8Array): void {
    if (this.#count >= LINES_MAX) return
    const stream = this.#streams[name]
    const lines = (stream.rest + stream.decoder.decode(chunk, { stream: true })).split('\n')
    stream.rest = (lines.pop() ?? '').slice(0, LINE_CHARACTERS_MAX)
    for (const line of lines.slice(0, LINES_MAX - this.#count)) {
      this.#count++
      this.#emit(name, line.slice(0, LINE_CHARACTERS_MAX))
    }
  }
}

const milliseconds = { type: 'integer', minimum: 1, maximum: HARD_MS_MAX } as const
const schema = {
  type: 'object',
  properties: {
    command: { type: 'string', minLength: 1, description: 'The command, as bash reads it.' },
    timeout_ms: { ...milliseconds, description: `Stop after this long. Default ${HARD_MS}.` },
    soft_timeout_ms: { ...milliseconds, description: `Stop after this long without output. Default ${SOFT_MS}.` },
    network: { type: 'boolean', description: 'Needs the network. A person is asked.' },
  },
  required: ['command'],
  additionalProperties: false,
}

const input: StandardSchema<BashArgs> = {
  '~standard': {
    jsonSchema: { input: () => structuredClone(schema) },
    validate: (value) => {
      const args = value !== null && typeof value === 'object' ? (value as Readonly<Record<string, unknown>>) : {}
      const issues = Object.keys(args).flatMap((name) => trouble(name, args[name]))
      if (args['command'] === undefined) issues.push({ message: 'is required', path: ['command'] })
      // Sound: every field was looked at.
      return issues.length > 0 ? { issues } : { value: args as unknown as BashArgs }
    },
  },
}

function trouble(name: string, value: unknown): { readonly message: string; readonly path: readonly string[] }[] {
  const wrong = (message: string) => [{ message, path: [name] }]
  if (name === 'command') {
    if (typeof value !== 'string' || value.trim() === '') return wrong('must be a non-empty string')
    if (value.includes('\0')) return wrong('must not hold a NUL character')
    const bytes = Buffer.byteLength(value)
    return bytes > COMMAND_BYTES_MAX ? wrong(`has ${bytes} bytes, at most ${COMMAND_BYTES_MAX}: use a file`) : []
  }
  if (name === 'network') return typeof value === 'boolean' ? [] : wrong('must be true or false')
  if (name !== 'timeout_ms' && name !== 'soft_timeout_ms') return wrong('is not a field of this tool')
  const whole = Number.isInteger(value) && (value as number) >= 1 && (value as number) <= HARD_MS_MAX
  return whole ? [] : wrong(`must be a whole number from 1 to ${HARD_MS_MAX}`)
}
