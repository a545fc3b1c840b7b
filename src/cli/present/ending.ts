// The output at the end of a run: the answer on standard output; its status, cost and next command on standard error.
import type { Pending, Result } from '../../index.ts'
import { fitted, type Paint } from './text.ts'
import { clean, oneLine, shownId } from '../../view/clean.ts'
import { EXIT } from '../exit.ts'
import { hiddenText, painted, type Room, shownCall } from './preview.ts'
import { isAttended, print, printJson, printSaid, seatOf, shortId, typed, warn } from './print.ts'
import type { Store } from '../../kernel/index.ts'
import { nameIn } from '../../view/tree.ts'
import { counted } from '../../view/text.ts'
import { usdText } from '../../view/usd.ts'

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

export type Telling = {
  readonly json: boolean
  readonly quiet: boolean
  /** The last model failure shown, so that it is not shown twice. */
  readonly told: string
  readonly folder: string
  /** What children wait for that work on their own. */
  readonly below?: readonly Pending[]
}

/** Prints the result, and returns the exit code. */
export async function tell(result: Result, options: Telling): Promise<number> {
  if (options.json) printJson(resultJson(withBelow(result, options)))
  else {
    // Of a halted run the text is the cause, which the last lines say.
    const said = (result.status === 'halted' ? result.said : result.text).trim()
    if (said !== '') printSaid(said)
    if (!options.quiet || result.stopReason !== 'end_turn')
      for (const line of await endLines(result, options)) warn(line)
  }
  return exitOf(result)
}

/** For programs, which otherwise see that it waits and not for what. */
function withBelow(result: Result, { below = [] }: Telling): Result {
  return below.length === 0 ? result : { ...result, pending: [...result.pending, ...below] }
}

type Left = {
  readonly exit: number
  readonly json: boolean
  readonly stopped: boolean
  readonly folder: string
  readonly waiting: readonly Pending[]
}

/** What children still do or wait for, and how they go on. Returns the exit code of all of it. */
export async function tellChildren(store: Store, id: string, left: Left): Promise<number> {
  const { exit, json, stopped, folder } = left
  const { unmergedBelow, workingBelow } = await import('../state/children.ts')
  // Otherwise the result has said it.
  const waiting = exit === EXIT.ok ? left.waiting : []
  const working = await workingBelow(store, id)
  if (!json) {
    for (const each of waiting)
      for (const line of [...(await pendingLines(each, { folder, ...seatOf(process.stderr, false) })), wayLine(each)])
        warn(line)
    const names = working.map(({ session, agent }) => `${shownId(nameIn(session, id))} ${oneLine(agent)}`)
    // The run itself had ended before the stop, and says nothing of it.
    if (exit === EXIT.ok && stopped && names.length === 0)
      warn(`Its agents were stopped. Nothing is lost. Go on with: ${typed`resume ${id}`}`)
    if (names.length > 0)
      warn(`Not done yet: ${names.join(', ')}. They go on with: ${typed`resume ${id}`}   or: ${typed`worker`}`)
    // What git cannot say keeps no result back.
    for (const line of await unmergedBelow(folder, id).catch(() => [])) warn(oneLine(line, 2_000))
  }
  if (exit !== EXIT.ok) return exit
  if (stopped) return EXIT.interrupted
  return waiting.length > 0 ? EXIT.waits : working.length > 0 ? EXIT.later : EXIT.ok
}

/** The same for a report: the answer is the file, and the pending write is shown whole. */
export async function tellReport(result: Result, options: Telling): Promise<number> {
  const path = writtenIn(result)
  if (options.json) printJson(resultJson(result, path ?? ''))
  else {
    if (path !== null) print(clean(path))
    if (!options.quiet || result.status !== 'completed')
      for (const line of await reportLines(result, options)) warn(line)
  }
  return exitOf(result)
}

/** The same for a workflow of a file: the answer is its text, or its summary. */
export async function tellFlow(result: Result, options: Telling): Promise<number> {
  const said = saidBy(result)
  if (options.json) printJson(resultJson(result, said))
  else {
    if (said !== '') printSaid(said)
    if (!options.quiet || result.status !== 'completed') for (const line of await endLines(result, options)) warn(line)
  }
  return exitOf(result)
}

function saidBy(result: Result): string {
  const { text, summary, ...more } = (('output' in result ? result.output : null) ?? {}) as {
    readonly text?: unknown
    readonly summary?: string | { readonly text?: unknown }
    readonly result?: unknown
  }
  // Of a delegation the summary is a sentence on how it ended.
  const said = typeof summary === 'string' ? [more.result, summary] : [text ?? summary?.text]
  return said
    .filter((each) => typeof each === 'string')
    .map((each) => each.trim())
    .filter((each) => each !== '')
    .join('\n\n')
}

function writtenIn(result: Result): string | null {
  const output = 'output' in result ? result.output : null
  const { written } = (output ?? {}) as { readonly written?: { readonly path?: unknown } | null }
  return typeof written?.path === 'string' ? written.path : null
}

