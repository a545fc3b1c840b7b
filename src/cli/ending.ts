// What is said when a run rests: the answer on standard output, and beside it how it ended, what it cost and what to do next.
import type { Pending, Result } from '../index.ts'
import { clean, oneLine, shownArgs } from './clean.ts'
import { EXIT } from './exit.ts'
import { shortId } from './place.ts'
import { isAttended, print, printJson, typed, warn } from './print.ts'

function exitOf(result: Result): number {
  switch (result.status) {
    case 'completed':
      return EXIT.ok
    case 'requires_action':
      return EXIT.waits
    case 'limit':
      return EXIT.limit
    case 'interrupted':
      return EXIT.interrupted
    case 'sleeping':
      return EXIT.later
    case 'failed':
    case 'halted':
      return EXIT.failed
  }
}

/** Says it, and gives the exit code. */
export function tell(result: Result, options: { readonly json: boolean; readonly quiet: boolean }): number {
  if (options.json) printJson(resultJson(result))
  else {
    if (result.text.trim() !== '') print(clean(result.text.trim()))
    if (!options.quiet || result.status !== 'completed') for (const line of endLines(result)) warn(line)
  }
  return exitOf(result)
}

/** The same for a report: the answer is the file, and the exact bytes that wait are shown whole. */
export function tellReport(result: Result, options: { readonly json: boolean; readonly quiet: boolean }): number {
  const path = writtenIn(result)
  if (options.json) printJson(resultJson(result, path ?? ''))
  else {
    if (path !== null) print(clean(path))
    if (!options.quiet || result.status !== 'completed') for (const line of reportLines(result)) warn(line)
  }
  return exitOf(result)
}

function writtenIn(result: Result): string | null {
  const output = 'output' in result ? result.output : null
  const { written } = (output ?? {}) as { readonly written?: { readonly path?: unknown } | null }
  return typeof written?.path === 'string' ? written.path : null
}

function reportLines(result: Result): readonly string[] {
  const id = shortId(result.sessionId)
  if (result.status === 'completed') {
    return [
      'The report is written. To see how it was made:',
      `  ${typed(`inspect ${id}`)}`,
      `  ${typed(`history ${id}`)}`,
      `  ${typed(`export ${id} --format folder --out report-${id}`)}`,
    ]
  }
  const [only] = result.pending
  if (result.status !== 'requires_action' || !only || result.pending.length > 1) return endLines(result)
  return [
    // Who was asked has seen it.
    ...(isAttended() ? [] : pendingLines(only, Number.POSITIVE_INFINITY).slice(0, 2)),
    'Nothing is written before somebody allows it.',
    `  Allow it:   ${typed(`approve ${id} --resume`)}`,
    `  Refuse it:  ${typed(`reject ${id} --resume`)}`,
  ]
}

/** Stable: what scripts read. */
function resultJson(result: Result, text = result.text): object {
  const { sessionId, status, stopReason, usage, cost, pending, calls } = result
  const more = Object.fromEntries(
    (['output', 'until', 'reason', 'limit', 'failure'] as const).flatMap((name) => {
      return name in result ? [[name, (result as Readonly<Record<string, unknown>>)[name]]] : []
    }),
  )
  const made = calls.map(({ callId, tool, args, status: ended, approved }) => {
    return { callId, tool, args, status: ended, ...(approved ? { approved } : {}) }
  })
  return {
    session: sessionId,
    status,
    stopReason,
    text,
    ...more,
    usage,
    costUsd: cost / 1_000_000,
    pending,
    calls: made,
  }
}

function endLines(result: Result): readonly string[] {
  const id = shortId(result.sessionId)
  const { usage, cost } = result
  const tokens = usage.inputTokens + usage.outputTokens
  const spent = [
    counted(usage.modelRequests, 'request'),
    counted(usage.toolCalls, 'call'),
    ...(tokens > 0 ? [`${tokens} tokens`] : []),
    ...(cost > 0 ? [`$${(cost / 1_000_000).toFixed(4)}`] : []),
  ]
  return [...causeLines(result, id), `${result.status} · ${spent.join(' · ')} · session ${id}`]
}

function causeLines(result: Result, id: string): readonly string[] {
  switch (result.status) {
    case 'completed':
      return []
    case 'failed': {
      const next = result.failure.classified?.nextAction
      return [
        `${oneLine(result.failure.message, 600)}${next ? ` ${oneLine(next)}` : ''}`,
        `Go on with: ${typed(`resume ${id}`)}`,
      ]
    }
    case 'halted':
      return [oneLine(result.reason, 600)]
    case 'limit':
      return [limitText(result.limit, id)]
    case 'interrupted':
      return [`Interrupted. Nothing is lost. Go on with: ${typed(`resume ${id}`)}`]
    case 'sleeping': {
      const when = result.until === null ? '' : ` at ${new Date(result.until).toISOString()}`
      return [`It goes on${when}, when \`${typed('worker')}\` runs; or now: ${typed(`resume ${id}`)}`]
    }
    case 'requires_action':
      if (result.stopReason === 'paused') return [`It is paused. Go on with: ${typed(`resume ${id}`)}`]
      return result.pending.flatMap((pending) => pendingLines(pending))
  }
}

function limitText(limit: string, id: string): string {
  if (limit === 'usd')
    return `The budget is used up. Allow more with: ${typed(`approve ${id} budget --usd 1 --resume`)}`
  return `The limit ${limit} was met. Raise it in the configuration, and go on with: ${typed(`resume ${id}`)}`
}

/** The exact action, and the command that decides it. */
export function pendingLines(pending: Pending, charsMax?: number): readonly string[] {
  const { tool, args, callId, sessionId, needs, expiresAt } = pending
  const id = shortId(sessionId)
  if (needs === 'answer') {
    return [
      `Session ${id} asks with ${oneLine(tool)} (call ${callId}):`,
      shownArgs(args, charsMax),
      `  Answer with: ${typed(`answer ${id} ${callId} TEXT`)}`,
    ]
  }
  const until = expiresAt ? `, until ${new Date(expiresAt).toISOString()}` : ''
  return [
    `Session ${id} wants to run ${oneLine(tool)} (call ${callId}${until}):`,
    shownArgs(args, charsMax),
    `  Decide with: ${typed(`approve ${id} ${callId}`)}   or: ${typed(`reject ${id} ${callId}`)}`,
  ]
}

export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
