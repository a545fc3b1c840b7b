// The tool `bash`: runs one shell command in the workspace, through run-confined.ts. A command that fails is a result,
// not a failure. The sandbox is the boundary; the risk of a command only decides whether a person is asked first.
import {
  approvalOfConfinement,
  CONFINED_OPTIONS,
  type ConfinedOptions,
  type Confinement,
  confinementOf,
  HARD_MS_MAX,
  rootedInFolder,
  placeOfConfinement,
  commandResult,
  runConfined,
  sandboxWarning,
} from './run-confined.ts'
import { countCheck, functionCheck, oneOf, optionsChecker } from '../../options.ts'
import { type Output, output } from '../core/tool-output.ts'
import { classifyCommand } from './risk/classify-command.ts'
import { type RunningCommand, runWatched } from './running-command.ts'
import { findShell } from './sandbox.ts'
import type { OutputStream } from './child-process.ts'
import { type Approval, defineTool, type StandardSchema, type Tool, type ToolContext } from '../core/tool.ts'

export type BashArgs = {
  readonly command: string
  readonly timeout_ms?: number
  readonly soft_timeout_ms?: number
  readonly network?: boolean
  readonly max_chars?: number
}

/**
 * Options of `bashTool`: the workspace, what is hidden and protected in it, and how long and how much a command may
 * run.
 */
export type BashOptions = ConfinedOptions & {
  /** `relaxed` does not ask for commands that only look risky. Default `strict`. Both refuse forbidden commands. */
  readonly risk?: 'strict' | 'relaxed'
  /** How long a command may print nothing, unless the call says. Default 10,000. */
  readonly softTimeoutMs?: number
  /**
   * Called for each line as it comes, up to a limit per call. For watching only, never for the record. Readers of the
   * session's stream get the same lines as deltas of kind `output`, in any process.
   */
  readonly onLine?: (event: BashLine) => void
  /** Called for each command when it starts. The caller may stop it, or send it to the background. */
  readonly onRunning?: (running: RunningCommand) => void
}

const checkOptions = optionsChecker<BashOptions>('bashTool', {
  ...CONFINED_OPTIONS,
  risk: oneOf<'strict' | 'relaxed'>({ strict: true, relaxed: true }),
  softTimeoutMs: countCheck(1),
  onLine: functionCheck,
  onRunning: functionCheck,
})

/** A line that a command printed while it runs. It is shown, and never in the log. */
export type BashLine = {
  /** Tells it from other kinds of lines. */
  readonly type: 'bash_stdout_line'
  /** Whether the line went to standard output or to standard error. */
  readonly stream: OutputStream
  /** The line without known secrets, cut at 2,000 characters. */
  readonly line: string
  /** The session of the call. */
  readonly session: string
  /** The key of the call. */
  readonly call: string
}

const SOFT_MS = 10_000
const HARD_MS = 120_000
const COMMAND_BYTES_MAX = 100_000
const LINES_MAX = 5_000
const LINE_CHARACTERS_MAX = 2_000
/** The last lines, for whoever watches. */
const LAST_LINES_MAX = 200
/** Secrets are searched only in the first part of this size, so nothing after it is shown while the command runs. */
const WATCHED_CHARACTERS_MAX = 32_000_000

/** A tool that runs commands in a sandbox. Risky ones are asked about first, and without a sandbox all are. */
export function bashTool(options: BashOptions): Tool {
  checkOptions(options)
  const ground = confinementOf(options)
  const tool = defineTool({
    name: 'bash',
    description: describeTool(ground),
    input,
    aliases: { cmd: 'command', shell_command: 'command' },
    effect: 'once',
    sequential: true,
    // The command's own limits come first; this one acts only if they fail.
    timeoutMs: HARD_MS_MAX + 10_000,
    approval: (args) => approvalOfCommand(args, ground),
    place: () => placeOfConfinement(ground),
    execute: (args, context) => execute(args, context, ground),
  })
  return { ...tool, rooted: rootedInFolder(options, bashTool) }
}

type BashSetup = BashOptions & Confinement

/**
 * The strictest requirement counts. The network needs an approval whatever rules allow: data that is sent cannot be
 * taken back.
 */
