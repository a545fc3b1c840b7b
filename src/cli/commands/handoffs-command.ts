// `terret handoffs`: all messages between the agents of a session, at any depth: tasks, reports, questions, answers,
// messages and stops, each with its text. They are read from the logs.
import { createHash } from 'node:crypto'
import type { Card, Store } from '../../kernel/index.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import { type Handoff, handoffIn, sortHandoffs } from '../../view/handoff-record.ts'
import { nameIn, parentIn } from '../../view/tree-rows.ts'
import type { CommandArgs } from '../args.ts'
import { EXIT } from '../exit.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { print, printJson } from '../present/print.ts'
import { readEvents } from '../state/read-log.ts'
import { withStoreToRead, findSession } from '../state/command-context.ts'

export function handoffsCommand(call: CommandArgs): Promise<number> {
  return withStoreToRead(async ({ store, ...place }) => {
    const card = await findSession({ store, ...place }, call.words[0] ?? '')
    const found = await readHandoffs(store, card)
    for (const each of found) {
      const sha256 = createHash('sha256').update(each.text).digest('hex')
      if (call.is('json')) printJson({ ...each, sha256 })
      else for (const line of handoffLines(each, card.session, sha256)) print(line)
    }
    if (found.length === 0 && !call.is('json')) print('No agent of this session gave anything to another.')
    return EXIT.ok
  })
}

async function readHandoffs(store: Store, card: Card): Promise<readonly Handoff[]> {
  const cards = new Map([card, ...(await cardsBelow(store, card))].map((each) => [each.session, each]))
  const agentOf = (session: string): string => cards.get(session)?.agent ?? session
  const found: Handoff[] = []
  for (const each of cards.values()) {
    const { session, agent } = each
    const receiver = { session, agent, parent: parentIn(each, cards), agentOf }
    for await (const event of readEvents(store, session)) found.push(...[handoffIn(event, receiver) ?? []].flat())
  }
  return sortHandoffs(found)
}

const TEXT_CHARS_MAX = 300
const HASH_CHARS = 12

function handoffLines(
  { at, kind, status, from, to, ...rest }: Handoff,
  top: string,
  sha256: string,
): readonly string[] {
  const { fromSession, toSession, text, files } = rest
  const role = (agent: string, session: string | null): string =>
    session === null || session === top ? oneLine(agent) : `${oneLine(agent)} ${shownId(nameIn(session, top))}`
  const what = status === undefined ? kind : `${kind}, ${oneLine(status)}`
  const ends = `${role(from, fromSession)} → ${role(to, toSession)}`
  return [
    `${new Date(at).toISOString()}  ${ends}  ${what}${text === '' ? '' : `  sha256 ${sha256.slice(0, HASH_CHARS)}…`}`,
    ...(text === '' ? [] : [`  ${oneLine(text, TEXT_CHARS_MAX)}`]),
    ...files.map(({ name = 'a file', media, bytes, hash }) => {
      return `  with ${oneLine(name)}, ${oneLine(media)}, ${bytes} bytes, sha256 ${hash.slice(0, HASH_CHARS)}…`
    }),
  ]
}
