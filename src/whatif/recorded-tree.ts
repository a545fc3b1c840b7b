// The recording that a what-if goes by: a root session with all sessions below it, from a store or from an exported
// file. It is only read, and checked to be whole.
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { outsideOf } from '../kernel/ledger.ts'
import { methodsCheck, nonEmptyCheck, optionsChecker, requiredCheck } from '../options.ts'
import type { Store } from '../ports/store.ts'
import type { Portable } from '../archive/portable-file.ts'
import { readSessionFile } from '../archive/read-file.ts'
import { type PortableLog, readWholeTree, type SessionTree } from '../stores/move/portable-tree.ts'
import { checkCount } from '../stores/plan/check-count.ts'
import { CallLog } from '../view/call-log.ts'
import { childId, rootIdOf } from '../view/ids.ts'
import { readGraderId } from '../view/pursuits.ts'
import { isObject } from '../view/untrusted-json.ts'

/** A session in a store, or the records of a file: `archiveOf` has a session with its children. */
export type WhatIfLog = { readonly store: Store; readonly session: string } | Portable

export type RecordedTree = SessionTree & { readonly root: string; readonly events: readonly Event[] }

export async function readRecordedTree(log: WhatIfLog, at: number): Promise<RecordedTree> {
  const tree = isStored(log) ? await readStored(log) : (await readSessionFile(log)).tree
  const [{ session: root, events } = { session: '', events: [] }] = tree.logs
  checkRoot(root, events)
  checkCount('at', at)
  if (at < 1 || at > events.length)
    throw new Fault(
      'invalid_input',
      `Session ${root} has the events 1 to ${events.length}: there is no event ${at} to begin at. Choose one of them.`,
    )
  const ids = new Set(tree.logs.map(({ session }) => session))
  for (const each of tree.logs) {
    const lost = childrenOf(each).find((child) => !ids.has(child))
    if (lost === undefined) continue
    const how = 'Give the whole tree: { store, session }, or the records of archiveOf(store, session).'
    throw new Fault('invalid_input', `Session ${each.session} started ${lost}, and its log is missing. ${how}`)
  }
  return { ...tree, root, events }
}

function isStored(log: WhatIfLog): log is Exclude<WhatIfLog, Portable> {
  if (!isObject(log) || !('store' in log)) return false
  checkPlace(log)
  return true
}

const checkPlace = optionsChecker<Exclude<WhatIfLog, Portable>>('the log of whatIf', {
  store: requiredCheck(methodsCheck('give one, such as sqlite("sessions.db")', 'open', 'card', 'read', 'list')),
  session: requiredCheck(nonEmptyCheck, 'Name the session in that store.'),
})

async function readStored({ store, session }: Exclude<WhatIfLog, Portable>): Promise<SessionTree> {
  await store.open()
  const card = await store.card(session)
  if (card === null) throw new Fault('session_missing', `There is no session ${session}. Check the id.`)
  if (card.root !== session) throw childFault(session, card.root)
  return readWholeTree(store, session)
}

function checkRoot(root: string, [created]: readonly Event[]): void {
  if (created?.type !== 'session.created')
    throw new Fault('session_damaged', `The log of session ${root} does not begin with its creation.`)
  if (created.parent) throw childFault(root, created.parent.root)
  if (readGraderId(root) !== null)
    throw new Fault(
      'invalid_input',
      `Session ${root} grades a round of an outcome. Ask what if of the session that it grades.`,
    )
  if (created.planner === 'model') return
  const text = `Session ${root} is driven by ${created.planner}. A what-if takes sessions of language models: their tools and children may be what you like.`
  throw new Fault('invalid_input', text)
}

function childFault(session: string, root = rootIdOf(session)): Fault {
  const text = `Session ${session} is a child, and goes on only with its parent. Ask what if of session ${root}.`
  return new Fault('invalid_input', text)
}

/** The children that the calls of this log created. */
function childrenOf({ session, events }: PortableLog): readonly string[] {
  const calls = new CallLog()
  for (const event of events) calls.take(event)
  return calls.all.flatMap(({ key, proposal, intent }) => {
    if (intent?.type !== 'agent.custom_tool_use') return []
    const { child, answers, orders = [] } = outsideOf(proposal) ?? {}
    if (child !== undefined && !answers) return [childId(session, key)]
    const born = orders.map(({ type }, i) =>
      type === 'spawn' ? childId(session, key, orders.length > 1 ? i : null) : '',
    )
    return born.filter((id) => id !== '')
  })
}