async function reportLines(result: Result, options: Telling): Promise<readonly string[]> {
  const { sessionId: id } = result
  if (result.status === 'completed') {
    return [
      'The report is written. To see how it was made:',
      `  ${typed`inspect ${id}`}`,
      `  ${typed`history ${id}`}`,
      `  ${typed`export ${id} --format folder --out report-${id}`}`,
    ]
  }
  const [only] = result.pending
  if (result.status !== 'requires_action' || !only || result.pending.length > 1 || isBudget(only))
    return endLines(result, options)
  return [
    // At a terminal the person was asked and has seen it.
    ...(isAttended() ? [] : await pendingLines(only, { folder: options.folder, ...seatOf(process.stderr, true) })),
    'Nothing is written before somebody allows it.',
    `  Allow it:   ${typed`approve ${id} --resume`}`,
    `  Refuse it:  ${typed`reject ${id} --resume`}`,
  ]
}

/** Read by scripts, so it must stay stable. */
function resultJson(result: Result, text = result.text): object {
  const { sessionId, status, stopReason, usage, costUsd, treeCostUsd, pending, calls } = result
  const more = Object.fromEntries(
    (['output', 'until', 'reason', 'said', 'limit', 'account', 'short', 'failure'] as const).flatMap((name) => {
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
    costUsd,
    treeCostUsd,
    pending,
    calls: made,
  }
}

async function endLines(result: Result, { told, folder }: Telling): Promise<readonly string[]> {
  const { usage, cost, sessionId } = result
  const tokens = usage.inputTokens + usage.outputTokens
  const spent = [
    counted(usage.modelRequests, 'request'),
    counted(usage.toolCalls, 'call'),
    ...(tokens > 0 ? [`${tokens} tokens`] : []),
    ...(cost > 0 ? [usdText(cost)] : []),
  ]
  const waits = result.status === 'requires_action' && result.stopReason !== 'paused'
  const cause = waits ? await waitLines(result.pending, folder) : causeLines(result, told)
  return [...cause, `${result.status} · ${spent.join(' · ')} · session ${shortId(sessionId)}`]
}

/** At a terminal the person was asked and has seen the calls. */
async function waitLines(pending: readonly Pending[], folder: string): Promise<readonly string[]> {
  const showing = { folder, ...seatOf(process.stderr) }
  const all = await Promise.all(
    pending.map(async (each) => [
      ...(isAttended() ? [headLine(each)] : await pendingLines(each, showing)),
      wayLine(each),
    ]),
  )
  return all.flat()
}

/** The message for an incomplete answer. */
export const UNWHOLE = {
  end_turn: null,
  max_tokens:
    'The answer was cut: it is as long as one answer may be. `outputTokensMax` in your configuration says how long.',
  refusal: 'The model refused to answer.',
} as const

function causeLines(result: Result, told: string): readonly string[] {
  const { sessionId: id } = result
  switch (result.status) {
    case 'completed':
      return [UNWHOLE[result.stopReason] ?? []].flat()
    case 'failed': {
      const { message, classified } = result.failure
      const said = [message === told ? '' : oneLine(message, 600), oneLine(classified?.nextAction ?? '')]
      return [said.filter((text) => text !== '').join(' '), `Go on with: ${typed`resume ${id}`}`].filter(
        (line) => line !== '',
      )
    }
    case 'halted':
      return [oneLine(result.reason, 600)]
    case 'limit':
      return [limitText(result)]
    case 'interrupted':
      return [`Interrupted. Nothing is lost. Go on with: ${typed`resume ${id}`}`]
    case 'sleeping': {
      const when = result.until === null ? '' : ` at ${new Date(result.until).toISOString()}`
      const why = result.reason === undefined || result.reason === told ? [] : [oneLine(result.reason, 600)]
      return [...why, `It goes on${when}, when \`${typed`worker`}\` runs; or now: ${typed`resume ${id}`}`]
    }
    case 'requires_action':
      if (result.flags.held)
        return [
          `It was imported and is held. Go on with: ${typed`resume ${id}`}   (${typed`pending ${id}`} shows what it would do)`,
        ]
      return pausedLines('reason' in result ? result.reason : undefined, id)
  }
}

/** With a full context the same request would only be refused again. */
function pausedLines(reason: string | undefined, id: string): readonly string[] {
  if (reason === undefined) return [`It is paused. Go on with: ${typed`resume ${id}`}`]
  return [
    oneLine(reason, 600),
    `  Go on from an earlier event:  ${typed`fork ${id} --at SEQ`}   (${typed`history ${id}`} lists them)`,
    `  Or with another model:        ${typed`resume ${id} --model NAME`}`,
  ]
}

/** The pending of a session that has no money left. */
export function isBudget({ callId }: Pending): boolean {
  return callId === 'budget'
}

const WHOSE: Readonly<Record<string, string>> = {
  run: 'this run',
  session: 'this session',
  tree: 'this session and its children',
  day: 'the day',
}

/** `of` is the account and how it stands, as a result or the `args` of a pending budget have it. */
export function budgetText(of: unknown): string {
  const { account, short, ...flat } = (of ?? {}) as { readonly account?: unknown; readonly short?: Standing } & Standing
  const whose = typeof account === 'string' ? WHOSE[account] : undefined
  const { limit, spent, held = 0, needed } = short ?? flat
  const told = `The budget${whose === undefined ? '' : ` of ${whose}`} does not cover the next call`
  if (typeof limit !== 'number' || spent === undefined || needed === undefined) return `${told}.`
  const kept = held > 0 ? `, ${dollars(held)} held for calls at work` : ''
  const more = dollars(Math.max(0, spent + held + needed - limit))
  return `${told}: ${dollars(spent)} spent of ${dollars(limit)}${kept}, and it needs up to ${dollars(needed)}, so at least ${more} more.`
}

type Standing = Partial<Record<'limit' | 'spent' | 'held' | 'needed', number>>

/** Rounded up, so that the amount is enough. */
function dollars(millionths: number): string {
  return `$${(Math.ceil(millionths / 100) / 10_000).toFixed(4)}`
}

function limitText(result: Extract<Result, { status: 'limit' }>): string {
  const { limit, sessionId: id } = result
  if (limit === 'usd') return `${budgetText(result)} Allow more with: ${typed`approve ${id} budget --usd 1 --resume`}`
  return `The limit ${oneLine(limit)} was met. Raise it in the configuration, and go on with: ${typed`resume ${id}`}`
}

/** A pending call in one line. */
export function headLine(pending: Pending): string {
  const { tool, args, callId, sessionId, needs, expiresAt } = pending
  const id = shortId(sessionId)
  if (isBudget(pending)) {
    return `Session ${id} waits for money. ${budgetText(args)}`
  }
  if (needs === 'answer') return `Session ${id} asks with ${oneLine(tool)} (call ${shownId(callId)}):`
  const until = expiresAt ? `, until ${new Date(expiresAt).toISOString()}` : ''
  const needed = neededText(pending)
  return `Session ${id} wants to run ${oneLine(tool)} (call ${shownId(callId)}${needed === '' ? '' : `, ${needed}`}${until}):`
}

/** The command that decides it. */
export function wayLine(pending: Pending): string {
  const { callId, sessionId, needs, roles = [] } = pending
  if (isBudget(pending))
    return `  Allow more with: ${typed`approve ${pending.path[0] ?? sessionId} budget --usd 1 --resume`}`
  if (needs === 'answer') return `  Answer with: ${typed`answer ${sessionId} ${callId} TEXT`}`
  if (roles.length === 0)
    return `  Decide with: ${typed`approve ${sessionId} ${callId}`}   or: ${typed`reject ${sessionId} ${callId}`}`
  const role = roles.length === 1 ? (roles[0] ?? '') : 'ROLE'
  const yes = typed`approve ${sessionId} ${callId} --role ${role}`
  return `  Decide with: ${yes}   or: ${typed`reject ${sessionId} ${callId} --role ${role}`}`
}

export type Showing = {
  readonly folder: string | null
  readonly room: Room
  readonly paint: Paint
  readonly way?: string
}

/** A pending call with its exact action and a note on hidden parts. `way` tells how to see the rest. */
export async function pendingLines(pending: Pending, showing: Showing): Promise<readonly string[]> {
  return (await shownPending(pending, showing)).lines
}

/** The same, and whether a part is hidden. */
export async function shownPending(
  pending: Pending,
  showing: Showing,
): Promise<{ readonly lines: readonly string[]; readonly isCut: boolean }> {
  const { folder, room, paint, way = `See all of it with: ${typed`pending ${pending.sessionId} --whole`}` } = showing
  const head = headLine(pending)
  if (isBudget(pending)) return { lines: [head], isCut: false }
  const shown = await shownCall(folder, pending, room)
  const hidden = hiddenText(shown, way)
  const said = [shown.sum, ...(pending.denied ? ['the same call was refused before in this run'] : [])]
  const sum = said.filter((text) => text !== '').join(' · ')
  const lines = [
    sum === '' ? head : `${head} ${sum}`,
    ...painted(shown.rows, paint),
    ...(hidden === null ? [] : paint.yellow(fitted(hidden, room.columns)).split('\n')),
  ]
  return { lines, isCut: hidden !== null }
}

/** The class, roles and votes of an approval, if it needs more than one vote by anyone. */
export function neededText(pending: Pending): string {
  const { tool, class: kind = tool, n = 1, roles = [] } = pending
  const parts = [
    ...(kind === tool ? [] : [`class ${oneLine(kind)}`]),
    ...(roles.length > 0 ? [`by ${oneLine(roles.join(' or '))}`] : []),
    ...(n > 1 ? [votesText(pending)] : []),
  ]
  return parts.join(', ')
}

export function votesText({ n = 1, votes = [] }: Pending): string {
  const names = votes.length > 0 ? ` (${votes.map((name) => oneLine(name)).join(', ')})` : ''
  return `${votes.length} of ${n} approvals${names}`
}
