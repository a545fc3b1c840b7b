// The output at the end of a run: the answer on standard output; its status, cost and next command on standard error.
import type { Pending, Result } from '../../index.ts'
import { fitLines, type Paint } from './terminal-text.ts'
import { clean, oneLine, shownId } from '../../view/clean.ts'
import { EXIT } from '../exit.ts'
import { hiddenText, paintRows, type DrawSize, previewCall } from './call-preview.ts'
import { isAttended, print, printJson, printModelText, outputStyle, shortId, terretCommand, warn } from './print.ts'
import type { CompleteStore, Json } from '../../kernel/index.ts'
import { nameIn } from '../../view/tree-rows.ts'
import { countNoun } from '../../view/shown-text.ts'
import { usdText } from '../../view/usd.ts'

function exitForResult(result: Result): number {
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

export type PrintOptions = {
  readonly json: boolean
  /** True if the JSON is the last line of a stream, where its type tells it from an event. */
  readonly stream?: boolean
  readonly quiet: boolean
  /** The last model failure shown, so that it is not shown twice. */
  readonly told: string
  readonly folder: string
  /** Pending calls of children that work on by themselves. */
  readonly below?: readonly Pending[]
}

/** Prints the result, and returns the exit code. */
export async function printResult(result: Result, options: PrintOptions): Promise<number> {
  if (options.json) printJson(resultJson(withPendingBelow(result, options), options))
  else {
    // For a halted run the text is the cause, which the last lines print.
    const said = (result.status === 'halted' ? result.said : result.text).trim()
    if (said !== '') await printModelText(said)
    if (!options.quiet || result.stopReason !== 'end_turn')
      for (const line of await endLines(result, options)) warn(line)
  }
  return exitForResult(result)
}

/** Adds the pending calls of children, so that programs see which calls wait. */
function withPendingBelow(result: Result, { below = [] }: PrintOptions): Result {
  return below.length === 0 ? result : { ...result, pending: [...result.pending, ...below] }
}

type ChildrenEnd = {
  readonly exit: number
  readonly json: boolean
  readonly stopped: boolean
  readonly folder: string
  readonly waiting: readonly Pending[]
}

/** Prints the open work and the pending calls of children, and how they go on. Returns the exit code for everything. */
export async function printChildren(store: CompleteStore, id: string, left: ChildrenEnd): Promise<number> {
  const { exit, json, stopped, folder } = left
  const { unmergedWorktrees, workingBelow } = await import('../state/children-wait.ts')
  // Otherwise the result has printed them.
  const waiting = exit === EXIT.ok ? left.waiting : []
  const working = await workingBelow(store, id)
  if (!json) {
    for (const each of waiting)
      for (const line of [
        ...(await pendingLines(each, { folder, ...outputStyle(process.stderr, false) })),
        decideHint(each),
      ])
        warn(line)
    const names = working.map(({ session, agent }) => `${shownId(nameIn(session, id))} ${oneLine(agent)}`)
    // The run had ended before the stop, so its result does not mention it.
    if (exit === EXIT.ok && stopped && names.length === 0)
      warn(`Its agents were stopped. Nothing is lost. Go on with: ${terretCommand`resume ${id}`}`)
    if (names.length > 0)
      warn(
        `Not done yet: ${names.join(', ')}. They go on with: ${terretCommand`resume ${id}`}   or: ${terretCommand`worker`}`,
      )
    // A failure of git must not hide the result.
    for (const line of await unmergedWorktrees(folder, id).catch(() => [])) warn(oneLine(line, 2_000))
  }
  if (exit !== EXIT.ok) return exit
  if (stopped) return EXIT.interrupted
  return waiting.length > 0 ? EXIT.waits : working.length > 0 ? EXIT.later : EXIT.ok
}

/** The same for a report: the answer is the file, and the pending write is shown in full. */
export async function printReportResult(result: Result, options: PrintOptions): Promise<number> {
  const path = writtenPath(result)
  if (options.json) printJson(resultJson(result, options, path ?? ''))
  else {
    if (path !== null) print(clean(path))
    if (!options.quiet || result.status !== 'completed')
      for (const line of await reportLines(result, options)) warn(line)
  }
  return exitForResult(result)
}

/** The same for a workflow from a file: the answer is its text, or its summary. */
export async function printFlowResult(
  result: Result,
  options: PrintOptions,
  said = flowAnswer(result),
): Promise<number> {
  if (options.json) printJson(resultJson(result, options, said))
  else {
    if (said !== '') await printModelText(said)
    if (!options.quiet || result.status !== 'completed') for (const line of await endLines(result, options)) warn(line)
  }
  return exitForResult(result)
}

/** What a script printed, and its answer, or else its value. */
export function printScriptResult(result: Result, options: PrintOptions): Promise<number> {
  const output = 'output' in result ? result.output : null
  const {
    stdout = '',
    final_answer: answer = null,
    value = null,
  } = (output ?? {}) as {
    readonly stdout?: string
    readonly final_answer?: Json
    readonly value?: Json
  }
  const given = answer ?? value
  const said = given === null || typeof given === 'string' ? (given ?? '') : JSON.stringify(given, null, 2)
  const all = [stdout.trimEnd(), said].filter((each) => each !== '')
  return printFlowResult(result, options, all.join('\n'))
}

function flowAnswer(result: Result): string {
  const { text, summary, ...more } = (('output' in result ? result.output : null) ?? {}) as {
    readonly text?: unknown
    readonly summary?: string | { readonly text?: unknown }
    readonly result?: unknown
  }
  // The summary of a delegation is a sentence about its end.
  const said = typeof summary === 'string' ? [more.result, summary] : [text ?? summary?.text]
  return said
    .filter((each) => typeof each === 'string')
    .map((each) => each.trim())
    .filter((each) => each !== '')
    .join('\n\n')
}

function writtenPath(result: Result): string | null {
  const output = 'output' in result ? result.output : null
  const { written } = (output ?? {}) as { readonly written?: { readonly path?: unknown } | null }
  return typeof written?.path === 'string' ? written.path : null
}

async function reportLines(result: Result, options: PrintOptions): Promise<readonly string[]> {
  const { sessionId: id } = result
  if (result.status === 'completed') {
    return [
      'The report is written. To see how it was made:',
      `  ${terretCommand`inspect ${id}`}`,
      `  ${terretCommand`history ${id}`}`,
      `  ${terretCommand`export ${id} --format folder --out report-${id}`}`,
    ]
  }
  const [only] = result.pending
  if (result.status !== 'requires_action' || !only || result.pending.length > 1 || isBudget(only))
    return endLines(result, options)
  return [
    // At a terminal the person was asked and has seen it.
    ...(isAttended() ? [] : await pendingLines(only, { folder: options.folder, ...outputStyle(process.stderr, true) })),
    'Nothing is written before somebody allows it.',
    `  Allow it:   ${terretCommand`approve ${id} --resume`}`,
    `  Refuse it:  ${terretCommand`reject ${id} --resume`}`,
  ]
}

/** Read by scripts, so it must stay stable. */
function resultJson(result: Result, { stream = false }: PrintOptions, text = result.text): object {
  const { sessionId, status, stopReason, usage, cost, pending, calls } = result
  const more = Object.fromEntries(
    (['output', 'until', 'reason', 'said', 'limit', 'account', 'short', 'failure'] as const).flatMap((name) => {
      return name in result ? [[name, (result as Readonly<Record<string, unknown>>)[name]]] : []
    }),
  )
  const made = calls.map(({ callId, tool, args, status: ended, approved }) => {
    return { callId, tool, args, status: ended, ...(approved ? { approved } : {}) }
  })
  return {
    ...(stream ? { type: 'result' } : {}),
    session: sessionId,
    status,
    stopReason,
    text,
    ...more,
    usage,
    costUsd: cost.ownUsd,
    treeCostUsd: cost.usd,
    pending,
    calls: made,
  }
}

async function endLines(result: Result, { told, folder }: PrintOptions): Promise<readonly string[]> {
  const { usage, sessionId } = result
  const cost = result.cost.micros
  const tokens = usage.inputTokens + usage.outputTokens
  const spent = [
    countNoun(usage.modelRequests, 'request'),
    countNoun(usage.toolCalls, 'call'),
    ...(tokens > 0 ? [`${tokens} tokens`] : []),
    ...(cost > 0 ? [usdText(cost)] : []),
  ]
  const waits = result.status === 'requires_action' && result.stopReason !== 'paused'
  const cause = waits ? await waitLines(result.pending, folder) : causeLines(result, told)
  return [...cause, `${result.status} · ${spent.join(' · ')} · session ${shortId(sessionId)}`]
}

/** At a terminal the person was asked and has seen the calls. */
async function waitLines(pending: readonly Pending[], folder: string): Promise<readonly string[]> {
  const showing = { folder, ...outputStyle(process.stderr) }
  const all = await Promise.all(
    pending.map(async (each) => [
      ...(isAttended() ? [pendingHead(each)] : await pendingLines(each, showing)),
      decideHint(each),
    ]),
  )
  return all.flat()
}

/** The messages for incomplete answers. */
export const INCOMPLETE_TEXTS = {
  end_turn: null,
  max_tokens:
    'The answer was cut: it is as long as one answer may be. `outputTokensMax` in your configuration says how long.',
  refusal: 'The model refused to answer.',
} as const

function causeLines(result: Result, told: string): readonly string[] {
  const { sessionId: id } = result
  switch (result.status) {
    case 'completed':
      return [INCOMPLETE_TEXTS[result.stopReason] ?? []].flat()
    case 'failed': {
      const { message, classified } = result.failure
      const said = [message === told ? '' : oneLine(message, 600), oneLine(classified?.nextAction ?? '')]
      return [said.filter((text) => text !== '').join(' '), `Go on with: ${terretCommand`resume ${id}`}`].filter(
        (line) => line !== '',
      )
    }
    case 'halted':
      return [oneLine(result.reason, 600)]
    case 'limit':
      return [limitText(result)]
    case 'interrupted':
      return [`Interrupted. Nothing is lost. Go on with: ${terretCommand`resume ${id}`}`]
    case 'sleeping': {
      const when = result.until === null ? '' : ` at ${new Date(result.until).toISOString()}`
      const why = result.reason === undefined || result.reason === told ? [] : [oneLine(result.reason, 600)]
      return [
        ...why,
        `It goes on${when}, when \`${terretCommand`worker`}\` runs; or now: ${terretCommand`resume ${id}`}`,
      ]
    }
    case 'requires_action':
      if (result.flags.held)
        return [
          `It was imported and is held. Go on with: ${terretCommand`resume ${id}`}   (${terretCommand`pending ${id}`} shows what it would do)`,
        ]
      return pausedLines('reason' in result ? result.reason : undefined, id)
  }
}

/** If the context is full, the same request would be refused again, so other ways are named. */
function pausedLines(reason: string | undefined, id: string): readonly string[] {
  if (reason === undefined) return [`It is paused. Go on with: ${terretCommand`resume ${id}`}`]
  return [
    oneLine(reason, 600),
    `  Go on from an earlier event:  ${terretCommand`fork ${id} --at SEQ`}   (${terretCommand`history ${id}`} lists them)`,
    `  Or with another model:        ${terretCommand`resume ${id} --model NAME`}`,
  ]
}

/** True for the pending entry of a session that has no money left. */
export function isBudget({ callId }: Pending): boolean {
  return callId === 'budget'
}

const WHOSE: Readonly<Record<string, string>> = {
  run: 'this run',
  session: 'this session',
  tree: 'this session and its children',
  day: 'the day',
}

/** `of` is the account and its amounts, as a result or the `args` of a pending budget have them. */
function budgetText(of: unknown): string {
  const { account, short, ...flat } = (of ?? {}) as {
    readonly account?: unknown
    readonly short?: AccountStanding
  } & AccountStanding
  const whose = typeof account === 'string' ? WHOSE[account] : undefined
  const { limit, spent, held = 0, needed } = short ?? flat
  const told = `The budget${whose === undefined ? '' : ` of ${whose}`} does not cover the next call`
  if (typeof limit !== 'number' || spent === undefined || needed === undefined) return `${told}.`
  const kept = held > 0 ? `, ${dollarsText(held)} held for calls at work` : ''
  const more = dollarsText(Math.max(0, spent + held + needed - limit))
  return `${told}: ${dollarsText(spent)} spent of ${dollarsText(limit)}${kept}, and it needs up to ${dollarsText(needed)}, so at least ${more} more.`
}

type AccountStanding = Partial<Record<'limit' | 'spent' | 'held' | 'needed', number>>

/** Rounds up, so that the amount is enough. */
function dollarsText(millionths: number): string {
  return `$${(Math.ceil(millionths / 100) / 10_000).toFixed(4)}`
}

function limitText(result: Extract<Result, { status: 'limit' }>): string {
  const { limit, sessionId: id } = result
  if (limit === 'usd')
    return `${budgetText(result)} Allow more with: ${terretCommand`approve ${id} budget --usd 1 --resume`}`
  return `The limit ${oneLine(limit)} was met. Raise it in the configuration, and go on with: ${terretCommand`resume ${id}`}`
}

/** A pending call in one line. */
export function pendingHead(pending: Pending): string {
  const { tool, args, callId, sessionId, needs, expiresAt } = pending
  const id = shortId(sessionId)
  if (isBudget(pending)) {
    return `Session ${id} waits for money. ${budgetText(args)}`
  }
  if (needs === 'answer') return `Session ${id} asks with ${oneLine(tool)} (call ${shownId(callId)}):`
  const until = expiresAt ? `, until ${new Date(expiresAt).toISOString()}` : ''
  const needed = requiredVotesText(pending)
  return `Session ${id} wants to run ${oneLine(tool)} (call ${shownId(callId)}${needed === '' ? '' : `, ${needed}`}${until}):`
}

/** The command that decides a pending call. */
export function decideHint(pending: Pending): string {
  const { callId, sessionId, needs, roles = [] } = pending
  if (isBudget(pending))
    return `  Allow more with: ${terretCommand`approve ${pending.path[0] ?? sessionId} budget --usd 1 --resume`}`
  if (needs === 'answer') return `  Answer with: ${terretCommand`answer ${sessionId} ${callId} TEXT`}`
  if (roles.length === 0)
    return `  Decide with: ${terretCommand`approve ${sessionId} ${callId}`}   or: ${terretCommand`reject ${sessionId} ${callId}`}`
  const role = roles.length === 1 ? (roles[0] ?? '') : 'ROLE'
  const yes = terretCommand`approve ${sessionId} ${callId} --role ${role}`
  return `  Decide with: ${yes}   or: ${terretCommand`reject ${sessionId} ${callId} --role ${role}`}`
}

export type ShowOptions = {
  readonly folder: string | null
  readonly room: DrawSize
  readonly paint: Paint
  readonly way?: string
}

/** A pending call with its exact action and a note on hidden parts. `way` says how to see the rest. */
export async function pendingLines(pending: Pending, showing: ShowOptions): Promise<readonly string[]> {
  return (await drawPending(pending, showing)).lines
}

/** The same, and whether a part is hidden. */
export async function drawPending(
  pending: Pending,
  showing: ShowOptions,
): Promise<{ readonly lines: readonly string[]; readonly isCut: boolean }> {
  const {
    folder,
    room,
    paint,
    way = `See all of it with: ${terretCommand`pending ${pending.sessionId} --whole`}`,
  } = showing
  const head = pendingHead(pending)
  if (isBudget(pending)) return { lines: [head], isCut: false }
  const shown = await previewCall(folder, pending, room)
  const hidden = hiddenText(shown, way)
  const said = [shown.sum, ...(pending.denied ? ['the same call was refused before in this run'] : [])]
  const sum = said.filter((text) => text !== '').join(' · ')
  const lines = [
    sum === '' ? head : `${head} ${sum}`,
    ...paintRows(shown.rows, paint),
    ...(hidden === null ? [] : paint.yellow(fitLines(hidden, room.columns)).split('\n')),
  ]
  return { lines, isCut: hidden !== null }
}

/** The class, roles and votes of an approval, if it needs more than one vote of anyone. */
export function requiredVotesText(pending: Pending): string {
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
