// Drives one session from a terminal: shows it, asks its questions, applies answers given for the whole run, and stops on signals. The
// log has everything, so any other process can go on.
import type { Harness, Pending, Result, RunStream, SessionHandle } from '../../index.ts'
import { askApproval, type Asker, bound, decideCovered, isForOthers } from './approval.ts'
import { headLine, isBudget, shownPending } from './ending.ts'
import { EXIT, isDiskFull, STOPPED_BY_FULL_DISK } from '../exit.ts'
import type { Kept } from '../state/kept.ts'
import { ask, isAttended, seatOf, typed, warn } from './print.ts'
import type { Setup } from '../state/setup.ts'
import { ChildrenWait, goesOn, waitingBelow } from '../state/children.ts'
import type { Store } from '../../kernel/index.ts'
import type { Progress } from './progress.ts'
import { watchPending, withdrawnText } from './withdrawn.ts'

export type TerminalRun = {
  readonly store: Store
  readonly harness: Harness
  readonly session: SessionHandle
  readonly setup: Setup
  /** Rules saved by "always" since it began, in order. */
  readonly kept: Kept[]
  readonly view: Progress
  /** Whether the person at the terminal may be asked. */
  readonly asks: boolean
  readonly by: string
  /** Whether long calls are shown in full. */
  readonly whole: boolean
  /** The last event that was shown before. */
  readonly after: number
}

/** `stopped`: by Ctrl-C. */
type Driven = { readonly result: Result; readonly stopped: boolean }

/** Drives until the run is over or needs another person, and so are the children that work for it. */
export async function drive(deck: TerminalRun, begin: () => RunStream): Promise<Driven> {
  const { session, view } = deck
  const ending = new AbortController()
  const stopping = new AbortController()
  const off = onSignals(deck, ending, stopping)
  const children = new ChildrenWait(deck, AbortSignal.any([ending.signal, stopping.signal]))
  try {
    let { result, seq } = await follow(begin(), deck)
    while (
      (await decided(deck, result, ending.signal)) ||
      (await children.report(result, seq)) ||
      (await decidedBelow(deck, result, ending.signal))
    ) {
      const rest = session.stream(undefined, { after: seq, deltas: view.live })
      const seen = await follow(rest, { ...deck, after: seq })
      result = seen.result
      seq = seen.seq
    }
    return { result: await children.last(result), stopped: stopping.signal.aborted }
  } finally {
    off()
  }
}

/** What children ask whose parent does not wait for them. */
async function decidedBelow(deck: TerminalRun, result: Result, ending: AbortSignal): Promise<boolean> {
  if (!goesOn(result) || !deck.asks || !isAttended() || ending.aborted) return false
  const pending = await waitingBelow(deck.store, deck.session.id)
  return pending.length > 0 && (await askHere(deck, pending, ending)) && !ending.aborted
}

/** `seq` is the last event of the session itself. */
async function follow(
  stream: RunStream,
  { session, view, after }: Pick<TerminalRun, 'session' | 'view' | 'after'>,
): Promise<{ readonly result: Result; readonly seq: number }> {
  let seq = after
  try {
    for await (const event of stream) {
      if (event.type !== 'delta' && event.session === session.id) seq = event.seq
      view.see(event)
    }
    return { result: await stream.result, seq }
  } finally {
    view.close()
  }
}

