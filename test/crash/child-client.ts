// The process that is never killed: it opens sessions, sends, decides, answers and interrupts through its own connection to
// the same file or server, and keeps a journal of what it was promised. It drives nothing and runs no tool.
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Card, Receipt, Write } from '../../src/ports/store.ts'
import type { InboxBody } from '../../src/kernel/event.ts'
import { Fault } from '../../src/kernel/failure.ts'
import { sendInterrupt } from '../../src/sessions/interrupt.ts'
import { Appender, digestOf, type JournalLine, placesIn } from './evidence.ts'
import { openStore } from './open.ts'
import { Chance } from './random.ts'
import { serve } from './serve.ts'
import { CREATED, creation, KEPT, message } from './stage.ts'
import type { Plan } from './plan.ts'
import { planOf } from './workload.ts'

const SESSIONS_FIRST = 8
const SESSIONS_MAX = 24
const REMEMBERED_MAX = 100
/** With so many sessions on the file no more trees are begun: all logs are read after each kill. */
const TREES_UNTIL = 250

const [folder = '', database = '', seed = '1', sessionsMax = '24', levelsMax = '3'] = process.argv.slice(2)
const places = placesIn(folder)
const journal = new Appender<JournalLine>(places.journal)
const chance = new Chance(Number(seed))
let store = openStore(database)
let settling = false
let sessions = 0
/** Of children below a session. */
let levels = Number(levelsMax)
let ids = 0
/** Acknowledged some time ago: sent again now and then, as a client does that lost the answer. */
const remembered: { readonly session: string; readonly body: InboxBody }[] = []

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  if (line === 'settle') settling = true
  else if (line === 'stop') process.exit(0)
})
lines.on('close', () => process.exit(2))
await main()

async function main(): Promise<void> {
  await store.open()
  while (sessions < Math.min(SESSIONS_FIRST, Number(sessionsMax))) await create()
  process.stdout.write('begun\n')
  while (!settling) {
    const cards = (await store.list({ limit: 10_000 })).filter(({ root }) => !root.startsWith(KEPT))
    levels = cards.length < TREES_UNTIL ? Number(levelsMax) : 0
    await Promise.all(cards.map((card) => (card.parent === undefined ? meddle(card) : visit(card))))
    // Now and then a session is stopped while others work for it, also when it rests itself.
    const working = cards.find(({ parent, status }) => parent !== undefined && status === 'running')
    if (working !== undefined && chance.happens(0.02)) await interrupt(working.root, 'stop')
    if (sessions < SESSIONS_MAX && chance.happens(0.02)) await create()
    if (remembered.length > 0 && chance.happens(0.1)) await again()
    if (chance.happens(0.05)) await reopen()
    await sleep(chance.integer(2, 12))
  }
  while (!(await settled())) await sleep(25)
  process.stdout.write('settled\n')
}

/** Whether every session is idle and none is due. Answers the requests of sessions that wait for a person on the way. */
async function settled(): Promise<boolean> {
  const cards = await store.list({ limit: 10_000 })
  await Promise.all(cards.filter((card) => card.status === 'requires_action').map(attend))
  return cards.every(({ status, due }) => (status === 'idle' || status === 'terminated') && due === null)
}

/** A child is mostly left to its parent. */
async function visit(card: Card): Promise<void> {
  const { session, status } = card
  if (status === 'requires_action') {
    if (chance.happens(0.1)) await attend(card)
  } else if (status === 'running' && chance.happens(0.001)) await interrupt(session, 'stop')
}

/** What a user might do at this moment, looking at one session. */
async function meddle(card: Card): Promise<void> {
  const { session, status, due } = card
  if (status === 'requires_action') {
    if (chance.happens(0.3)) await attend(card)
    else if (chance.happens(0.02)) await send(session, 'next')
  } else if (status === 'idle' && due === null) {
    if (chance.happens(0.4)) await send(session, 'next')
  } else if (chance.happens(0.006)) {
    await send(session, chance.pick(['next', 'now', 'after']))
  } else if (chance.happens(0.002)) {
    await interrupt(session, chance.happens(0.7) ? 'stop' : 'pause')
    // Often with a new wish at once, while what was stopped is still landing.
    if (chance.happens(0.5)) await send(session, 'next')
  }
}

async function send(
  session: string,
  when: 'next' | 'after' | 'now',
  plan: Plan = planOf(chance, levels),
): Promise<void> {
  await append(session, message(newId(), plan, when), 'send')
}

/** As a session's handle does it: a stop goes to all that work below, in the same commit. */
async function interrupt(session: string, mode: 'stop' | 'pause'): Promise<void> {
  const event = { type: 'user.interrupt', id: newId(), mode } as const
  await append(session, event, 'interrupt', async () => (await sendInterrupt({ store }, session, event)).seq)
}

/** Serves a session that waits for a person: decides, answers, or lets it go on. */
function attend({ session }: Card): Promise<void> {
  return serve(store, session, {
    decide: (call, digest) => decide(session, call, digest),
    answer: (call) => {
      const content = `answer to ${call}`
      return append(session, { type: 'user.custom_tool_result', id: newId(), call, ok: true, content }, 'answer')
    },
    goOn: () => send(session, 'next', { turns: [] }),
  })
}

async function decide(session: string, call: string, digest: string): Promise<void> {
  const allow = chance.happens(0.8)
  const verdicts = chance.happens(0.1) ? [allow, !allow] : [allow]
  for (const verdict of verdicts) {
    const body = { type: 'user.tool_confirmation', call, digest, allow: verdict, by: 'client' } as const
    await append(session, { ...body, id: newId() }, 'decide')
  }
}

async function again(): Promise<void> {
  const { session, body } = chance.pick(remembered)
  await append(session, body, 'resend')
}

/** Closes the file for a moment; other processes may have it open, or none. */
async function reopen(): Promise<void> {
  await store.close()
  await sleep(chance.integer(0, 150))
  store = openStore(database)
  await store.open()
}

async function create(): Promise<void> {
  sessions += 1
  const session = `s${sessions}`
  journal.add({ type: 'try', session, id: 'created', digest: digestOf(CREATED) })
  const write = creation(session, store.now())
  await promised({ session, id: 'created', verb: 'create' }, () => commit(write))
}

async function append(
  session: string,
  body: InboxBody,
  verb: string,
  act = () => commit({ session, lane: 'inbox', events: [body] }),
): Promise<void> {
  journal.add({ type: 'try', session, id: body.id, digest: digestOf(body) })
  await promised({ session, id: body.id, verb }, act)
  remembered.push({ session, body })
  if (remembered.length > REMEMBERED_MAX) remembered.shift()
}

type Asked = { readonly session: string; readonly id: string; readonly verb: string }

/** Where the first event of it stands. */
async function commit(write: Write): Promise<number> {
  const [receipt] = (await store.commit([write])) as readonly [Receipt]
  return receipt.seqs[0] ?? 0
}

/** Noted as acknowledged only after the promise resolved. Busy is the one refusal that is tried again, with the same id. */
async function promised({ session, id, verb }: Asked, act: () => Promise<number>): Promise<void> {
  for (;;) {
    try {
      journal.add({ type: 'ack', session, id, seq: await act(), verb })
      return
    } catch (error) {
      if (error instanceof Fault && error.code === 'store_busy') continue
      // Its parent closed this child meanwhile.
      if (error instanceof Fault && error.code === 'session_closed' && session.includes('~')) return
      journal.add({ type: 'refused', session, id, reason: String(error) })
      return
    }
  }
}

function newId(): string {
  ids += 1
  return `c${ids}`
}
