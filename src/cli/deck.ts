// Driving one session from a terminal: follow it, answer what was answered for the whole run, ask who is there, and stop in
// order when told to. Whatever happens here, the log has it, and any other process can go on.
import type { Decision, Harness, Pending, Result, RunStream, SessionHandle } from '../index.ts'
import { WRITERS } from './agent.ts'
import { wordOf } from './chat-approval.ts'
import { keepAlways, keptFor, rememberable, ruleText } from './always.ts'
import { oneLine } from './clean.ts'
import { isBudget, pendingLines } from './ending.ts'
import { EXIT } from './exit.ts'
import type { Kept } from './kept.ts'
import { WAITS_MS } from './outage.ts'
import { isAttended, typed, warn } from './print.ts'
import { shortId } from './place.ts'
import { ask } from './prompt.ts'
import type { Setup } from './setup.ts'
import type { View } from './view.ts'

export type Deck = {
  readonly harness: Harness
  readonly session: SessionHandle
  readonly setup: Setup
  /** Rules that were kept here since it began, in the order they were. */
  readonly kept: Kept[]
  readonly view: View
  /** May questions be put to whoever sits here? */
  readonly asks: boolean
  readonly by: string
  /** How much of a long argument is shown before it is decided. */
  readonly charsMax?: number | undefined
}

/** Drives until it is over or somebody else is needed. */
export async function drive(deck: Deck, begin: () => RunStream): Promise<Result> {
  const { session, view } = deck
  const ending = new AbortController()
  const off = onSignals(deck, ending)
  try {
    let { result, seq } = await follow(begin(), session.id, view)
    while (isWaiting(result, ending.signal) || (await decided(deck, result, ending.signal))) {
      const rest = session.stream(undefined, { after: seq, deltas: view.live, patienceMs: WAITS_MS })
      const seen = await follow(rest, session.id, view)
      result = seen.result
      seq = Math.max(seq, seen.seq)
    }
    return result
  } finally {
    off()
  }
}

/** `seq` is the last event of the session itself that was seen. */
async function follow(
  stream: RunStream,
  session: string,
  view: View,
): Promise<{ readonly result: Result; readonly seq: number }> {
  let seq = 0
  try {
    for await (const event of stream) {
      if (event.type !== 'delta' && event.session === session) seq = event.seq
      view.see(event)
    }
    return { result: await stream.result, seq }
  } finally {
    view.close()
  }
}

/** The first Ctrl-C stops the run and waits until it has settled; the second leaves at once. The log is whole either way. */
function onSignals({ harness, session, view }: Deck, ending: AbortController): () => void {
  let asked = false
  const interrupt = (): void => {
    if (asked) {
      view.close()
      warn(`Left at once. Go on with: ${typed(`resume ${shortId(session.id)}`)}`)
      process.exit(EXIT.interrupted)
    }
    asked = true
    view.note('Stopping; once more leaves at once.')
    session.interrupt().catch((error: unknown) => view.note(`It could not be stopped: ${String(error)}`))
  }
  // Who is told to end gives the session back as it is: whoever looks next goes on.
  const end = (): void => {
    ending.abort()
    void harness.close()
  }
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', end)
  return () => {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', end)
  }
}

/** It waits for its provider, and somebody waits here for it. How long is the limit of the run. */
function isWaiting(result: Result, ending: AbortSignal): boolean {
  return result.status === 'sleeping' && result.reason !== undefined && !ending.aborted
}

/** True if anything was decided, so that it can go on. */
async function decided(deck: Deck, result: Result, ending: AbortSignal): Promise<boolean> {
  if (ending.aborted || result.status !== 'requires_action') return false
  if (await decideCovered({ ...deck, writes: true }, result)) return true
  if (!deck.asks || !isAttended()) return false
  return (await askHere(deck, result.pending, ending)) && !ending.aborted
}

/** True if there was any that an earlier yes covers. Each is recorded with whose word it was. */
export async function decideCovered(
  { session, setup, kept, writes }: Pick<Deck, 'session' | 'setup' | 'kept'> & { readonly writes: boolean },
  result: Result,
): Promise<boolean> {
  const covered = await coveredBy(setup, kept, writes ? writesOf(result) : null, result)
  for (const { pending, why } of covered) await session.decide({ ...bound(pending), allow: true, by: 'terret', why })
  return covered.length > 0
}

/** Recorded with a yes that counts for one write and no other of the run. */
export const ONLY_THIS = 'only this one'

/** To the very action that was shown. */
function bound({ callId, sessionId, digest }: Pending) {
  return { callId, sessionId, ...(digest === undefined ? {} : { digest }) }
}

type Covered = { readonly pending: Pending; readonly why: string }

