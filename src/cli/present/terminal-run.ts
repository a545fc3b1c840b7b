// Drives one session from a terminal: it shows the session, asks its questions, applies answers for the whole run, and
// stops on signals. The log has everything, so any other process can go on.
import type { Harness, Pending, Result, RunStream, SessionHandle } from '../../index.ts'
import { askApproval, type Asker, decisionTarget, decideCovered, isForOthers } from './ask-approval.ts'
import { pendingHead, isBudget, drawPending } from './result-output.ts'
import { EXIT, isDiskFull, STOPPED_BY_FULL_DISK } from '../exit.ts'
import type { KeptRule } from '../state/kept-rules.ts'
import { askPerson, isAttended, outputStyle, terretCommand, warn } from './print.ts'
import type { FolderSetup } from '../state/folder-setup.ts'
import { ChildrenWait, mayGoOn, pendingBelow } from '../state/children-wait.ts'
import type { CompleteStore } from '../../kernel/index.ts'
import type { ProgressView } from './run-progress.ts'
import { watchPending, withdrawnText } from './watch-pending.ts'

export type TerminalRun = {
  readonly store: CompleteStore
  readonly harness: Harness
  readonly session: SessionHandle
  readonly setup: FolderSetup
  /** The message that begins the run. Absent: the last run goes on. */
  readonly input: string | undefined
  /** Rules saved by "always" since the start, in order. */
  readonly kept: KeptRule[]
  readonly view: ProgressView
  /** True if the person at the terminal may be asked. */
  readonly asks: boolean
  readonly by: string
  /** True if long calls are shown in full. */
  readonly whole: boolean
  /** The number of the last event that was shown before. */
  readonly after: number
}

/** `stopped`: Ctrl-C stopped it. */
export type DriveEnd = { readonly result: Result; readonly stopped: boolean }

/** Drives until the run and the children that work for it are over or need another person. */
export async function driveAtTerminal(deck: TerminalRun): Promise<DriveEnd> {
  const { session, view, input, after } = deck
  const ending = new AbortController()
  const stopping = new AbortController()
  const off = listenToSignals(deck, ending, stopping)
  const children = new ChildrenWait(deck, AbortSignal.any([ending.signal, stopping.signal]))
  try {
    // A message is followed from its own place in the log.
    const begun = input === undefined ? { after } : {}
    let { result, seq } = await followStream(session.stream(input, { ...begun, deltas: view.live }), deck)
    while (
      (await decidePending(deck, result, ending.signal)) ||
      (await children.report(result, seq)) ||
      (await decideBelow(deck, result, ending.signal))
    ) {
      const rest = session.stream(undefined, { after: seq, deltas: view.live })
      const seen = await followStream(rest, { ...deck, after: seq })
      result = seen.result
      seq = seen.seq
    }
    return { result: await children.last(result), stopped: stopping.signal.aborted }
  } finally {
    off()
  }
}

/** Asks the questions of children whose parent does not wait for them. */
async function decideBelow(deck: TerminalRun, result: Result, ending: AbortSignal): Promise<boolean> {
  if (!mayGoOn(result) || !deck.asks || !isAttended() || ending.aborted) return false
  const pending = await pendingBelow(deck.store, deck.session.id)
  return pending.length > 0 && (await askEach(deck, pending, ending)) && !ending.aborted
}

/** `seq` is the last event of the session itself. */
async function followStream(
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
function listenToSignals(
  { harness, session, view, by }: TerminalRun,
  ending: AbortController,
  stopping: AbortController,
): () => void {
  let asked = false
  const interrupt = (): void => {
    if (asked) {
      view.close()
      warn(`Left at once. Go on with: ${terretCommand`resume ${session.id}`}`)
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

/** True if any call was decided, so that the session can go on. */
async function decidePending(deck: TerminalRun, result: Result, ending: AbortSignal): Promise<boolean> {
  if (ending.aborted || result.status !== 'requires_action') return false
  if (await decideCovered(deck, result)) return true
  if (!deck.asks || !isAttended()) return false
  return (await askEach(deck, result.pending, ending)) && !ending.aborted
}

/** Asks one call after the other, each with its exact action. Leaving decides nothing. */
async function askEach(deck: TerminalRun, pending: readonly Pending[], ending: AbortSignal): Promise<boolean> {
  let any = false
  for (const each of pending.filter((one) => !isForOthers(one, deck.by))) {
    const asked = await askWatched(deck, each, ending)
    // Calls that a wider answer covers, or that another process changed, are not asked about any more.
    if (asked === 'covering' || asked === 'withdrawn') return true
    if (asked === 'later') return any
    any = true
  }
  return any
}

type AskResult = 'decided' | 'covering' | 'withdrawn' | 'later'

/** Another process may decide the call meanwhile. Then the question ends, and the run goes on. */
async function askWatched(deck: TerminalRun, pending: Pending, ending: AbortSignal): Promise<AskResult> {
  const { store, view } = deck
  const watch = watchPending(store, pending)
  try {
    const asked = await askCall(deck, pending, AbortSignal.any([ending, watch.signal]))
    if (!watch.signal.aborted) return asked
    view.note(await withdrawnText(store, pending))
    return 'withdrawn'
  } catch (error) {
    // Another decision came at the same moment as the answer: the first one stands.
    if ((error as { readonly code?: unknown }).code !== 'decision_stale') throw error
    view.note(await withdrawnText(store, pending))
    return 'withdrawn'
  } finally {
    watch.stop()
  }
}

async function askCall(deck: TerminalRun, pending: Pending, ending: AbortSignal): Promise<AskResult> {
  const { session, view, by } = deck
  const { callId, sessionId, needs } = pending
  if (isBudget(pending)) {
    view.note(pendingHead(pending))
    const usd = await askPerson('How many dollars more? (empty: later): ', ending)
    if (usd === null || usd.trim() === '') return 'later'
    await session.decide({ callId, sessionId, allow: true, usd: Number(usd), by })
    return 'decided'
  }
  if (needs === 'answer') {
    await showPendingCall(deck, pending, true)
    const content = await askPerson('Your answer (empty: later): ', ending)
    if (content === null || content.trim() === '') return 'later'
    await session.answer({ callId, content, by, sessionId })
    return 'decided'
  }
  const said = await askApproval(terminalAsker(deck, ending), { ...deck, session: session.id }, pending)
  if (said === null) return 'later'
  await session.decide({ ...decisionTarget(pending), by, ...said })
  return said.scope === 'run' ? 'covering' : 'decided'
}

function terminalAsker(deck: TerminalRun, ending: AbortSignal): Asker {
  return {
    read: (question) => askPerson(`${question} `, ending),
    note: (text) => deck.view.note(text),
    show: (pending, whole) => showPendingCall(deck, pending, whole || deck.whole),
    reason: null,
    edit: (text) => editArgs(text, ending),
  }
}

/** Edits in the person's own editor, or as one line. Null: unchanged. */
async function editArgs(text: string, ending: AbortSignal): Promise<string | null> {
  const { editInEditor } = await import('./external-editor.ts')
  const edited = editInEditor(text)
  return edited ?? askPerson('The arguments as JSON, on one line (empty: as they are): ', ending)
}

/** True if a part was not shown. */
async function showPendingCall({ view, setup }: TerminalRun, pending: Pending, whole: boolean): Promise<boolean> {
  const way = `d shows all of it; so does: ${terretCommand`pending ${pending.sessionId} --whole`}`
  const { lines, isCut } = await drawPending(pending, {
    folder: setup.folder,
    way,
    ...outputStyle(process.stderr, whole),
  })
  view.note(lines.join('\n'))
  return isCut
}
