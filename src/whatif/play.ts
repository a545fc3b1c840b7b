// Plays a what-if: fills its scratch store, lets an ordinary harness drive it, and says in between what people said in
// the recording. The harness alone decides what happens.
import type { Event, InboxBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { CompleteStore } from '../ports/store.ts'
import type { HarnessOptions } from '../harness.ts'
import { readSessionHead } from '../runtime/state/session-tree.ts'
import { childStatus } from '../runtime/state/children-below.ts'
import type { Result } from '../runtime/state/run-result.ts'
import { pendingInTree } from '../sessions/look/pending.ts'
import { originsOf } from '../stores/move/portable-tree.ts'
import { toOutput } from '../tools/core/tool-output.ts'
import { compareLogs } from '../view/compare-logs.ts'
import type { Pending } from '../view/pending-calls.ts'
import { readLog } from '../view/session-log.ts'
import { textOf } from '../view/shown-text.ts'
import { usdOf } from '../view/usd.ts'
import { cutTree, type TreeCut } from './cut-tree.ts'
import { endOfRun, RecordedPeople } from './recorded-people.ts'
import { RecordedReplies } from './recorded-replies.ts'
import { RecordedResults } from './recorded-results.ts'
import { readRecordedTree, type RecordedTree, type WhatIfLog } from './recorded-tree.ts'
import {
  fillScratch,
  momentOfCut,
  openScratch,
  reviewSetups,
  type Scratch,
  ScratchClock,
  type ScratchParts,
  scratchStore,
  spentIn,
  treeUsdAt,
} from './scratch.ts'
import { checkEffect, Playback, type ToolMode, type ToolStub } from './stand-ins.ts'
import type { ParkedCall, WhatIf, WhatIfCase, WhatIfOptions } from './what-if.ts'

type Modes = ReadonlyMap<string, ToolMode | ToolStub>

/** One what-if while it is played. */
type Play = {
  readonly options: WhatIfOptions
  readonly tree: RecordedTree
  readonly cut: TreeCut
  readonly end: number
  readonly clock: ScratchClock
  readonly store: CompleteStore
  readonly modes: Modes
  readonly people: RecordedPeople
  readonly results: RecordedResults
  readonly playback: Playback
  readonly scratch: Scratch
}

export async function playWhatIf(log: WhatIfLog, options: WhatIfOptions): Promise<WhatIf> {
  const tree = await readRecordedTree(log, options.at)
  const cut = cutTree(tree.logs, tree.root, options.at)
  const modes: Modes = new Map(Object.entries(options.tools ?? {}))
  const clock = new ScratchClock(momentOfCut(tree, cut))
  const reviews = await findReviews({ options, tree, cut, clock, modes })
  const changed = new Set([...reviews.values()].map(({ agent }) => agent))
  const play = openPlay({ options, tree, cut, clock, modes }, changed)
  try {
    await fillScratch(play.store, tree, cut, reviews)
    const result = await drive(play)
    return await describePlay(play, result, reviews.get(tree.root)?.changed ?? [])
  } finally {
    await play.scratch.harness.close()
  }
}

type Beginning = Pick<Play, 'options' | 'tree' | 'cut' | 'clock' | 'modes'>

/** Another harness looks what runs would freeze now, and drives nothing. */
async function findReviews(beginning: Beginning) {
  const { store, scratch } = openPlay(beginning)
  try {
    checkTools(beginning, scratch)
    await fillScratch(store, beginning.tree, beginning.cut)
    return await reviewSetups(scratch, beginning.tree, beginning.cut)
  } finally {
    await scratch.harness.close()
  }
}

function openPlay({ options, tree, cut, clock, modes }: Beginning, changed: ReadonlySet<string> = new Set()): Play {
  const { root, events } = tree
  const from = cut.get(root) ?? 0
  const end = options.runs === 'all' ? events.length : endOfRun(events, from)
  const store = scratchStore(clock)
  const people = new RecordedPeople(tree, cut, end)
  const results = new RecordedResults(tree, cut)
  const replies = new RecordedReplies(tree, cut)
  let stopped = false
  const stop = (): void => {
    if (!stopped)
      scratch.harness
        .session(root, { stored: true })
        .interrupt()
        .catch(() => {})
    stopped = true
  }
  const playback = new Playback({
    tree,
    results,
    replies,
    people,
    store,
    modes,
    effects: options.effects ?? false,
    stop: options.strict ? stop : null,
    agentOf: async (session) => (await store.card(session))?.agent ?? '',
  })
  const parts = { ...scratchParts({ options, tree, cut, clock, modes }), changed }
  const scratch = openScratch(parts, store, playback)
  return { options, tree, cut, end, clock, store, modes, people, results, playback, scratch }
}

function scratchParts({ options, tree, cut, clock, modes }: Beginning): Omit<ScratchParts, 'changed'> {
  const { agent, effects = false, usd } = options
  const { model = { name: recordedModelName(tree), call: () => Promise.reject(new Error('never asked')) } } = agent
  const named = [...modes].flatMap(([name, mode]) => (mode === 'recorded' ? [] : [name]))
  const { treeUsd = Number.POSITIVE_INFINITY } = agent.budget ?? {}
  const most = usd === undefined ? null : Math.min(treeUsd, treeUsdAt(tree, cut) + usd)
  const budget = most === null ? {} : { budget: { ...agent.budget, treeUsd: most } }
  const own: HarnessOptions = { ...agent, model, ...budget }
  return {
    tree,
    clock,
    effects,
    named,
    options: own,
    isRecorded: agent.model === undefined,
    runsTools: named.length > 0,
  }
}

function recordedModelName({ events }: RecordedTree): string {
  const started = events.findLast((event) => event.type === 'run.started' && event.model !== undefined)
  return (started?.type === 'run.started' ? started.model : undefined) ?? 'recorded'
}

/** A mode must be for a tool that some agent has, and only reads go live unless the caller says otherwise. */
function checkTools({ options, modes }: Beginning, { agents }: Scratch): void {
  for (const [name, mode] of modes) {
    const having = [...agents.values()].filter(({ tools }) => tools.mayHave(name))
    if (having.length === 0) {
      const known = new Set([...agents.values()].flatMap(({ tools }) => [...(tools.seen?.keys() ?? [])]))
      const has = known.size === 0 ? 'has no tools' : `has: ${[...known].sort().join(', ')}`
      throw new Fault('invalid_input', `There is no tool "${name}": the agent ${has}. Correct the name in \`tools\`.`)
    }
    for (const { tools } of having) {
      const tool = tools.knownTool(name)
      if (tool?.child || tool?.orders)
        throw new Fault(
          'invalid_input',
          `The tool "${name}" starts children, and they live again as sessions. Leave it out of \`tools\`.`,
        )
      if (tool && !tool.outside && (mode === 'live' || mode === 'recorded_or_live'))
        checkEffect(name, tool.effect, options.effects ?? false)
    }
  }
}

/** Drives until nothing is left that the recording, or a function of the caller, has an answer to. */
async function drive(play: Play): Promise<Result | null> {
  const { options, tree, people, scratch, playback } = play
  const session = scratch.harness.session(tree.root, { stored: true })
  if (options.message !== undefined) {
    people.forgetMessages()
    await session.send(options.message)
  }
  const stop = (): void => void session.interrupt().catch(() => {})
  options.signal?.addEventListener('abort', stop, { once: true })
  let result: Result | null = null
  for (;;) {
    if (await hasWork(play)) result = await session.run()
    if (options.signal?.aborted || (options.strict && playback.missing.length > 0)) return result
    if (await answerPending(play)) continue
    if (!(await beginNextRun(play))) return result ?? (await session.result())
  }
}

/** A session that rests, and never had a run, has no result to wait for. */
async function hasWork({ store, tree }: Play): Promise<boolean> {
  const { run, inputs, last } = await readSessionHead(store, tree.root)
  return run !== null || inputs.length > 0 || last !== null
}

/** Answers what waits for people as the recording did. Returns whether it answered anything. */
async function answerPending(play: Play): Promise<boolean> {
  const { store, tree, people } = play
  const bodies: { readonly session: string; readonly body: InboxBody }[] = []
  for (const pending of await pendingInTree(store, tree.root)) {
    const body = pending.needs === 'approval' ? people.takeDecision(pending) : await answerOf(play, pending)
    if (body) bodies.push({ session: pending.sessionId, body })
  }
  const head = await readSessionHead(store, tree.root)
  const resume = head.paused && bodies.length === 0 ? people.takeResume() : null
  if (resume) bodies.push({ session: tree.root, body: resume })
  for (const { session, body } of bodies) await store.commit([{ session, lane: 'inbox', events: [body] }])
  return bodies.length > 0
}

/** The answer to a call that a host or a person answers. */
async function answerOf(
  play: Play,
  { sessionId: session, callId: call, tool, args }: Pending,
): Promise<InboxBody | null> {
  const mode = play.modes.get(tool) ?? 'recorded'
  const said = { type: 'user.custom_tool_result', id: `what-if:${call}`, call } as const
  if (mode === 'live') return null
  if (typeof mode === 'function') {
    const { ok, content } = await runStub(mode, args)
    return { ...said, ok, content }
  }
  const recorded = (await play.playback.takeResult(session, call, tool, args))?.answer
  if (recorded) {
    const { seq: _seq, at: _at, wall: _wall, epoch: _epoch, ...body } = recorded
    return body.call === call ? body : { ...body, id: said.id, call }
  }
  if (mode === 'recorded_or_live') return null
  play.playback.note({ session, call, tool, args })
  return { ...said, ok: false, content: NO_ANSWER }
}

const NO_ANSWER = 'The recording has no answer to this call.'

async function runStub(stub: ToolStub, args: unknown): Promise<{ readonly ok: boolean; readonly content: string }> {
  try {
    // Nothing runs here for which there could be a context.
    return toOutput(await stub(args as never, undefined as never))
  } catch (error) {
    return { ok: false, content: error instanceof Error ? `${error.name}: ${error.message}` : String(error) }
  }
}

/** Lets children end that work on by themselves: their reports begin runs too. Returns whether one came. */
async function awaitReports({ store, tree, scratch }: Play): Promise<boolean> {
  const cards = await store.list({ root: tree.root, limit: Number.MAX_SAFE_INTEGER })
  const working = cards.filter((card) => card.session !== tree.root && childStatus(card) === 'running')
  await Promise.all(working.map(({ session }) => scratch.harness.work({ session })))
  const { run, inputs } = await readSessionHead(store, tree.root)
  return working.length > 0 && (run !== null || inputs.length > 0)
}

/** Sends what opened the next run of the recording, or lets the time of its wake come. */
async function beginNextRun(play: Play): Promise<boolean> {
  const { options, tree, store, people, clock, cut, end } = play
  const head = await readSessionHead(store, tree.root)
  if (head.run || head.closed || head.inputs.length > 0) return false
  const isFirst = head.began <= (cut.get(tree.root) ?? 0)
  if (!isFirst && options.runs !== 'all') return false
  if (await awaitReports(play)) return true
  const bodies = people.takeNextRun()
  for (const body of bodies) await store.commit([{ session: tree.root, lane: 'inbox', events: [body] }])
  if (bodies.length > 0) return true
  const due = Math.min(...head.wakes.map((wake) => wake.due))
  const wakes = tree.events.some((event) => {
    return event.type === 'run.started' && event.seq > head.began && event.seq <= end && event.wakes.length > 0
  })
  if (!wakes || !Number.isFinite(due) || options.message !== undefined) return false
  clock.advanceTo(due)
  return true
}

async function describePlay(play: Play, result: Result | null, changed: WhatIf['changed']): Promise<WhatIf> {
  const { tree, cut, end, store, playback, options } = play
  const { root } = tree
  const events = await readLog(store, root)
  const from = cut.get(root) ?? 0
  const compared = (own: readonly Event[]) => [
    ...[...originsOf(tree, { session: root, events: own })].reverse(),
    { session: root, events: own },
  ]
  const { last, run } = await readSessionHead(store, root)
  return {
    store,
    session: root,
    from,
    end: Math.max(end, from),
    changed,
    diff: compareLogs(compared(tree.events.slice(0, Math.max(end, from))), compared(events)),
    drift: playback.missing.length,
    missing: [...playback.missing],
    cost: await costOf(play),
    settled: run === null ? last : null,
    text: result?.text ?? '',
    parked: await parkedCalls(play),
    toCase: (id) => caseOf(id, events, { root, text: result?.text ?? '', options }),
  }
}

/** What all sessions spent after the cut, without what repeated replies had cost. */
async function costOf({ store, tree, cut, playback }: Play): Promise<number> {
  let spent = 0
  for (const { session } of await store.list({ root: tree.root, limit: Number.MAX_SAFE_INTEGER }))
    spent += spentIn((await readLog(store, session)).slice(cut.get(session) ?? 0))
  return usdOf(Math.max(0, spent - playback.repeatedCost))
}

async function parkedCalls({ store, tree, people }: Play): Promise<readonly ParkedCall[]> {
  return (await pendingInTree(store, tree.root)).map(({ sessionId, callId, tool, args, needs }) => {
    const other = people.hasDecisionAbout(tool, tree)
    const none = needs === 'answer' ? 'Only people answer it.' : 'The recording has no decision about it.'
    const why = other ? otherCallText(tool) : none
    return { session: sessionId, call: callId, tool, args, why }
  })
}

function otherCallText(tool: string): string {
  return `What the recording decided about "${tool}" was about other arguments or another place, and does not count.`
}

type CaseParts = { readonly root: string; readonly text: string; readonly options: WhatIfOptions }

function caseOf(id: string, events: readonly Event[], { root, text }: CaseParts): WhatIfCase {
  if (!/^[A-Za-z0-9_-]{1,60}$/.test(id))
    throw new Fault('invalid_input', 'The id of a case is 1 to 60 letters, digits, "_" or "-".')
  const said = events.flatMap((event) =>
    event.type === 'user.message' && !event.by?.startsWith('session:') ? [textOf(event.parts)] : [],
  )
  const [first = ''] = said
  return { id, input: said.length > 1 ? said : first, ...(text === '' ? {} : { expected: text }), recording: root }
}
