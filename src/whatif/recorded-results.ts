// The results that the recording has for calls: by tool and canonical arguments, each used once and in their order. It
// runs nothing.
import type { CallKey, FileState, Json } from '../kernel/content.ts'
import type { EventOf } from '../kernel/event.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { CallLog, type LoggedCall } from '../view/call-log.ts'
import type { TreeCut } from './cut-tree.ts'
import type { RecordedTree } from './recorded-tree.ts'

type RecordedCall = {
  readonly key: CallKey
  readonly result: EventOf<'agent.tool_result'>
  readonly answer: EventOf<'user.custom_tool_result'> | null
  used: boolean
}
/** `agent`: a session that the recording does not have takes the results of others of its agent. */
type RecordedSession = { readonly agent: string; readonly calls: ReadonlyMap<string, readonly RecordedCall[]> }

export type CallToAnswer = {
  readonly session: string
  readonly agent: string
  readonly call: CallKey
  readonly tool: string
  readonly args: Json
}

export class RecordedResults {
  readonly #sessions = new Map<string, RecordedSession>()
  /** What each call of the what-if got: a call that is tried again gets the same. */
  readonly #given = new Map<string, RecordedCall | null>()

  /** The files that calls would have changed, as they were when people were asked. */
  readonly #files = new Map<string, readonly FileState[]>()

  /** Results within the cut stand in the what-if's own log already. */
  constructor({ logs }: RecordedTree, cut: TreeCut) {
    for (const { session, events } of logs) {
      const log = new CallLog()
      for (const event of events) log.take(event)
      const calls = new Map<string, RecordedCall[]>()
      for (const call of log.all) {
        const { result, answer, proposal } = call
        const name = keyOf(proposal.tool, proposal.args)
        if (proposal.files && !this.#files.has(name)) this.#files.set(name, proposal.files)
        if (result === null || !hasRun(call) || result.seq <= (cut.get(session) ?? 0)) continue
        const key = call.edit ? keyOf(proposal.tool, call.edit.args) : name
        const same = calls.get(key) ?? []
        same.push({ key: call.key, result, answer, used: false })
        calls.set(key, same)
      }
      const [created] = events
      this.#sessions.set(session, { agent: created?.type === 'session.created' ? created.agent : '', calls })
    }
  }

  filesOf(tool: string, args: Json): readonly FileState[] | null {
    return this.#files.get(keyOf(tool, args)) ?? null
  }

  /** The first result that no other call got; null if there is none. */
  take({ session, agent, call, tool, args }: CallToAnswer): RecordedCall | null {
    const place = `${session} ${call}`
    const known = this.#given.get(place)
    if (known !== undefined) return known
    const key = keyOf(tool, args)
    const own = this.#sessions.get(session)
    const others = [...this.#sessions.values()].filter((each) => each.agent === agent)
    const pools = own ? [own] : others
    const free = pools.flatMap(({ calls }) => calls.get(key) ?? []).filter(({ used }) => !used)
    // The very call, where it is still open at the cut.
    const found = (own && free.find((each) => each.key === call)) ?? free[0] ?? null
    if (found) found.used = true
    this.#given.set(place, found)
    return found
  }
}

/** A call that was refused, denied or stopped says nothing about what its tool would have returned. */
function hasRun({ intent, result, terms }: LoggedCall): boolean {
  if (intent === null || terms.gate?.type === 'refuse') return false
  return result?.status !== 'denied' && result?.status !== 'aborted'
}

function keyOf(tool: string, args: Json): string {
  return `${tool} ${canonicalJson(args)}`
}
