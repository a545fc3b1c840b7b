// The ledger of calls: how one proposed action moves from proposal to result. Pure transitions, no decisions.
import type { CallKey, Frozen, Gate, Json, Mutable, Outside, Proposal, Terms, Verdict } from './content.ts'
import { clockOf } from './clock.ts'
import { callKey, type Edit, type InboxEvent, type OwnerBody, type OwnerEvent } from './event.ts'
import { assert, Bug } from './failure.ts'

export type CallState = Frozen<
  | { type: 'ready' }
  /** `since` is the seq of the review that asked; without one it was asked with the reply. */
  | { type: 'asked'; votes: readonly string[]; since?: number }
  | { type: 'denied'; by: string; why: string }
  /** A person allowed it with other arguments, in the confirmation at `seq`. The owner must admit these first. */
  | ({ type: 'edited'; seq: number; by: string; role: string } & Edit)
  /** The intent is on disk. `tries` counts the attempts that were lost with their worker. */
  | { type: 'running'; epoch: number; tries: number }
  | { type: 'outside' }
  | { type: 'answered'; seq: number; ok: boolean }
>

/** `edited`: a person changed its arguments. The proposal has those that run; `args` are those that the model gave. */
export type Call = Frozen<{ key: CallKey; index: number; proposal: Proposal; state: CallState; edited?: Edited }>
export type Edited = Frozen<{ by: string; args: Json }>

/** One reply being acted on. `results[i]` is the seq of call i's result, 0 while it has none. */
export type Turn = Frozen<{
  seq: number
  verdict: Verdict
  open: readonly Call[]
  results: readonly number[]
  /** The batch would exceed the limit of tool calls: none of it runs. */
  over: boolean
  /** Tools that this reply has used a retry of: one each, however many of its calls failed. */
  retried?: readonly string[]
}>

/** What people said in this run that matters for later calls: yeses that cover more than one call, and what they denied. */
export type Said = Frozen<{ yes: readonly WideYes[]; denied: readonly string[] }>
/** `rule` says what it covers, in the `place` of its call. It is read outside; here it stands until a person denies any call. */
export type WideYes = Frozen<{ call: CallKey; by: string; rule: Json; place: string }>

type Of<T extends InboxEvent['type']> = Extract<InboxEvent, { type: T }>

export type OpenTurn = Omit<Mutable<Turn>, 'open' | 'results'> & { open: Call[]; results: number[] }

export function openTurn(e: Extract<OwnerEvent, { type: 'agent.message' }>, over: boolean): OpenTurn {
  // Loops and not `map`: optimised code gives mapped arrays another shape, and everything compiled for the first is lost.
  const open: Call[] = []
  const results: number[] = []
  for (const proposal of e.calls) {
    const state: CallState = proposal.gate?.type === 'ask' ? { type: 'asked', votes: [] } : READY
    open.push({ key: callKey(e.seq, open.length), index: open.length, proposal, state })
    results.push(0)
  }
  return { seq: e.seq, verdict: e.verdict, open, results, over }
}

export function copyTurn(turn: Turn): OpenTurn {
  return { ...turn, open: turn.open.slice(), results: turn.results.slice() }
}

/** Only an open question is decided, for the exact action shown, in time, once. A no ends every yes of the run that covers more calls. */
export function decide(turn: OpenTurn, e: Of<'user.tool_confirmation'>, run: { said?: Said }): void {
  const i = turn.open.findIndex((c) => c.key === e.call)
  const call = turn.open[i]
  if (call?.state.type !== 'asked' || call.proposal.gate?.type !== 'ask') return
  const { gate, digest } = call.proposal
  if (digest !== e.digest) return
  if (gate.expiresAt !== null && clockOf(e) > gate.expiresAt) return
  if (!hasRole(gate, e.role)) return
  const said = run.said ?? UNSAID
  if (!e.allow) {
    run.said = { yes: [], denied: [...said.denied, likeness(call.proposal)] }
    return move(turn, i, { type: 'denied', by: e.by, why: e.why ?? '' })
  }
  if (e.under !== undefined && !coverersOf(call, said).some((yes) => yes.call === e.under)) return
  if (e.edit ? e.under !== undefined : call.state.votes.includes(e.by)) return
  const votes = [...call.state.votes, e.by]
  if (e.scope === 'run' && isCoverable(call, UNSAID))
    run.said = {
      ...said,
      yes: [...said.yes, { call: call.key, by: e.by, rule: e.remember ?? null, place: call.proposal.place ?? '' }],
    }
  if (e.edit) return move(turn, i, { type: 'edited', seq: e.seq, by: e.by, role: e.role ?? '', ...e.edit })
  move(turn, i, votes.length >= gate.n ? READY : { ...call.state, votes })
}

function hasRole({ roles }: Extract<Gate, { type: 'ask' }>, role = ''): boolean {
  return roles.length === 0 || roles.includes(role)
}

export const UNSAID: Said = { yes: [], denied: [] }

/** The wider yeses that could count for this call: those given for the place where it would act. */
export function coverersOf(call: Call, said: Said): readonly WideYes[] {
  return isCoverable(call, said) ? said.yes.filter(({ place }) => place === (call.proposal.place ?? '')) : []
}

/** May a yes that was given with another call count for this one? Never if the same call was denied in this run. */
function isCoverable({ proposal }: Call, { denied }: Pick<Said, 'denied'>): boolean {
  const { gate } = proposal
  if (gate?.type !== 'ask' || gate.each || gate.n > 1 || gate.roles.length > 0) return false
  return !denied.includes(likeness(proposal))
}