/** The first Ctrl-C stops the run and waits until it has settled; the second leaves at once. The log is complete either way. */
function onSignals(
  { harness, session, view, by }: TerminalRun,
  ending: AbortController,
  stopping: AbortController,
): () => void {
  let asked = false
  const interrupt = (): void => {
    if (asked) {
      view.close()
      warn(`Left at once. Go on with: ${typed`resume ${session.id}`}`)
      process.exit(EXIT.interrupted)
    }
    asked = true
    stopping.abort()
    view.note('Stopping; once more leaves at once.')
    session.interrupt('stop', { by }).catch((error: unknown) => {
      if (!isDiskFull(error)) return view.note(`It could not be stopped: ${String(error)}`)
      view.note(STOPPED_BY_FULL_DISK)
      end()
    })
  }
  // SIGTERM releases the session as it is; the next process goes on.
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

/** True if anything was decided, so that it can go on. */
async function decided(deck: TerminalRun, result: Result, ending: AbortSignal): Promise<boolean> {
  if (ending.aborted || result.status !== 'requires_action') return false
  if (await decideCovered(deck, result)) return true
  if (!deck.asks || !isAttended()) return false
  return (await askHere(deck, result.pending, ending)) && !ending.aborted
}

/** One after the other, each with its exact action. Leaving decides nothing. */
async function askHere(deck: TerminalRun, pending: readonly Pending[], ending: AbortSignal): Promise<boolean> {
  let any = false
  for (const each of pending.filter((one) => !isForOthers(one, deck.by))) {
    const asked = await askWatched(deck, each, ending)
    // Calls that a wider answer covers are not asked about any more, nor is what another process changed.
    if (asked === 'covering' || asked === 'withdrawn') return true
    if (asked === 'later') return any
    any = true
  }
  return any
}

type Asked = 'decided' | 'covering' | 'withdrawn' | 'later'

/** Another process may decide the call meanwhile: then the question ends, and the run goes on. */
async function askWatched(deck: TerminalRun, pending: Pending, ending: AbortSignal): Promise<Asked> {
  const { store, view } = deck
  const watch = watchPending(store, pending)
  try {
    const asked = await askOne(deck, pending, AbortSignal.any([ending, watch.signal]))
    if (!watch.signal.aborted) return asked
    view.note(await withdrawnText(store, pending))
    return 'withdrawn'
  } catch (error) {
    // It was decided in the moment of the answer: the first decision stands.
    if ((error as { readonly code?: unknown }).code !== 'decision_stale') throw error
    view.note(await withdrawnText(store, pending))
    return 'withdrawn'
  } finally {
    watch.stop()
  }
}

async function askOne(deck: TerminalRun, pending: Pending, ending: AbortSignal): Promise<Asked> {
  const { session, view, by } = deck
  const { callId, sessionId, needs } = pending
  if (isBudget(pending)) {
    view.note(headLine(pending))
    const usd = await ask('How many dollars more? (empty: later): ', ending)
    if (usd === null || usd.trim() === '') return 'later'
    await session.decide({ callId, sessionId, allow: true, usd: Number(usd), by })
    return 'decided'
  }
  if (needs === 'answer') {
    await shownHere(deck, pending, true)
    const content = await ask('Your answer (empty: later): ', ending)
    if (content === null || content.trim() === '') return 'later'
    await session.answer({ callId, content, by, sessionId })
    return 'decided'
  }
  const said = await askApproval(askerOf(deck, ending), { ...deck, session: session.id }, pending)
  if (said === null) return 'later'
  await session.decide({ ...bound(pending), by, ...said })
  return said.scope === 'run' ? 'covering' : 'decided'
}

function askerOf(deck: TerminalRun, ending: AbortSignal): Asker {
  return {
    read: (question) => ask(`${question} `, ending),
    note: (text) => deck.view.note(text),
    show: (pending, whole) => shownHere(deck, pending, whole || deck.whole),
    reason: null,
    edit: (text) => editHere(text, ending),
  }
}

/** In the editor that the person has chosen, or as one line. Null: as it is. */
async function editHere(text: string, ending: AbortSignal): Promise<string | null> {
  const { editText } = await import('./editor.ts')
  const edited = editText(text)
  return edited ?? ask('The arguments as JSON, on one line (empty: as they are): ', ending)
}

/** True if not all of it was shown. */
async function shownHere({ view, setup }: TerminalRun, pending: Pending, whole: boolean): Promise<boolean> {
  const way = `d shows all of it; so does: ${typed`pending ${pending.sessionId} --whole`}`
  const { lines, isCut } = await shownPending(pending, { folder: setup.folder, way, ...seatOf(process.stderr, whole) })
  view.note(lines.join('\n'))
  return isCut
}
