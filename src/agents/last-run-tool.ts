// `last_run`: the time of the agent's last completed run, for an agent that reports news since then. It looks at its
// own session, and at sessions of the same agent and owner: those beside it, and the children of the newest roots.
import { writerTime } from '../kernel/clock.ts'
import type { Card, CompleteStore } from '../ports/store.ts'
import { objectField } from '../tools/core/argument-schema.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'

export const LAST_RUN_TOOL = 'last_run'
/** How many sessions are looked at, newest first. */
const ROOTS_MAX = 100
const PAGE = 500

export type LastRunStore = Pick<CompleteStore, 'card' | 'read' | 'page' | 'now'>

export function lastRunTool(store: LastRunStore): Tool {
  return defineTool({
    name: LAST_RUN_TOOL,
    description: 'When you have last completed a run, and what time it is now.',
    input: objectField({}),
    effect: 'read',
    execute: async (_args, { session }) => {
      const now = store.now()
      const at = await findLastRun(store, session)
      const said = { now: new Date(now).toISOString() }
      if (at === null) return JSON.stringify({ ...said, last_run: null, note: 'You have not run here before.' })
      const hours = Math.round((now - at) / 360_000) / 10
      return JSON.stringify({ ...said, last_run: new Date(at).toISOString(), hours_ago: hours })
    },
  })
}

/** The time of the last completed run of this session's agent, before the open one; null if there is none. */
async function findLastRun(store: LastRunStore, session: string): Promise<number | null> {
  const card = await store.card(session)
  if (card === null) return null
  let last = await lastCompletedRun(store, session)
  const looked = (other: Card): void => {
    const is = other.session !== session && other.agent === card.agent && other.owner === card.owner
    if (is && other.outcome === 'completed') last = Math.max(last ?? 0, other.at)
  }
  const of = { agent: card.agent, order: 'newest', limit: ROOTS_MAX } as const
  for (const other of (await store.page(of)).cards) looked(other)
  for (const root of (await store.page({ order: 'newest', limit: ROOTS_MAX })).cards) {
    if (root.owner !== card.owner) continue
    for (const other of (await store.page({ ...of, parent: root.session })).cards) looked(other)
  }
  return last
}

async function lastCompletedRun(store: LastRunStore, session: string): Promise<number | null> {
  let last: number | null = null
  for (let after = 0; ; ) {
    const { events } = await store.read(session, after, PAGE)
    for (const event of events)
      if (event.type === 'run.settled' && event.outcome.type === 'completed') last = writerTime(event)
    const end = events.at(-1)
    if (end === undefined || events.length < PAGE) return last
    after = end.seq
  }
}
