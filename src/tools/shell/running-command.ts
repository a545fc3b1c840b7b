// A command that runs, as whoever watches it sees it: it can be stopped, and it can be sent to the background. Then its
// call ends at once, and the command goes on without limits of time. Nothing of it outlives this process.
import type { CapturedStream } from './capture.ts'
import { type ConfinedResult, protectedFields } from './run-confined.ts'
import type { ToolContext } from '../core/tool.ts'

/** A command that runs. */
export type RunningCommand = {
  /** The session of the call that started it. */
  readonly session: string
  /** The key of that call. */
  readonly call: string
  /** The command as the model wrote it. */
  readonly command: string
  /** The last lines that it printed so far, without known secrets. */
  readonly lines: readonly string[]
  /** Ends the call, and the command goes on. False if it has ended, or goes on there already. */
  readonly sendToBackground: () => boolean
  /** Stops it, with everything that it started. */
  readonly stop: () => void
  /** Resolves when it has ended, wherever it ran. Never rejects. */
  readonly ended: Promise<CommandEnd>
}

/** How a command ended. */
export type CommandEnd = {
  /** Null if it was stopped, or never ran. */
  readonly exitCode: number | null
  /** The last of what it printed, without known secrets. At most 20,000 characters. */
  readonly text: string
  /** How long it ran, in ms. 0 if it never ran. */
  readonly durationMs: number
}

/** What a command is stopped by, and what takes its limits of time away. */
export type CommandSignals = { readonly signal: AbortSignal; readonly released: AbortSignal }

const TEXT_CHARS_MAX = 20_000

type WatchedRun = {
  readonly command: string
  readonly lines: readonly string[]
  readonly context: Pick<ToolContext, 'session' | 'call' | 'signal' | 'redact'>
  readonly onRunning: ((running: RunningCommand) => void) | undefined
}

/** Runs it until it has ended. Null: it goes on in the background. */
export async function runWatched(
  { command, lines, context, onRunning }: WatchedRun,
  run: (signals: CommandSignals) => Promise<ConfinedResult>,
): Promise<ConfinedResult | null> {
  const [stop, release] = [new AbortController(), new AbortController()]
  const follow = (): void => stop.abort()
  if (context.signal.aborted) follow()
  context.signal.addEventListener('abort', follow, { once: true })
  const ran = run({ signal: stop.signal, released: release.signal })
  let hasEnded = false
  const ended = ran.then(
    (result) => endOf(result, context.redact),
    (error: unknown) => ({
      exitCode: null,
      text: error instanceof Error ? error.message : String(error),
      durationMs: 0,
    }),
  )
  const isReleased = new Promise<null>((resolve) => {
    release.signal.addEventListener('abort', () => resolve(null), { once: true })
  })
  const sendToBackground = (): boolean => {
    if (hasEnded || release.signal.aborted) return false
    context.signal.removeEventListener('abort', follow)
    release.abort()
    return true
  }
  const { session, call } = context
  onRunning?.({ session, call, command, lines, sendToBackground, stop: follow, ended })
  try {
    return await Promise.race([ran, isReleased])
  } finally {
    hasEnded = true
    context.signal.removeEventListener('abort', follow)
  }
}

function endOf({ end, left }: ConfinedResult, redact: (text: string) => string): CommandEnd {
  const { how, durationMs } = end
  const noticed = protectedFields(left)
  const printed = [end.stdout, end.stderr].map((stream) => redact(keptText(stream)).trimEnd())
  const notice = Object.keys(noticed).length === 0 ? '' : JSON.stringify(noticed)
  const text = [...printed, notice].filter((part) => part !== '').join('\n')
  return { exitCode: how.type === 'exited' ? how.code : null, text: text.slice(-TEXT_CHARS_MAX), durationMs }
}

/** Half of a secret is not recognized, so the line that was cut is left out. */
function keptText({ head, tail, omittedBytes }: CapturedStream): string {
  if (omittedBytes === 0) return head + tail
  return `[${omittedBytes} bytes before these were left out]\n${tail.slice(tail.indexOf('\n') + 1)}`
}
