// `terret handoffs`: the tasks that agents of a session gave to others, at any depth, with what came of each. Read from the logs.
import type { Store } from '../../kernel/index.ts'
import type { Call } from '../args.ts'
import { oneLine } from '../present/clean.ts'
import { EXIT } from '../exit.ts'
import { allEvents } from '../state/log.ts'
import { readPlace, sessionOf } from '../state/place.ts'
import { print, printJson } from '../present/print.ts'
import { CallLog, contentOf } from '../../view/calls.ts'
import { outsideOf } from '../../kernel/ledger.ts'
import { childId } from '../../stores/plan/id.ts'

type Handoff = {
  readonly from: string
  readonly to: string
  readonly session: string
  readonly call: string
  /** The child session that works on it. */
  readonly child: string
  readonly task: string
  readonly at: number
  readonly ended: number | null
  readonly status: string
  readonly answer: string
}

export function handoffs(call: Call): Promise<number> {
  return readPlace(async (place) => {
    const { session, agent } = await sessionOf(place, call.words[0] ?? '')
    const found = await handoffsOf(place.store, session, agent)
    for (const each of found) {
      if (call.is('json')) printJson(each)
      else {
        const depth = '  '.repeat(each.session.split('~').length - 1)
        print(`${depth}${new Date(each.at).toISOString()}  ${oneLine(each.from)} → ${oneLine(each.to)}  ${each.status}`)
        print(`${depth}  task    ${oneLine(each.task, 300)}`)
        if (each.answer !== '') print(`${depth}  answer  ${oneLine(each.answer, 300)}`)
      }
    }
    if (found.length === 0 && !call.is('json')) print('No agent of this session gave a task to another.')
    return EXIT.ok
  })
}

/** In the order they were given, each followed by those below it. */
async function handoffsOf(store: Store, session: string, agent: string): Promise<readonly Handoff[]> {
  const log = new CallLog()
  for (const event of await allEvents(store, session)) log.take(event)
  const found: Handoff[] = []
  for (const { key, proposal, intent, result, ...rest } of log.all) {
    const { child: to, answers } = outsideOf(proposal) ?? {}
    if (to === undefined || intent === null) continue
    const child = answers?.session ?? childId(session, key)
    const { task = '' } = proposal.args as { readonly task?: string }
    const content = contentOf({ ...rest, result })
    const answer = typeof content === 'string' ? content : `${content.bytes} bytes`
    const ends = { ended: result?.at ?? null, status: result?.status ?? 'open', answer }
    found.push({ from: agent, to, session, call: key, child, task, at: intent.at, ...ends })
    // One that only answers a question goes on with a child that is listed already.
    if (!answers) found.push(...(await handoffsOf(store, child, to)))
  }
  return found
}