async function approvalOfCommand(args: BashArgs, ground: BashSetup): Promise<Approval> {
  const { level } = await classifyCommand(args.command)
  if (level === 'blocked') return 'never'
  const unconfined = approvalOfConfinement(ground)
  if (unconfined !== 'auto') return unconfined
  if (args.network !== undefined && args.network !== false) return 'always'
  return level === 'needs_approval' && ground.risk !== 'relaxed' ? 'ask' : 'auto'
}

async function execute(args: BashArgs, context: ToolContext, ground: BashSetup): Promise<Output> {
  const { onLine } = ground
  const shell = findShell()
  const pieces = context.redactPieces ?? (() => ({ push: context.redact, end: () => '' }))
  const last: string[] = []
  let isWatched = true
  const lines = new WatchedLines(pieces, (stream, line) => {
    last.push(line)
    if (last.length > LAST_LINES_MAX) last.shift()
    if (!isWatched) return
    onLine?.({ ...lineFields(context), stream, line })
    context.tell(`${line}\n`)
  })
  const errand = {
    // Not a login shell: the user's profile would export variables that the allowed list leaves out.
    argv: [shell, '-c', args.command],
    network: args.network === true,
    softMs: args.soft_timeout_ms ?? ground.softTimeoutMs ?? SOFT_MS,
    hardMs: args.timeout_ms ?? HARD_MS,
    onChunk: (stream: OutputStream, chunk: Uint8Array) => lines.push(stream, chunk),
  }
  const asked = { command: args.command, shell }
  const { max_chars: charsMax = null } = args
  const told = { asked, timeoutText: timeoutText(args, ground), charsMax }
  const watched = { command: args.command, lines: last, context, onRunning: ground.onRunning }
  const begunAt = context.clock.now()
  const ran = await runWatched(watched, ({ signal, released }) =>
    runConfined({ ...errand, released }, ground, { ...context, signal }),
  )
  if (ran === null) {
    isWatched = false
    return backgroundResult(asked, last, context.clock.now() - begunAt)
  }
  lines.end()
  return commandResult(ran, told, context)
}

const IN_BACKGROUND =
  'The user sent it to the background, where it goes on. You are told when it ends; it ends with this chat at the latest. Do not start it again.'

function backgroundResult(
  asked: Readonly<Record<string, string>>,
  lines: readonly string[],
  durationMs: number,
): Output {
  const result = { ...asked, stdout: lines.join('\n'), stderr: '', exit_code: null, background: true }
  const metadata = { exit_code: null, background: true, duration_ms: durationMs, stdout_lines: lines.length }
  return output({ content: JSON.stringify({ ...result, message: IN_BACKGROUND }), metadata })
}

function timeoutText(args: BashArgs, { softTimeoutMs = SOFT_MS }: BashSetup): (kind: 'soft' | 'hard') => string {
  const { timeout_ms = HARD_MS, soft_timeout_ms = softTimeoutMs } = args
  const soft = `Stopped: no output for ${soft_timeout_ms} ms. Is it waiting for input? Let it print progress, or raise "soft_timeout_ms".`
  const hard = `Stopped after ${timeout_ms} ms. "timeout_ms" allows up to ${HARD_MS_MAX}.`
  return (kind) => (kind === 'hard' ? hard : soft)
}

function describeTool(ground: BashSetup): string {
  const { softTimeoutMs: softMs = SOFT_MS } = ground
  const what = `Runs a shell command in the workspace and returns JSON: command, shell, stdout, stderr, exit_code, success. Each call is a fresh shell, and no process outlives it. It is stopped after ${softMs / 1000} s without output and after ${HARD_MS / 1000} s in all.`
  const sockets = ground.localSockets === true ? '' : 'unix sockets cannot be opened, '
  const walls = `Sandboxed: only the workspace and /tmp can be written, /tmp is empty in each call, ${sockets}and there is no network unless "network" is true, for which a person is asked.`
  return `${what} ${sandboxWarning(ground) ?? walls}`
}

function lineFields({ session, call }: ToolContext): Pick<BashLine, 'type' | 'session' | 'call'> {
  return { type: 'bash_stdout_line', session, call }
}

/**
 * Lines for watching, bounded in length and number, since a command may print without end. They are cut after the
 * search for secrets in the whole stream, and a line waits while later text may show that it holds a part of one.
 */
class WatchedLines {
  readonly #emit: (stream: OutputStream, line: string) => void
  readonly #streams: Readonly<Record<OutputStream, WatchedStream>>
  #count = 0
  #characters = 0