/**
 * Writes in the workspace are asked once a run: after somebody allowed one, the others of the same run and session follow, unless
 * they said that it is only this one. So does what somebody always allows since then. What a rule asks about is asked each time,
 * and so is everything of other tools.
 */
async function coveredBy(
  setup: Setup,
  kept: readonly Kept[],
  why: string | null,
  { pending: all, sessionId }: Result,
): Promise<readonly Covered[]> {
  const found = await Promise.all(
    all.map(async (pending): Promise<readonly Covered[]> => {
      const always = await keptFor(kept, pending, setup)
      if (always !== null) return [{ pending, why: `${always.by} always allows this` }]
      return why !== null && (await isCoverable(setup, pending, sessionId)) ? [{ pending, why }] : []
    }),
  )
  return found.flat()
}

/** Whose word allows the writes of this run; null if nobody gave it. */
function writesOf(result: Result): string | null {
  const first = result.calls.find(
    ({ tool, approved }) => WRITERS.has(tool) && approved?.allow === true && approved.why !== ONLY_THIS,
  )
  if (!first?.approved) return null
  const by =
    first.approved.by === 'terret' ? (first.approved.why ?? '').replace(/ allowed writes.*$/, '') : first.approved.by
  return `${by} allowed writes for this run`
}

/** Whether a yes to one write of the run may count for this one. */
export async function isCoverable(
  { policy, settings }: Setup,
  { needs, tool, args, sessionId }: Pending,
  session: string,
): Promise<boolean> {
  if (needs !== 'approval' || !WRITERS.has(tool) || sessionId !== session) return false
  const { judge } = await import('../index.ts')
  const { environment } = settings
  return judge(policy, { tool, args, approval: 'auto', ...(environment ? { environment } : {}) }).type === 'allow'
}

const LINES_SEEN = 20

function pathText({ args }: Pending): string {
  const { path } = (args ?? {}) as { readonly path?: unknown }
  return typeof path === 'string' ? `${oneLine(path, 300)}, ` : ''
}

/** One after the other, each by its exact action. Who leaves, or is told to end, has decided nothing. */
async function askHere(deck: Deck, pending: readonly Pending[], ending: AbortSignal): Promise<boolean> {
  const { session, view, by, charsMax } = deck
  let any = false
  for (const each of pending.filter((one) => !isForOthers(one, by))) {
    const { callId, sessionId, needs } = each
    if (isBudget(each)) {
      view.note(pendingLines(each)[0] ?? '')
      const usd = await ask('How many dollars more? (empty: later): ')
      if (usd === null || usd.trim() === '') return any
      await session.decide({ callId, sessionId, allow: true, usd: Number(usd), by })
      any = true
      continue
    }
    const [head = '', args = ''] = pendingLines(each, charsMax)
    view.note(`${head}\n${args}`)
    // What was said first has left the screen by now.
    if (args.split('\n').length > LINES_SEEN) view.note(head.replace(/:$/, `, ${pathText(each)}as shown above.`))
    if (needs === 'answer') {
      const content = await ask('Your answer (empty: later): ', ending)
      if (content === null || content.trim() === '') return any
      await session.answer({ callId, content, by, sessionId })
    } else {
      const said = await wordOn(deck, each, ending)
      if (said === null) return any
      await session.decide({ ...bound(each), by, ...said })
    }
    any = true
  }
  return any
}

/** Who has voted cannot vote again, and who sits here has said no role: `approve --role` does. */
export function isForOthers({ roles = [], votes = [] }: Pending, by: string): boolean {
  return roles.length > 0 || votes.includes(by)
}

type Said = Pick<Decision, 'allow' | 'why' | 'remember'>

/** Null: later. What is neither a plain yes nor a plain no is asked again. A rule is kept only after it was shown in words. */
async function wordOn({ setup, view, kept, by }: Deck, pending: Pending, ending: AbortSignal): Promise<Said | null> {
  const rule = await rememberable(setup, pending)
  const always = rule ? '[a]lways, ' : ''
  for (;;) {
    const word = wordOf(await ask(`Allow it? [y]es, ${always}[n]o, [l]ater: `, ending))
    if (word.type === 'later') return null
    if (word.type === 'yes') return { allow: true }
    if (word.type === 'no') return { allow: false, ...(word.why === '' ? {} : { why: word.why }) }
    // There are no "all" here, so an "a" can only mean always.
    if (rule === null || (word.type !== 'all' && word.type !== 'always')) {
      view.note(`Say y, ${rule ? 'a, ' : ''}n or l. After n you may say why.`)
      continue
    }
    view.note(await ruleText(setup, rule))
    if (!/^y(es)?$/i.test((await ask('Keep this rule, and allow it? [y/N] ', ending))?.trim() ?? '')) continue
    kept.push(keepAlways(setup, rule, by))
    return { allow: true, remember: rule }
  }
}
