// Driving one session from a terminal: follow it, answer what was answered for the whole run, ask who is there, and stop in
// order when told to. Whatever happens here, the log has it, and any other process can go on.
import type { Harness, Pending, Policy, Result, RunStream, SessionHandle } from '../index.ts'
import { WRITERS } from './agent.ts'
import { oneLine } from './clean.ts'
import { pendingLines } from './ending.ts'
import { EXIT } from './exit.ts'
import { isAttended, typed, warn } from './print.ts'
import { shortId } from './place.ts'
import { ask } from './prompt.ts'
import type { View } from './view.ts'

export type Deck = {
  readonly harness: Harness
  readonly session: SessionHandle
  readonly policy: Policy
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
  const off = onSignals(deck)
  try {
    let { result, seq } = await follow(begin(), session.id, view)
    while (result.status === 'requires_action' && (await decided(deck, result))) {
      const seen = await follow(session.stream(undefined, { after: seq, deltas: view.live }), session.id, view)
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
function onSignals({ harness, session, view }: Deck): () => void {
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
  const end = (): void => void harness.close()
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', end)
  return () => {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', end)
  }
}

/** True if anything was decided, so that it can go on. */
async function decided(deck: Deck, result: Result): Promise<boolean> {
  if (await decideCovered(deck, result)) return true
  if (!deck.asks || !isAttended()) return false
  return askHere(deck, result.pending)
}

/** True if there was any that an earlier yes covers. Each is recorded with whose word it was. */
export async function decideCovered(
  { session, policy }: { readonly session: SessionHandle; readonly policy: Policy },
  result: Result,
): Promise<boolean> {
  const covered = await coveredBy(policy, result)
  for (const { pending, by } of covered) {
    const why = `${by} allowed writes for this run`
    const { callId, digest } = pending
    await session.decide({ callId, allow: true, by: 'terret', why, ...(digest === undefined ? {} : { digest }) })
  }
  return covered.length > 0
}

type Covered = { readonly pending: Pending; readonly by: string }

/**
 * Writes in the workspace are asked once a run: after somebody allowed one, the others of the same run and session follow. What a
 * rule asks about is asked each time, and so is everything of other tools.
 */
export async function coveredBy(policy: Policy, result: Result): Promise<readonly Covered[]> {
  const first = result.calls.find(({ tool, approved }) => WRITERS.has(tool) && approved?.allow === true)
  if (!first?.approved) return []
  const by =
    first.approved.by === 'terret' ? (first.approved.why ?? '').replace(/ allowed writes.*$/, '') : first.approved.by
  const found = await Promise.all(
    result.pending.map(async (pending) =>
      (await isCoverable(policy, pending, result.sessionId)) ? [{ pending, by }] : [],
    ),
  )
  return found.flat()
}

/** Whether a yes to one write of the run may count for this one. */
export async function isCoverable(policy: Policy, pending: Pending, session: string): Promise<boolean> {
  const { needs, tool, args, sessionId } = pending
  if (needs !== 'approval' || !WRITERS.has(tool) || sessionId !== session) return false
  const { judge } = await import('../index.ts')
  return judge(policy, { tool, args, approval: 'auto' }).type === 'allow'
}

const LINES_SEEN = 20

function pathText({ args }: Pending): string {
  const { path } = (args ?? {}) as { readonly path?: unknown }
  return typeof path === 'string' ? `${oneLine(path, 300)}, ` : ''
}

/** One after the other, each by its exact action. Only a plain yes is one; who leaves has decided nothing. */
async function askHere({ session, view, by, charsMax }: Deck, pending: readonly Pending[]): Promise<boolean> {
  let any = false
  for (const each of pending) {
    const { callId, sessionId, digest, needs } = each
    const [head = '', args = ''] = pendingLines(each, charsMax)
    view.note(`${head}\n${args}`)
    // What was said first has left the screen by now.
    if (args.split('\n').length > LINES_SEEN) view.note(head.replace(/:$/, `, ${pathText(each)}as shown above.`))
    if (needs === 'answer') {
      const content = await ask('Your answer (empty: later): ')
      if (content === null || content.trim() === '') return any
      await session.answer({ callId, content, by, sessionId })
    } else {
      const said = (await ask('Allow it? [y]es, [n]o, [l]ater: '))?.trim().toLowerCase() ?? ''
      if (said === '' || said.startsWith('l')) return any
      const seen = digest === undefined ? {} : { digest }
      await session.decide({ callId, allow: said === 'y' || said === 'yes', by, sessionId, ...seen })
    }
    any = true
  }
  return any
}