/** Older logs do not say which calls do the same: there only equal ones do. */
function likeness({ same, digest = '' }: Proposal): string {
  return same ?? digest
}

/** A late or second answer is evidence in the log and changes nothing, but for a no that a child heard: that ends wider yeses here too. */
export function answer(turn: OpenTurn | null, e: Of<'user.custom_tool_result'>, run: { said?: Said }): void {
  if (e.denied) run.said = { yes: [], denied: [...(run.said ?? UNSAID).denied, e.call] }
  if (!turn) return
  const i = turn.open.findIndex((c) => c.key === e.call)
  const call = turn.open[i]
  if (call?.state.type === 'outside') move(turn, i, { type: 'answered', seq: e.seq, ok: e.ok })
}

/** Whether it was started before, by an attempt that was lost. */
export function start(turn: OpenTurn, key: CallKey, epoch: number): boolean {
  const i = find(turn, key)
  const { state, proposal } = turn.open[i] as Call
  const again = state.type === 'running' && state.epoch < epoch && proposal.effect !== 'once'
  if (state.type !== 'ready' && !again) assert(false, `call ${key} (${proposal.effect}) was started from ${state.type}`)
  move(turn, i, { type: 'running', epoch, tries: state.type === 'running' ? state.tries + 1 : 0 })
  return again
}

/**
 * Whatever was said about it, and whether or not it had begun: its terms are these now. A decision that edited it counts for the
 * edited call alone, if that is what was reviewed and the person may decide it. What others allowed before was another call.
 */
export function review(turn: OpenTurn, e: Extract<OwnerEvent, { type: 'call.reviewed' }>): void {
  const { type: _type, seq, at: _at, wall: _wall, epoch: _epoch, call, edit: confirmed, ...terms } = e
  const i = find(turn, call)
  const { key, index, proposal, state: before, edited: earlier } = turn.open[i] as Call
  const { id, tool, args, raw } = proposal
  if (!REVIEWED.has(before.type)) assert(false, `call ${key} was reviewed when ${before.type}`)
  const edit = before.type === 'edited' && before.seq === confirmed && before
  const said = { id, tool, args: edit ? edit.args : args, ...(!edit && raw !== undefined && { raw }) }
  const edited = edit ? { by: edit.by, args: earlier?.args ?? args } : earlier
  const state = reviewedState(terms, edit, seq)
  turn.open[i] = { key, index, proposal: { ...said, ...terms }, state, ...(edited && { edited }) }
}

const REVIEWED: ReadonlySet<string> = new Set<CallState['type']>(['ready', 'asked', 'running', 'edited'])
type EditedState = Extract<CallState, { type: 'edited' }>

function reviewedState(terms: Asked, edit: EditedState | false, seq: number): CallState {
  if (terms.gate?.type !== 'ask') return READY
  const votes = edit && isCounted(terms, edit) ? [edit.by] : []
  return votes.length >= terms.gate.n ? READY : { type: 'asked', votes, since: seq }
}

type Asked = Pick<Terms, 'gate' | 'digest'>

/** Does the decision of the person who edited the call count for it on these terms? */
function isCounted({ gate, digest }: Asked, edit: Pick<EditedState, 'digest'> & { readonly role?: string }): boolean {
  return edit.digest === digest && (gate?.type !== 'ask' || hasRole(gate, edit.role))
}

/** After its edit was admitted on these terms: is somebody else still asked about it? */
export function isAskedAfterEdit(terms: Asked, confirmed: Of<'user.tool_confirmation'>): boolean {
  const { edit, role = '' } = confirmed
  return terms.gate?.type === 'ask' && (terms.gate.n > 1 || !edit || !isCounted(terms, { digest: edit.digest, role }))
}

export function hand(turn: OpenTurn, key: CallKey): void {
  const i = find(turn, key)
  assert(turn.open[i]?.state.type === 'ready', 'a call was handed out that was not ready')
  move(turn, i, { type: 'outside' })
}

/** What answers a call that does not run here: a person, a child, a program. */
export function outsideOf({ gate }: Pick<Proposal, 'gate'>): Outside | undefined {
  return gate?.type === 'ask' ? gate.outside : gate?.type === 'outside' ? gate : undefined
}

export function intentOf({ key, proposal }: Call): OwnerBody {
  return { type: outsideOf(proposal) ? 'agent.custom_tool_use' : 'agent.tool_use', call: key }
}

export function settle(turn: OpenTurn, key: CallKey, seq: number): Call {
  const i = find(turn, key)
  const call = turn.open[i] as Call
  turn.open.splice(i, 1)
  turn.results[call.index] = seq
  return call
}

const READY: CallState = { type: 'ready' }

/** By its number, and first where it stood: in a wide turn, comparing keys would cost more than all else. */
function find(turn: OpenTurn, key: CallKey): number {
  const index = Number(key.slice(key.indexOf('.') + 1))
  let i = turn.open[index]?.index === index ? index : 0
  while (i < turn.open.length && turn.open[i]?.index !== index) i += 1
  if (turn.open[i]?.key !== key) throw new Bug(`call ${key} is not open`)
  return i
}

function move(turn: OpenTurn, i: number, state: CallState): void {
  turn.open[i] = { ...(turn.open[i] as Call), state }
}