  constructor(pieces: NonNullable<ToolContext['redactPieces']>, emit: (stream: OutputStream, line: string) => void) {
    this.#emit = emit
    const watched = (): WatchedStream => ({ decoder: new TextDecoder(), redacted: pieces(), rest: '' })
    this.#streams = { stdout: watched(), stderr: watched() }
  }

  push(name: OutputStream, chunk: Uint8Array): void {
    if (this.#count >= LINES_MAX || this.#characters >= WATCHED_CHARACTERS_MAX) return
    const { decoder, redacted } = this.#streams[name]
    const text = decoder.decode(chunk, { stream: true })
    this.#characters += text.length
    this.#show(name, redacted.push(text))
  }

  /** The last output need not end with a line end. */
  end(): void {
    for (const name of ['stdout', 'stderr'] as const) {
      const stream = this.#streams[name]
      const { decoder, redacted } = stream
      // After the limit the rest of the stream is missing: the held-back text may be half of a secret.
      if (this.#characters < WATCHED_CHARACTERS_MAX) this.#show(name, redacted.push(decoder.decode()) + redacted.end())
      if (stream.rest !== '' && this.#count++ < LINES_MAX) this.#emit(name, stream.rest)
    }
  }

  #show(name: OutputStream, text: string): void {
    const stream = this.#streams[name]
    const lines = text.split('\n')
    const last = lines.pop() ?? ''
    for (const line of lines) {
      if (this.#count++ < LINES_MAX) this.#emit(name, (stream.rest + line).slice(0, LINE_CHARACTERS_MAX))
      stream.rest = ''
    }
    stream.rest = (stream.rest + last).slice(0, LINE_CHARACTERS_MAX)
  }
}

type WatchedStream = {
  readonly decoder: InstanceType<typeof TextDecoder>
  readonly redacted: ReturnType<NonNullable<ToolContext['redactPieces']>>
  rest: string
}

const milliseconds = { type: 'integer', minimum: 1, maximum: HARD_MS_MAX } as const
const schema = {
  type: 'object',
  properties: {
    command: { type: 'string', minLength: 1, description: 'The command, as bash reads it.' },
    timeout_ms: { ...milliseconds, description: `Stop after this long. Default ${HARD_MS}.` },
    soft_timeout_ms: { ...milliseconds, description: `Stop after this long without output. Default ${SOFT_MS}.` },
    network: { type: 'boolean', description: 'Needs the network. A person is asked.' },
    max_chars: { type: 'integer', minimum: 1, description: 'Show less of each stream. It cannot show more.' },
  },
  required: ['command'],
  additionalProperties: false,
}

const input: StandardSchema<BashArgs> = {
  '~standard': {
    jsonSchema: { input: () => structuredClone(schema) },
    validate: (value) => {
      const args = value !== null && typeof value === 'object' ? (value as Readonly<Record<string, unknown>>) : {}
      const issues = Object.keys(args).flatMap((name) => argumentIssues(name, args[name]))
      if (args['command'] === undefined) issues.push({ message: 'is required', path: ['command'] })
      // Sound: every field was checked.
      return issues.length > 0 ? { issues } : { value: args as unknown as BashArgs }
    },
  },
}

function argumentIssues(
  name: string,
  value: unknown,
): { readonly message: string; readonly path: readonly string[] }[] {
  const wrong = (message: string) => [{ message, path: [name] }]
  if (name === 'command') {
    if (typeof value !== 'string' || value.trim() === '') return wrong('must be a non-empty string')
    if (value.includes('\0')) return wrong('must not hold a NUL character')
    const bytes = Buffer.byteLength(value)
    return bytes > COMMAND_BYTES_MAX ? wrong(`has ${bytes} bytes, at most ${COMMAND_BYTES_MAX}: use a file`) : []
  }
  if (name === 'max_chars')
    return Number.isInteger(value) && Number(value) >= 1 ? [] : wrong('must be a whole number from 1 on')
  if (name === 'network') return typeof value === 'boolean' ? [] : wrong('must be true or false')
  if (name !== 'timeout_ms' && name !== 'soft_timeout_ms') return wrong('is not a field of this tool')
  const whole = Number.isInteger(value) && (value as number) >= 1 && (value as number) <= HARD_MS_MAX
  return whole ? [] : wrong(`must be a whole number from 1 to ${HARD_MS_MAX}`)
}
